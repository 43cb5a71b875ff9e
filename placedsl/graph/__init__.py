"""Computation graphs: the data, readers, contraction, orders."""
