"""Proven lower bounds on the largest load of any placement."""
