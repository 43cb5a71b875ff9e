"""The state of one call of the planner: the incumbent, what searches beside, and how near the two sides are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from placedsl.arrays import Integers
from placedsl.planner.incumbent import Incumbent, Progress
from placedsl.planner.request import Request
from placedsl.problem.expressions import Expression, Provided
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Problem
from placedsl.tolerances import SAME_VALUE

if TYPE_CHECKING:
    from placedsl.planner.portfolio.cluster import Cluster
    from placedsl.planner.portfolio.portfolio import Host, Member, Portfolio

#: Seconds that a solver has before others begin to search beside it.
PORTFOLIO_DELAY_S = 1.0
#: Seconds of evaluating at one time before older messages of a member are passed over.
_LISTENING = 0.2


class Run:
    """One call of :func:`placedsl.planner.solve.solve`; the paths read it and write to it."""

    def __init__(
        self,
        problem: Problem,
        formulations: Callable[[], Iterable[Formulation]],
        request: Request,
        progress: Progress | None,
        read_seconds: float,
        isolated: bool,
    ) -> None:
        self.problem, self.formulations, self.request = problem, formulations, request
        self.isolated = isolated
        self.began = time.monotonic()
        self.best = Incumbent(problem, progress, self.began)
        self.read_seconds, self.build_seconds = read_seconds, 0.0
        self.relaxed: Integers | None = None
        self.reach = 0.0
        #: Whether the solver itself failed the last time.
        self.crashed = False
        self.asked = 0.0
        #: Whether the search began with a placement that was given, whose devices keep their names.
        self.began_with_placement = False
        self.notes = list(problem.notes)
        self.method, self.solver, self.prover = "none", "", ""
        #: Of the solvers that were used, by name.
        self.used_versions: dict[str, str] = {}
        #: What searches for the first objective beside dynamic programming, and then beside a solver.
        self.portfolio: Portfolio | None = None
        #: What runs further members of that.
        self.cluster: Cluster | None = None

    def known_placement(self) -> Integers | None:
        """The best placement (None: there is none)."""
        return self.best.placement

    def host(self, members: Iterator[Member]) -> Host | None:
        """A host of further members; None without a cluster."""
        return None if self.cluster is None else self.cluster.host(members)

    @property
    def left(self) -> float | None:
        """Seconds until the time limit (None: no limit)."""
        limit = self.request.time_limit
        return None if limit is None else limit - (time.monotonic() - self.began)

    @property
    def impossible(self) -> bool:
        """Whether something has proven that there is no placement."""
        return self.best.evaluation is None and self.best.bounds[0] == np.inf

    def gap(self) -> float:
        """The gap, where that is all there is to settle: inf without a placement, or with further objectives."""
        alone = self.best.evaluation is not None and len(self.problem.objectives) == 1
        return self.best.gap() if alone else np.inf

    def stop_reason(self, distance: float) -> tuple[str, str] | None:
        """Termination and message where the best value is as near to its bound as is asked for."""
        if distance <= SAME_VALUE:
            return "optimal", f"proven by {self.prover or self.solver or 'the simple bound'}"
        if distance <= (self.request.gap or 0.0) + SAME_VALUE:
            return "gap_reached", f"within the gap that was asked for, {self.request.gap:.3g}"
        return None

    def heard(
        self, placement: Integers, bound: float, by: str = "", certificate: Mapping[str, Any] | None = None
    ) -> None:
        """Take a placement and a bound, and what proves it."""
        self.best.bound(bound, by=by, certificate=certificate)
        self.best.offer(placement)

    def tell(self, beside: Portfolio) -> None:
        """Tell the others of the best value and bound, and the placement."""
        beside.announce(self.best.value, self.best.bounds[0], self.best.placement)

    def listen(self, beside: Portfolio) -> None:
        """Take what the others have found, the newest first; where that takes long, none that was surpassed."""
        received, began = list(beside.messages()), time.monotonic()
        taken: set[str] = set()
        for message in reversed(received):
            if message.placement is None or (message.member in taken and time.monotonic() > began + _LISTENING):
                continue
            if self.best.offer(message.placement, message.values):
                taken.add(message.member)
        for message in received:
            if message.bound > self.best.bounds[0]:
                self.prover = message.by or message.member
                self.best.bound(message.bound, by=self.prover, claimed=True, certificate=message.certificate)
            if message.failed:
                self.notes.append(f"{message.member} ended early: {message.failed}")


def is_quantity(body: Expression, quantity: str) -> bool:
    """An objective is that quantity and nothing else."""
    return isinstance(body, Provided) and body.name == quantity
