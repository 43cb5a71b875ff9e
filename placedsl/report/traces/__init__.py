"""Traces for Perfetto."""
