"""The formats that a program can be written in, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from placedsl import plugins
from placedsl.diagnostics import UsageError, nearest
from placedsl.export.programs import cp_sat_script, lp, mip_script, mps, pyomo_script
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Problem


@dataclass(frozen=True)
class Format:
    """``write`` gives the lines of a problem under a formulation; ``description`` says in a line what they are."""

    description: str
    write: Callable[[Problem, Formulation], Iterator[str]]


FORMATS: dict[str, Format] = {
    "lp": Format("an LP file: the first objective, all rows", lp.write),
    "mps": Format("a free MPS file: the first objective, all rows", mps.write),
    "pyomo": Format("a Python script for Pyomo, solved with HiGHS", pyomo_script.write),
    "mip": Format("a Python script for python-mip, solved with CBC", mip_script.write),
    "cp-sat": Format("a Python script for CP-SAT: integers, conditions and maxima", cp_sat_script.write),
}


def known(name: str) -> None:
    """UsageError where a name is neither a format nor an exporter of a plug-in."""
    if name not in FORMATS and plugins.find("exporters", name) is None:
        names = (*FORMATS, *plugins.names("exporters"))
        raise UsageError(f"there is no format '{name}'; {nearest(name, names)}")
