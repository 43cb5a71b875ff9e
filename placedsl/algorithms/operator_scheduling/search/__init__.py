"""Annealing over placements, orders and transfers."""
