"""Execution of a placement sample by sample, with its own account of costs."""
