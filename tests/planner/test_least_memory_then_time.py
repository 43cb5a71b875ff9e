"""Memory is least to the byte before time is minimised, where a byte is less than dynamic programming tells apart."""

from __future__ import annotations

import pytest

from placedsl import loads

#: From a campaign: dynamic programming over clusters ended a byte above the least memory, 2^30 + 1 bytes.
SPEC = """
graph {
    node n0 { time = {accelerator: 3 us}, memory = 2 B, output = 9 MiB, parameters = 8 MiB }
    node n1 { time = {accelerator: 5 us}, memory = 2 B, output = 9 MiB, parameters = 1 MiB }
    node n2 { time = {accelerator: 1.75 us}, memory = 1 B, output = 9 MiB, parameters = 8 MiB }
    node n3 { time = {accelerator: 1000000 us}, memory = 1 B, output = 9 MiB }
    node n4 { time = {accelerator: 0 us}, memory = 2 B, output = 4 MiB, color = 4 }
    node n5 { time = {accelerator: 1000000 us}, memory = 1073741825 B, output = 9 MiB }
    n0 -> n4
    n1 -> n2
    n2 -> n5
    n3 -> n5
}
cluster server[2] {
    device gpu[1]: accelerator
    interconnect { bandwidth = 1000000 MiB/s }
}
interconnect { bandwidth = 500000 MiB/s }
schedule duplex
minimize peak_memory then time_per_sample
subject to
    colocated by color
    contiguous
    memory
"""


def test_a_byte_of_a_gigabyte() -> None:
    """By enumeration, in fractions."""
    answer = loads(SPEC).solve(workers=1)
    assert answer.termination == "optimal"
    assert answer.evaluation is not None
    assert answer.evaluation.objectives[0] == 1073741825.0
    assert answer.evaluation.objectives[1] == pytest.approx(1.00000975, rel=1e-9)
    assert answer.bounds[0] <= 1073741825.0


#: From a campaign: CP-SAT, whose grid was two bytes wide, ended a byte above the least memory.
SHARED = """
graph {
    node n0 { time = {accelerator: 5 ms}, memory = 1073741825 B, output = 1 MiB }
    node n1 { time = {accelerator: 0.5 ms}, memory = 1073741825 B, output = 1 MiB, parameters = 1 MiB }
    node n2 { time = {accelerator: 0 ms}, memory = 1 B, output = 0 MiB, parameters = 8 MiB }
    node n3 { time = {accelerator: 1.75 ms}, memory = 2 B, output = 4 MiB }
    n0 -> n3
    n1 -> n2
    n1 -> n3
}
device gpu[2]: accelerator { memory = 2147483648 B }
interconnect { bandwidth = 100000 MiB/s }
schedule overlapped
parallelism { data = 1..2 }
minimize peak_memory then time_per_sample
subject to
    contiguous
    memory
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("solver", [None, "cp-sat", "highs"])
def test_a_byte_where_devices_share_stages(solver: str | None) -> None:
    """By enumeration, in fractions."""
    answer = loads(SHARED).solve(workers=1, solver=solver)
    assert answer.termination == "optimal"
    assert answer.evaluation is not None
    assert answer.evaluation.objectives == (1073741827.0, pytest.approx(0.00675, rel=1e-9))
    assert answer.bounds[0] <= 1073741827.0
