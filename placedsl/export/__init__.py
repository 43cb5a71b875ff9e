"""Formats that are written."""
