"""The formats that a program can be written in, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from placedsl.diagnostics import UsageError, nearest
from placedsl.export import cp_sat_script, lp, mip_script, mps, pyomo_script
from placedsl.formulation import Formulation
from placedsl.problem import Problem


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


def get(name: str) -> Format:
    """The format of that name; UsageError when there is none."""
    if name not in FORMATS:
        raise UsageError(f"there is no format '{name}'; {nearest(name, FORMATS)}")
    return FORMATS[name]
