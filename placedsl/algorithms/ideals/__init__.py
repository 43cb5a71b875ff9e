"""Ideals of a graph: chain covers and enumeration."""
