"""Strict comparisons of real numbers: a margin, and none needed where nothing can hold."""

from __future__ import annotations

import pytest

from placedsl import loads
from placedsl.diagnostics import InputError

SPEC = """
graph { node a { time = {accelerator: 2 s} } }
device gpu[2]: accelerator
var t: time
var u: time
minimize time_per_sample
subject to
"""


@pytest.mark.parametrize("solver", ["highs", "cp-sat"])
@pytest.mark.parametrize(
    "rule", ["t + u < 0 s", "0 s > t + load(gpu[1])", "t + u + load(gpu[1]) + load(gpu[2]) < -1 s"]
)
def test_what_no_values_keep_is_infeasible(rule: str, solver: str) -> None:
    assert loads(SPEC + f"    below: {rule}\n").solve(solver=solver).termination == "infeasible"


def test_what_some_values_keep_needs_bounds() -> None:
    with pytest.raises(InputError, match="compares with < or > what has no bounds"):
        loads(SPEC + "    below: t + u < 1 s\n").solve(solver="highs")
