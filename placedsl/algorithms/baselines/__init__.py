"""Baselines of Tarnawski et al. 2020, section 6, one file per method."""
