"""Output of `placedsl explain`."""
