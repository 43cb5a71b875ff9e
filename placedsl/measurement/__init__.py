"""Costs measured by running: operators of models, links between processes, and what other profilers have written."""
