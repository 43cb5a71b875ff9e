"""Rewrites of global constraints into rows, one a file."""
