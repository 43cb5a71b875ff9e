"""What an algorithm offers and what it is given, ours or a plug-in's: ``docs/adding-an-algorithm.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from placedsl.diagnostics import LimitError
from placedsl.problem import Problem

#: What an answer says beside the placement, by name and positions (``problem.told``).
Values = Mapping[str, Mapping[tuple[int, ...], float]]


class Progress(Protocol):
    """Told of a placement and a proven lower bound on the first objective (-inf: none); True stops the run."""

    def __call__(self, placement: Sequence[int] | None, bound: float, values: Values | None = None, /) -> bool:
        """``values``: what else the answer says."""


@dataclass(frozen=True)
class Budget:
    """What a run may take: seconds (None: no limit), relative gap at which it may stop, threads (0: all), seed."""

    time_limit: float | None = None
    gap: float = 1e-6
    workers: int = 0
    seed: int = 0


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
