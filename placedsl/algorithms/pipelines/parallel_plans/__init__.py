"""Pipelines whose stages are shared by copies, whose layers are split over devices, and which recompute.

Piper (Tarnawski, Narayanan and Phanishayee 2021).
"""
