"""List schedules, one file per method."""
