"""Proven lower bounds on the latency of an operator schedule."""
