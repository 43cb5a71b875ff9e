"""Dynamic programming over ideals for subgraph calls: bounds and placements."""
