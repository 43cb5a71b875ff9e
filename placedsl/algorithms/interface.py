"""What an algorithm offers and what it is given, ours or a plug-in's: ``docs/adding-an-algorithm.md``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from placedsl.budget import Budget
from placedsl.diagnostics import LimitError
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values


class Progress(Protocol):
    """Told of a placement and a proven lower bound on the first objective (-inf: none); True stops the run."""

    def __call__(self, placement: Sequence[int] | None, bound: float, values: Values | None = None, /) -> bool:
        """``values``: what else the answer says."""


class NothingFoundError(LimitError):
    """Raised by ``solve`` when it ends without a placement and can say why, in the user's words."""


class Algorithm(Protocol):
    """A path from a problem to a placement; what it says is verified, and never believed."""

    def fits(self, problem: Problem) -> Sequence[str]:
        """Why it does not apply to this problem, in the user's words; empty when it does.  Quick."""

    def solve(
        self, problem: Problem, budget: Budget, progress: Progress
    ) -> tuple[Sequence[int] | None, float] | tuple[Sequence[int] | None, float, Values]:
        """The device position of each node (None: none was found), and a proven lower bound (-inf: none).

        Under a schedule of one sample what else the answer says may follow: calls, or an order by starts.

        A bound of inf says that no placement satisfies the constraints.
        """
