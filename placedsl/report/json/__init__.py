"""Answers and timelines as JSON documents."""
