"""Pipelines as they run: a placement, cut into pieces, and when each piece works on each sample."""
