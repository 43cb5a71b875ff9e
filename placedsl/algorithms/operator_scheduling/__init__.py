"""Latency of one sample if each device runs one operator at a time (``schedule dataflow``)."""
