"""Blocks between cut nodes, and windows of a schedule, as instances of their own."""
