"""Statements to the problem, one file per statement."""
