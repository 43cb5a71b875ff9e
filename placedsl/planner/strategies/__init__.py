"""The paths to a placement, one file per path."""
