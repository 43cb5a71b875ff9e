"""What the bounds of the variables alone say of an objective is a bound from the first moment on."""

from __future__ import annotations

import pytest

from placedsl import loads

TEXT = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms}, output = 8 MiB }
    node b { time = {accelerator: 6 ms, host: 30 ms}, output = 8 MiB }
    node c { time = {accelerator: 2 ms, host: 7 ms} }
    a -> b -> c
}
device gpu[2]: accelerator
device cpu: host
interconnect { bandwidth = 16 GiB/s }
var extra: real in 2..5
minimize OBJECTIVE
subject to
    odd: a on gpu[1] => not (b on gpu[1])
"""


@pytest.mark.parametrize(
    ("objective", "least"),
    [
        ("sum(d in devices: load(d)) + time_per_sample", 0.0),
        ("time_per_sample + 1 ms * extra", 0.002),
        ("time_per_sample - 1 ms * extra", -0.005),
    ],
)
def test_a_limit_that_leaves_no_time_for_a_solver(objective: str, least: float) -> None:
    spec = loads(TEXT.replace("OBJECTIVE", objective))
    cut_off, whole = spec.solve(time_limit=1e-6), spec.solve()
    assert cut_off.termination == "time_limit"
    assert cut_off.bound >= least - 1e-12
    assert cut_off.bound <= whole.value
    assert whole.proven()
