"""Throughput placements that need not be contiguous, as partitions of units over devices: search and lower bounds."""
