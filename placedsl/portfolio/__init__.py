"""Members of a portfolio: searches for placements and bounds, each in a process of its own, beside a solver."""
