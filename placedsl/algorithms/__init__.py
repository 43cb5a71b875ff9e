"""Algorithms: a problem in, a placement and a bound out."""
