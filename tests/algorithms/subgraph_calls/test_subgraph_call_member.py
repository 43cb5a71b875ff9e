"""The member of the portfolio that bounds the latency of calls: it says schedules too, and waits for no search."""

from __future__ import annotations

import itertools
import math

import pytest

import placedsl
from placedsl.arrays import Integers
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.portfolio.latency_members import bound_calls
from placedsl.problem.values import Values

SPEC = """
graph {
    node a { time = {accelerator: 2 ms, host: 9 ms},  memory = 2 GiB, output = 8 MB }
    node b { time = {accelerator: 4 ms, host: 30 ms}, memory = 3 GiB, output = 8 MB }
    node c { time = {accelerator: 4 ms, host: 30 ms}, memory = 3 GiB, output = 8 MB }
    node d { time = {accelerator: 2 ms, host: 9 ms},  memory = 1 GiB }
    a -> b -> d
    a -> c -> d
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 16 GB/s }
schedule calls
minimize latency
subject to
    memory
"""


class Listener:
    """A line on which nothing is ever told of a search; keeps what is said."""

    best = math.inf

    def __init__(self) -> None:
        self.said: list[tuple[Integers | None, float, Values | None]] = []

    def report(
        self,
        placement: Integers | None,
        bound: float,
        values: Values | None = None,
        by: str = "",
        certificate: object = None,
    ) -> None:
        """Keep it."""
        self.said.append((placement, bound, values))


def test_the_program_over_ideals_finds_the_best_of_all_placements_unasked() -> None:
    problem = placedsl.loads(SPEC).problem
    everything = [evaluate(problem, placement) for placement in itertools.product(range(3), repeat=4)]
    least = min(found.objectives[0] for found in everything if found.feasible)
    listener = Listener()
    bound_calls(listener, problem, None)
    values = []
    for placement, bound, own in listener.said:
        assert bound <= least
        if placement is not None:
            found = evaluate(problem, placement, own)
            assert found.feasible
            values.append(found.objectives[0])
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(least, rel=1e-9)
    assert listener.said[-1][1] == pytest.approx(least, rel=1e-9)
