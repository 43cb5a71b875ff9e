"""Searches and bounds in processes of their own, beside a path."""
