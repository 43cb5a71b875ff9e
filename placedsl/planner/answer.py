"""An answer: a verified placement with a proven bound, and how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from placedsl.evaluation.evaluate import Evaluation
from placedsl.problem.problem import Problem

#: How an answer's termination becomes the exit code of the command.
EXIT_SOLVED, EXIT_INFEASIBLE, EXIT_LIMIT, EXIT_NOTHING = 0, 3, 4, 5


@dataclass(frozen=True, eq=False)
class Answer:
    """What solving gave.

    ``termination``  why it ended: optimal, gap_reached, time_limit, ended (an algorithm came to its end without a
                     proof), infeasible, unbounded, interrupted, error
    ``placement``    device position of each node, or None; always verified by the evaluator
    ``evaluation``   what the evaluator says of it
    ``bound``        a proven lower bound on the first objective (-inf: none)
    ``bounds``       one for each objective
    ``method``       dp, program or the algorithm of a plug-in (or none, when nothing was run)
    ``solver``       the solver of a program, else empty
    ``seconds``      by phase: read, build, solve, verify, total
    ``notes``        what is worth knowing, in sentences
    """

    problem: Problem
    termination: str
    message: str
    placement: tuple[int, ...] | None
    evaluation: Evaluation | None
    bounds: tuple[float, ...]
    method: str
    solver: str
    seed: int
    seconds: Mapping[str, float]
    versions: Mapping[str, str]
    notes: tuple[str, ...] = field(default=())

    @property
    def value(self) -> float:
        """The first objective's value; inf without a placement."""
        return self.evaluation.objectives[0] if self.evaluation is not None else float("inf")

    @property
    def bound(self) -> float:
        """The proven lower bound of the first objective."""
        return self.bounds[0]

    @property
    def gap(self) -> float:
        """(value - bound) / |value|; inf without a placement or bound."""
        return gap(self.value, self.bound)

    @property
    def solution(self) -> str:
        """optimal, feasible or none."""
        if self.placement is None:
            return "none"
        return "optimal" if self.termination == "optimal" else "feasible"

    @property
    def exit_code(self) -> int:
        """What the command returns."""
        if self.termination in ("optimal", "gap_reached"):
            return EXIT_SOLVED
        if self.termination in ("infeasible", "unbounded"):
            return EXIT_INFEASIBLE
        if self.termination in ("time_limit", "interrupted"):
            return EXIT_LIMIT if self.placement is not None else EXIT_NOTHING
        return EXIT_LIMIT if self.placement is not None else EXIT_NOTHING

    def device_of(self) -> dict[int | str, str]:
        """Node id as in the graph to device name; members of fused operators each by themselves."""
        if self.placement is None:
            return {}
        devices = self.problem.machine.devices
        graph = self.problem.graph
        return {node: devices[d].name for node, d in zip(graph.written.ids, graph.spread(self.placement), strict=True)}


def gap(value: float, bound: float) -> float:
    """The relative distance of a value from a lower bound, never negative."""
    if value == float("inf") or bound == float("-inf"):
        return float("inf")
    if value <= bound:
        return 0.0
    return (value - bound) / max(abs(value), 1e-12)
