"""Exporters: programs for solvers, and specs of published workloads."""
