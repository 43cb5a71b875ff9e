"""Objectives in order of importance: which of two placements is better, and what later objectives may cost."""

from __future__ import annotations

import pytest

from placedsl import loads
from placedsl.planner.incumbent import Incumbent, _better
from placedsl.planner.request import Request
from placedsl.planner.solve import solve

SPEC = """
graph {
    node a { time = {accelerator: 4 ms}, memory = 1 GiB, output = 1 KiB }
    node b { time = {accelerator: 5 ms}, memory = 1 GiB, output = 1 KiB }
    a -> b
}
device gpu[2]: accelerator
interconnect { bandwidth = 16 GB/s }
"""
ABOVE = SPEC + "var x: real in 0..10\nminimize x then devices_used\nsubject to\n    above: x >= 4\n"
THREE = SPEC + "minimize sum(d in devices: memory(d)) then devices_used then time_per_sample\n"


def offers(*values: float, slack: float | None) -> tuple[tuple[float, ...], float]:
    """Two devices, then one, with these values of x; the first objective is finished in between."""
    best = Incumbent(loads(ABOVE).problem, None, 0.0)
    assert best.offer([0, 1], {"x": {(): values[0]}})
    limit = best.finish(slack) if slack is not None else float("nan")
    assert best.offer([0, 0], {"x": {(): values[1]}})
    assert best.evaluation is not None
    return best.evaluation.objectives, limit


def test_within_the_slack_of_a_finished_objective_the_later_one_decides() -> None:
    short = 4 * (1 - 1e-8)  # as a solver may give it, and as the evaluator accepts it
    objectives, limit = offers(short, 4.0, slack=1e-7)
    assert limit == pytest.approx(short * (1 + 1e-7), rel=1e-15)
    assert objectives == (4.0, 1.0)
    assert offers(short, 4.0, slack=None)[0] == (short, 2.0)


def test_beyond_the_slack_the_more_important_objective_decides() -> None:
    assert offers(4.0, 4.0 * (1 + 2e-7), slack=1e-7)[0] == (4.0, 2.0)
    assert offers(4.1, 4.0, slack=1e-7)[0] == (4.0, 1.0)


def test_a_whole_number_more_is_worse() -> None:
    best = Incumbent(loads(THREE).problem, None, 0.0)
    assert not _better((2.0**34 + 1, 1.0), (2.0**34, 2.0), best.finished)
    assert _better((2.0**34 * (1 + 1e-10), 1.0), (2.0**34 + 0.5, 2.0), best.finished)


def test_no_drift() -> None:
    """The range is that of the value reached, whatever is accepted afterwards."""
    best = Incumbent(loads(ABOVE).problem, None, 0.0)
    assert best.offer([0, 1], {"x": {(): 4.0}})
    limit = best.finish(1e-7)
    assert best.offer([0, 0], {"x": {(): 4.0 * (1 + 0.9e-7)}})
    assert best.offer([0, 0], {"x": {(): 4.0 * (1 + 1.8e-7)}})
    assert best.value <= limit


def test_an_objective_at_its_trivial_bound_limits_the_later_ones() -> None:
    """One device is the least there is, and needs no solver; the time per sample may not take a second one."""
    spec = loads(THREE)
    answer = solve(spec.problem, spec.elaborated.checked_formulations, Request("highs", "program"))
    assert answer.termination == "optimal", answer.message
    assert answer.evaluation is not None
    assert answer.evaluation.objectives == pytest.approx((2 * 2**30, 1, 9e-3))
