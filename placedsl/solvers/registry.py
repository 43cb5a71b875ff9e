"""Solvers by name, built in or brought by a plug-in; no solver package is imported here."""

from __future__ import annotations

from collections.abc import Callable

from placedsl import plugins
from placedsl.diagnostics import UsageError
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


#: The names that no plug-in can take.
BUILT_IN = (*_MADE, *ALSO)


def names() -> tuple[str, ...]:
    """All names that :func:`get` knows, the default first, those of plug-ins last."""
    return (*_MADE, *(n for n in plugins.names("solvers") if n not in BUILT_IN))


def get(name: str) -> Solver:
    """The solver of that name, installed or not; UsageError for one that does not exist, or a broken plug-in."""
    made = _MADE.get(ALSO.get(name, name))
    return made() if made is not None else _plugged(name)


def installed() -> list[tuple[Features, str | None]]:
    """Every solver with its installed version (None: not installed); of a broken plug-in the remarks tell."""
    out: list[tuple[Features, str | None]] = []
    for name in names():
        try:
            solver = get(name)
            out.append((solver.features, solver.available()))
        except UsageError as problem:
            out.append((Features(name, "", note=str(problem)), None))
    return out


def _plugged(name: str) -> Solver:
    """A solver that a plug-in brings, whose features bear the name under which it is found again."""
    plugin = plugins.get("solvers", name, BUILT_IN)
    made: Solver = plugin.call(plugin.load())
    for part in ("features", "available", "run"):
        if not hasattr(made, part):
            raise plugins.PluginError(f"{plugin} has no '{part}': docs/plugins.md says what is expected")
    if made.features.name != name:
        raise plugins.PluginError(f"{plugin} calls itself '{made.features.name}': both names must be one")
    plugin.call(made.available)
    return made
