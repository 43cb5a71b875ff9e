"""Devices and links."""
