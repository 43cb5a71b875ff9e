"""Solvers by name, built in or brought by a plug-in; each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from placedsl import plugins
from placedsl.diagnostics import UsageError

if TYPE_CHECKING:
    from placedsl.solvers.interface import Features, Solver

#: Names of our own solvers, each with its module below ``placedsl.solvers`` and its class.  What follows a colon is
#: the ``backend`` that the class is given.
_MADE = {
    "highs": ("highs", "Highs"),
    "cp-sat": ("cp_sat", "CpSat"),
    "cvxpy": ("cvxpy_solver", "Cvxpy"),
    "mip": ("mip_solver", "Mip"),
    "mip:highs": ("mip_solver", "Mip"),
    "pyomo": ("pyomo_solver", "Pyomo"),
    "pyomo:cbc": ("pyomo_solver", "Pyomo"),
    "pyomo:glpk": ("pyomo_solver", "Pyomo"),
    "pyomo:gurobi": ("pyomo_solver", "Pyomo"),
    "pyomo:scip": ("pyomo_solver", "Pyomo"),
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
    own = ALSO.get(name, name)
    if own not in _MADE:
        return _plugged(name)
    module, made = _MADE[own]
    _, _, backend = own.partition(":")
    arguments = {"backend": backend} if backend else {}
    solver: Solver = getattr(import_module(f"placedsl.solvers.{module}"), made)(**arguments)
    return solver


def installed() -> list[tuple[Features, str | None]]:
    """Every solver with its installed version (None: not installed); of a broken plug-in the remarks tell."""
    from placedsl.solvers.interface import Features

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
