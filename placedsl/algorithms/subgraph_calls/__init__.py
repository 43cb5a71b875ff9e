"""Latency of one sample under uninterrupted subgraph calls."""
