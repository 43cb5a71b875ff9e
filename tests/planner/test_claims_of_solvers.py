"""What solvers proved and is not so: cut-off optima, overlooked limits and costs, each with its optimum."""

from __future__ import annotations

import pytest

from placedsl import loads

FULL_TO_THE_BYTE = """
graph {
    node n0 { time = {accelerator: 0.75 s}, memory = 3 B, output = 0 MiB }
    node n1 { time = {accelerator: 1.25 s}, memory = 1048576 B, output = 1 MiB, color = 1, parameters = 8 MiB }
    node n2 { time = {accelerator: 1 s}, memory = 3 B, output = 0 MiB, parameters = 1 MiB }
    node n3 { time = {accelerator: 2.5 s}, memory = 3 B, output = 0 MiB, parameters = 1 MiB }
    node n4 { time = {accelerator: 1 s}, memory = 1073741825 B, output = 0 MiB }
    node n5 { time = {accelerator: 0.25 s}, memory = 1048576 B, output = 9 MiB, color = 5, parameters = 8 MiB }
    n0 -> n1
    n0 -> n2
    n0 -> n3
    n0 -> n4
    n0 -> n5
    n1 -> n3
    n2 -> n5
    n3 -> n4
}
device gpu[3]: accelerator { memory = 1073741826 B }
interconnect { bandwidth = 100 MiB/s }
schedule duplex
parallelism { data = 1..3 }
minimize time_per_sample
subject to
    colocated by color
    memory
"""

PROHIBITIVE = """
graph {
    node n0 { time = {accelerator: 2 ms, host: 2 ms}, memory = 1073741825 B, output = 64 MiB, color = 0 }
    node n1 { time = {accelerator: 0 ms, host: 1000000 ms}, memory = 1 B, output = 0 MiB }
    node n2 { time = {accelerator: 1000000 ms, host: 20 ms}, memory = 1073741825 B, output = 0 MiB, parameters = 1 MiB }
}
device gpu[1]: accelerator
interconnect { bandwidth = 100000 MiB/s }
device cpu: host
schedule overlapped
parallelism { data = 1..2 }
minimize time_per_sample
subject to
    colocated by color
    contiguous
    memory
"""

CALLS = """
graph {
    node n0 { time = {host: 1 s}, memory = 1 B, output = 4 MiB }
    node n1 { time = {accelerator: 1 s, tpu: 2 s}, memory = 1073741825 B, output = 4 MiB }
    node n2 { time = {accelerator: 100000000 s, host: 20 s, tpu: 1 s}, memory = 1 B, output = 1 MiB }
    node n3 { time = {accelerator: 50000000 s, host: 1 s, tpu: 4 s}, memory = 1 B, output = 0 MiB, color = 3 }
    node n4 { time = {host: 100000000 s, tpu: 2 s}, memory = 0 B, output = 1 MiB }
    node n5 { time = {host: 1 s, tpu: 4 s}, memory = 2 B, output = 64 MiB }
    n0 -> n1
    n0 -> n3
    n0 -> n4
    n0 -> n5
    n1 -> n2
    n1 -> n4
    n2 -> n4
    n2 -> n5
    n3 -> n4
    n3 -> n5
}
device gpu[1]: accelerator
device tpu[1]: accelerator
interconnect { bandwidth = 1 MiB/s }
device cpu: host
schedule calls
minimize latency
subject to
    colocated by color
    memory
"""

#: A load of at most a millisecond, and a time on that device 10^10 times as long, which no solver may overlook.
HIDDEN_LIMIT = """
graph {
    node n0 { time = {accelerator: 3 ms, host: 2 ms}, output = 1 MiB }
    node n1 { time = {accelerator: 2 ms, host: 9 ms}, output = 9 MiB }
    node n2 { time = {accelerator: 0 ms, host: 10000000000 ms}, output = 9 MiB, color = 2 }
    node n3 { time = {accelerator: 7 ms, host: 9 ms}, output = 0 MiB }
    node n4 { time = {accelerator: 0.5 ms}, output = 0 MiB }
    n0 -> n1
    n0 -> n3
    n0 -> n4
    n1 -> n2
    n1 -> n3
    n2 -> n3
    n2 -> n4
}
device gpu[1]: accelerator
interconnect { bandwidth = 100000 MiB/s }
device cpu: host
schedule duplex
minimize time_per_sample
subject to
    convex
    limit: load(cpu) <= 1 ms
"""

#: What is decided costs milliseconds beside hours that are paid in any case.
SMALL_COSTS = """
graph {
    node n0 { time = {accelerator: 100000000 ms}, output = 64 MiB, parameters = 8 MiB }
    node n1 { time = {accelerator: 5 ms, host: 100000000 ms}, output = 9 MiB }
    node n2 { time = {accelerator: 0 ms, host: 2 ms}, output = 0 MiB, parameters = 1 MiB }
    node n3 { time = {accelerator: 5 ms, host: 2 ms}, output = 9 MiB, parameters = 8 MiB }
    node n4 { time = {accelerator: 1 ms, host: 9 ms}, output = 0 MiB }
    n0 -> n1
    n1 -> n2
    n2 -> n3
    n2 -> n4
}
device gpu[2]: accelerator
interconnect { bandwidth = 1000 MiB/s }
device cpu: host
schedule gpipe
parallelism { data = 1..3 }
minimize time_per_sample
subject to
    contiguous
"""


#: One of HiGHS's reductions, enumeration, left nothing of the program.
ENUMERATED = """
graph {
    node n0 { time = {accelerator: 1.5 ns, host: 1 ns}, output = 4 MiB }
    node n1 { time = {accelerator: 0.75 ns}, output = 1 MiB }
    node n2 { time = {host: 9 ns}, output = 4 MiB }
    node n3 { time = {accelerator: 0 ns, host: 20 ns}, output = 0 MiB }
    node n4 { time = {accelerator: 0.75 ns, host: 20 ns}, output = 0 MiB }
    n0 -> n1
    n0 -> n2
    n0 -> n3
    n1 -> n4
    n2 -> n3
    n2 -> n4
}
device gpu[3]: accelerator
interconnect { bandwidth = 1000000000 MiB/s }
device cpu: host
schedule calls
minimize latency
"""
#: Of two loads one is at most 12 ms, and both could be 10^8 times as long: reductions left nothing of the program.
HIDDEN_ALTERNATIVE = """
graph {
    node n0 { time = {accelerator: 0.5 ms, host: 2 ms}, memory = 1048576 B, output = 64 MiB, color = 0 }
    node n1 { time = {host: 100000000 ms}, memory = 1048576 B, output = 0 MiB, parameters = 1 MiB }
    node n2 { time = {host: 100000000 ms}, memory = 1048576 B, output = 9 MiB, parameters = 1 MiB }
    n0 -> n1
    n0 -> n2
}
cluster server[2] {
    device gpu[2]: accelerator { memory = 2147483648 B }
    interconnect { bandwidth = 2000 MiB/s }
}
interconnect { bandwidth = 2000 MiB/s }
device cpu: host
schedule duplex
minimize time_per_sample
subject to
    colocated by color
    contiguous
    memory
    low: min(load(server[2].gpu[1]), load(cpu)) <= 12 ms
"""
#: A millisecond beside nanoseconds: within its usual tolerance CBC takes the best run for one that is not whole.
MILLION_TIMES = """
graph {
    node n0 { time = {accelerator: 1000000 ns}, memory = 0 B, output = 64 MiB }
    node n1 { time = {accelerator: 5 ns, tpu: 1 ns}, memory = 1 B, output = 0 MiB, parameters = 8 MiB }
    node n2 { time = {accelerator: 0.75 ns, tpu: 4 ns}, memory = 1 B, output = 0 MiB, parameters = 1 MiB }
    node n3 { time = {accelerator: 2 ns, tpu: 1 ns}, memory = 1073741825 B, output = 1 MiB, parameters = 1 MiB }
    n0 -> n3
    n1 -> n2
    n1 -> n3
}
device gpu[2]: accelerator { memory = 2147483648 B }
device tpu[1]: accelerator { memory = 2147483648 B }
interconnect { bandwidth = 100000000000 MiB/s }
schedule calls
minimize latency
subject to
    memory
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("text", "solver", "optimum"),
    [
        (FULL_TO_THE_BYTE, "highs", 2.875), (PROHIBITIVE, "mip", 0.02), (CALLS, "highs", 13.0), (CALLS, "cp-sat", 13.0),
        (HIDDEN_LIMIT, "mip", 0.0125), (HIDDEN_LIMIT, "cvxpy", 0.0125),
        (SMALL_COSTS, "highs", 50000.007), (SMALL_COSTS, "cvxpy", 50000.007), (SMALL_COSTS, "cp-sat", 50000.007),
        (ENUMERATED, "highs", 1.8e-8), (ENUMERATED, "pyomo", 1.8e-8), (ENUMERATED, "cvxpy", 1.8e-8),
        (HIDDEN_ALTERNATIVE, "highs", 200000.0), (HIDDEN_ALTERNATIVE, "pyomo", 200000.0),
        (HIDDEN_ALTERNATIVE, "cvxpy", 200000.0),
        (MILLION_TIMES, "mip", 0.00100000228), (MILLION_TIMES, "pyomo:cbc", 0.00100000228),
    ],
)  # fmt: skip
def test_what_programs_got_wrong(text: str, solver: str, optimum: float) -> None:
    """By enumeration: reductions that cut off the optimum, and bounds that rest on what nobody would choose."""
    answer = loads(text).solve(solver=solver)
    assert answer.termination == "optimal", answer.message
    assert answer.value == pytest.approx(optimum, rel=1e-9)
    assert answer.bound <= optimum * (1 + 1e-9)


def test_a_point_that_breaks_rows() -> None:
    """Two nodes of three bytes have no room beside one that fills its device, and must not share the other with it
    between them: there is no placement, and CBC's reductions made one."""
    text = """
graph {
    node n0 { time = {accelerator: 0.25 us}, memory = 3 B, output = 4 MiB }
    node n1 { time = {accelerator: 0.75 us}, memory = 1048576 B, output = 64 MiB }
    node n2 { time = {accelerator: 7 us}, memory = 1048576 B, output = 0 MiB }
    node n3 { time = {accelerator: 0.25 us}, memory = 0 B, output = 9 MiB }
    node n4 { time = {accelerator: 25 us}, memory = 1073741825 B, output = 64 MiB }
    node n5 { time = {accelerator: 7 us}, memory = 3 B, output = 4 MiB }
    n0 -> n4
    n0 -> n5
    n1 -> n5
    n3 -> n5
    n4 -> n5
}
device gpu[2]: accelerator { memory = 1073741825 B }
interconnect { bandwidth = 100000000 MiB/s }
schedule overlapped
minimize time_per_sample
subject to
    convex
    memory
"""
    assert loads(text).solve(solver="mip").termination == "infeasible"
