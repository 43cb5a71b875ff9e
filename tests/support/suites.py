"""What the shared suites run; ``test_registered_*.py`` beside each suite compares the list with the registry."""

from __future__ import annotations

#: The solvers of the conformance suite.
SOLVERS = ("highs", "cp-sat", "pyomo", "pyomo:cbc", "mip", "cvxpy")
#: The paths through which random problems are compared with brute force.
PATHS = ("auto", "highs", "cp-sat", "pyomo", "mip", "cvxpy")
#: The formats that other programs read, and those that are scripts.
FILE_FORMATS, SCRIPTS = ("lp", "mps"), ("pyomo", "mip", "cp-sat")
