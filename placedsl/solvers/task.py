"""The messages between :mod:`placedsl.solvers.isolated` and :mod:`placedsl.solvers.worker`."""

from __future__ import annotations

from dataclasses import dataclass

from placedsl.arrays import Floats
from placedsl.budget import Budget
from placedsl.ir.program import LinearProgram
from placedsl.solvers.interface import Outcome


@dataclass(frozen=True, eq=False)
class Task:
    """To the child, first: the run.  ``sent`` is the machine's monotonic clock when it began."""

    name: str
    program: LinearProgram
    budget: Budget
    sent: float


@dataclass(frozen=True)
class Stop:
    """To the child: stop, and send the outcome."""


@dataclass(frozen=True, eq=False)
class Found:
    """From the child: a new incumbent (None: none), its objective (inf), and the best bound so far."""

    point: Floats | None
    objective: float
    bound: float


@dataclass(frozen=True, eq=False)
class Ended:
    """From the child, last: the outcome."""

    outcome: Outcome
