"""Placement algorithms, one folder per problem, and what they share."""

from placedsl.system.first_run import choose_kernel_folder

# Before any kernel is imported, as numba decides then.
choose_kernel_folder()
