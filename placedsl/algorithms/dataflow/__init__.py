"""Latency under ``schedule dataflow``: list schedules, a search, and what both work on: ``docs/one-sample.md``."""
