"""What a solver file offers and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from placedsl.arrays import Floats
from placedsl.budget import Budget
from placedsl.ir.program import LinearProgram

Termination = Literal["optimal", "gap_reached", "time_limit", "infeasible", "unbounded", "interrupted", "error"]


@dataclass(frozen=True)
class Features:
    """What a solver takes and can do.

    ``native`` names the global constraints taken as they are (class names of
    :mod:`placedsl.ir.program`); all others are lowered to rows beforehand.  ``assumptions``: it heeds
    ``assumed_zero`` of a program and fills ``core`` of an outcome.  ``relaxed_core``: it does so where the
    relaxation is infeasible, and tells nothing else of a program with assumptions.
    """

    name: str
    package: str
    native: frozenset[str] = frozenset()
    warm_start: bool = False
    streams_incumbents: bool = False
    integers_only: bool = False
    assumptions: bool = False
    relaxed_core: bool = False
    note: str = ""


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a run ended, told in three separate parts.

    ``termination`` why it stopped; ``incumbent`` the best point found (None: none was found);
    ``bound`` a proven lower bound on the objective (-inf: none).  ``objective`` is the
    solver's own value of the incumbent and is never believed.  ``core``: the columns assumed to be zero that an
    infeasible outcome rests on.
    """

    termination: Termination
    incumbent: Floats | None
    objective: float
    bound: float
    message: str = ""
    seconds: float = 0.0
    version: str = ""
    details: dict[str, float] = field(default_factory=dict)
    core: tuple[int, ...] = ()


Progress = Callable[[Floats | None, float, float], bool]
"""Called with (a new incumbent or None, its objective or inf, the proven bound or -inf);
returns True when the run shall stop."""


class Solver(Protocol):
    """One file of this package: its features, whether it is there, and one run."""

    features: Features

    def available(self) -> str | None:
        """The installed version, or None; must not import the solver."""

    def run(self, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:
        """Solve; never raises for what the solver says, only for what is wrong with the call."""
