"""Conflicting constraints, and repairs."""
