"""Placement algorithms, one folder per problem, and what they share."""
