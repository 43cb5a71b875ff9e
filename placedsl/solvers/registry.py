"""Solvers by name; no solver package is imported here."""

from __future__ import annotations

from collections.abc import Callable

from placedsl.diagnostics import UsageError, nearest
from placedsl.solvers.cp_sat import CpSat
from placedsl.solvers.cvxpy_solver import Cvxpy
from placedsl.solvers.highs import Highs
from placedsl.solvers.interface import Features, Solver
from placedsl.solvers.mip_solver import Mip
from placedsl.solvers.pyomo_solver import Pyomo

_MADE: dict[str, Callable[[], Solver]] = {
    "highs": Highs,
    "cp-sat": CpSat,
    "cvxpy": Cvxpy,
    "mip": Mip,
    "mip:highs": lambda: Mip(backend="highs"),
    "pyomo": Pyomo,
    "pyomo:cbc": lambda: Pyomo(backend="cbc"),
    "pyomo:glpk": lambda: Pyomo(backend="glpk"),
    "pyomo:gurobi": lambda: Pyomo(backend="gurobi"),
    "pyomo:scip": lambda: Pyomo(backend="scip"),
}

#: Further names of the same solvers.
ALSO = {"mip:cbc": "mip", "pyomo:highs": "pyomo"}


def names() -> tuple[str, ...]:
    """All names that :func:`get` knows, the default first."""
    return tuple(_MADE)


def get(name: str) -> Solver:
    """The solver of that name, installed or not."""
    made = _MADE.get(ALSO.get(name, name))
    if made is None:
        raise UsageError(f"there is no solver '{name}'; {nearest(name, (*_MADE, *ALSO))}")
    return made()


def installed() -> list[tuple[Features, str | None]]:
    """Every solver with its installed version (None: not installed)."""
    solvers = [get(name) for name in _MADE]
    return [(solver.features, solver.available()) for solver in solvers]
