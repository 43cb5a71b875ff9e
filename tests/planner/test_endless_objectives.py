"""Objectives that fall for ever have no optimum, and those that do not have theirs, whatever their variables."""

from __future__ import annotations

import pytest

from placedsl import loads

pytestmark = pytest.mark.rotates(2)

SPEC = """
graph { node a { time = {accelerator: 2 s, host: 9 s}, memory = 2 GiB } }
device gpu[2]: accelerator { memory = 4 GiB }
var t: time
var u: time
"""
UNBOUNDED, INFEASIBLE = None, "infeasible"


@pytest.mark.parametrize("solver", ["highs", "cp-sat"])
@pytest.mark.parametrize(
    ("objective", "rules", "value"),
    [
        ("time_per_sample - t", [], UNBOUNDED),
        ("time_per_sample - t", ["a on gpu[2] => t >= 3 s"], UNBOUNDED),
        ("time_per_sample - t", ["a on gpu[2] => t <= 3 s"], UNBOUNDED),
        ("time_per_sample - t", ["a on gpu[2] => t <= 3 s", "a on gpu[2]"], -1.0),
        ("time_per_sample - t", ["a on gpu[2] => t <= 3 s", "a on gpu[1] => t <= 4 s"], -2.0),
        ("time_per_sample - t", ["a on gpu[2] => t <= 3 s", "count(v in nodes: v on gpu[1]) <= 0"], -1.0),
        ("time_per_sample - t", ["a on gpu[2] => t <= 3 s", "load(gpu[1]) <= 1 s"], -1.0),
        ("time_per_sample - t", ["a on gpu[2] => t <= u", "a on gpu[1] => t <= 4 s"], UNBOUNDED),
        ("time_per_sample - t", ["a on gpu[2] => t <= u", "a on gpu[1] => t <= 4 s", "u <= 5 s"], -3.0),
        ("time_per_sample - t", ["a on gpu[2] => t >= 3 s", "load(gpu[1]) >= 1 s", "load(gpu[2]) >= 1 s"], INFEASIBLE),
        ("time_per_sample - t", ["t - u >= 1 s", "u <= 4 s"], UNBOUNDED),
        ("time_per_sample - t", ["t - u <= 1 s", "u <= 4 s"], -3.0),
        ("time_per_sample - min(t, 5 s)", ["a on gpu[2] => t >= 3 s"], -3.0),
        ("time_per_sample - max(t, 5 s)", ["a on gpu[2] => t >= 3 s"], UNBOUNDED),
        ("time_per_sample - max(t, 5 s)", ["a on gpu[2] => t <= 7 s", "a on gpu[1] => t <= 6 s"], -5.0),
        ("time_per_sample - t", ["t <= max(u, 4 s)", "u <= 3 s"], -2.0),
        ("time_per_sample - t", ["t + 5 s <= max(t, 30 s)"], -23.0),
        ("time_per_sample + u - t", ["t <= u + 3 s"], -1.0),
        ("time_per_sample + u - 2 * t", ["t <= u + 3 s"], UNBOUNDED),
        ("time_per_sample + u - t", ["a on gpu[1] => t <= u + 3 s", "a on gpu[2] => t <= 1 s"], -1.0),
    ],
)
def test_least_values(objective: str, rules: list[str], value: float | str | None, solver: str) -> None:
    numbered = "".join(f"    c{k}: {rule}\n" for k, rule in enumerate(rules))
    text = SPEC + f"minimize {objective}\n" + (f"subject to\n{numbered}" if rules else "")
    answer = loads(text).solve(solver=solver)
    if "cp-sat needs bounds" in answer.message:
        pytest.skip("this solver takes no column without bounds")
    if isinstance(value, float):
        assert answer.termination == "optimal", answer.message
        assert answer.value == pytest.approx(value, rel=1e-6)
    else:
        assert answer.termination == (value or "unbounded"), answer.message


@pytest.mark.parametrize("solver", ["highs", "cp-sat"])
def test_later_objectives_within_earlier_ones(solver: str) -> None:
    goal = "minimize t then time_per_sample - u\nsubject to\n    least: t >= 1 s\n"
    assert loads(SPEC + goal).solve(solver=solver).termination == "unbounded"
    answer = loads(SPEC + goal + "    tied: a on gpu[2] => u <= t + 2 s\n    other: a on gpu[1] => u <= t\n").solve(
        solver=solver
    )
    assert answer.termination == "optimal"
    assert answer.evaluation is not None
    assert answer.evaluation.objectives == pytest.approx((1.0, -1.0), rel=1e-6)
