"""Contiguous pipelines: dynamic programming over ideals and its relatives."""
