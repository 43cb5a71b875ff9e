"""Numbers that are so far apart, or so near to a tolerance, that solvers have been wrong about them."""

from __future__ import annotations

import pytest
from support.solver_alone import by_program

from placedsl import loads
from placedsl.planner.request import Request
from placedsl.planner.solve import solve

pytestmark = pytest.mark.rotates(2)

#: Whatever needs no accelerator takes ten million seconds and 20 ms: a bound of the largest load that is just that.
ONE_WAY = """
graph {
    node n0 { time = {accelerator: 5000000000 ms, host: 10000000000 ms}, memory = 1 MiB, output = 1 MiB }
    node n1 { time = {host: 20 ms}, output = 1 MiB }
}
device gpu: accelerator
device cpu: host
interconnect { bandwidth = 2000 MiB/s }
minimize peak_memory then time_per_sample
"""


@pytest.mark.parametrize("solver", ["highs", "cp-sat", "pyomo", "mip", "cvxpy"])
def test_bounds_that_only_rounding_contradicts(solver: str) -> None:
    answer = by_program(ONE_WAY, solver)
    assert answer.termination == "optimal", answer.message
    assert answer.evaluation is not None
    assert answer.evaluation.objectives == pytest.approx((0.0, 1e7 + 0.02), rel=1e-6)


#: A node of a billionth of the accelerator's time there is three times as long as all else.
HIDDEN_TIME = """
graph {
    node n0 { time = {accelerator: 1 ms, host: 10000000000 ms}, memory = 1073741825 B, parameters = 8 MiB }
    node n1 { time = {accelerator: 0.75 ms, host: 2 ms}, output = 9 MiB }
    node n2 { time = {accelerator: 1 ms, host: 10000000000 ms}, output = 1 MiB, parameters = 8 MiB }
    node n3 { time = {accelerator: 2500000000 ms, host: 20 ms}, memory = 1048576 B, output = 9 MiB }
    n0 -> n1
    n0 -> n2
    n1 -> n2
}
device gpu[3]: accelerator
interconnect { bandwidth = 2000 MiB/s }
device cpu: host
schedule calls
minimize latency
subject to
    memory
"""


@pytest.mark.parametrize("solver", ["highs", "mip", "pyomo", "cvxpy", "cp-sat"])
def test_what_a_share_of_an_integer_hides(solver: str) -> None:
    answer = by_program(HIDDEN_TIME, solver)
    assert answer.termination == "optimal", answer.message
    assert answer.value == pytest.approx(0.02, rel=1e-6)


#: Less than a millionth of the best time is what one device less would take longer.
A_MILLIONTH = """
graph {
    node n0 { time = {accelerator: 1000000 ms}, memory = 0 B, output = 4 MiB, parameters = 8 MiB }
    node n1 { time = {accelerator: 0.75 ms}, memory = 1073741825 B, output = 0 MiB, parameters = 8 MiB }
}
cluster server[2] {
    device gpu[1]: accelerator { memory = 1073741825 B }
    interconnect { bandwidth = 8000 MiB/s }
}
interconnect { bandwidth = 4000 MiB/s }
minimize time_per_sample then devices_used
subject to
    contiguous
    memory
    rule: (n0 on server[1].gpu[1]) or (n1 on server[1].gpu[1])
"""


@pytest.mark.parametrize("solver", ["highs", "mip", "pyomo", "cvxpy", "cp-sat"])
def test_a_millionth_is_worth_a_device(solver: str) -> None:
    answer = by_program(A_MILLIONTH, solver)
    if solver == "mip":  # CBC keeps rows to a millionth of their terms
        assert answer.termination == "error"
        assert "too many powers of ten apart for mip; try --solver cp-sat" in answer.message
        return
    assert answer.termination == "optimal", answer.message
    assert answer.evaluation is not None
    assert answer.evaluation.objectives == pytest.approx((1000.0, 2.0), rel=1e-9)


def test_a_device_less_beside_hidden_times() -> None:
    """Whether a device less does as well is asked of sums that a prohibitive time must not hide."""
    answer = loads(
        """
graph {
    node n0 { time = {host: 20 us, tpu: 1 us}, output = 9 MiB }
    node n1 { time = {accelerator: 1000000 us, host: 9 us}, output = 0 MiB }
    node n2 { time = {accelerator: 1.5 us, host: 1000000 us, tpu: 4 us}, output = 1 MiB }
    node n3 { time = {host: 1 us}, output = 9 MiB }
    n0 -> n1
    n0 -> n2
    n0 -> n3
}
device gpu[2]: accelerator
device tpu[1]: accelerator
interconnect { bandwidth = 8000000 MiB/s }
device cpu: host
minimize time_per_sample then devices_used
subject to
    contiguous
"""
    ).solve(method="dp")
    assert answer.evaluation is not None
    assert answer.evaluation.objectives == pytest.approx((10e-6, 2.0), rel=1e-9)


@pytest.mark.parametrize("solver", ["highs", "mip", "pyomo", "cvxpy", "cp-sat"])
def test_a_start_that_reductions_do_not_keep(solver: str) -> None:
    """HiGHS takes the start for the optimum where all that its reductions leave is better."""
    text = """
graph {
    node n0 { time = {accelerator: 7 ns, host: 1 ns}, memory = 1073741825 B, output = 0 MiB, parameters = 1 MiB }
    node n1 { time = {accelerator: 0 ns, host: 9 ns}, memory = 1 B, output = 0 MiB, parameters = 8 MiB }
    node n2 { time = {accelerator: 0.75 ns}, memory = 1073741825 B, output = 1 MiB }
    n1 -> n2
}
device gpu[2]: accelerator { memory = 1073741825 B }
interconnect { bandwidth = 100000000000 MiB/s }
device cpu: host
schedule dataflow
minimize latency
subject to
    sequential
"""
    spec = loads(text)
    answer = solve(spec.problem, spec.elaborated.checked_formulations, Request(solver=solver))
    assert answer.termination == "optimal", answer.message
    assert answer.value == pytest.approx(1e-9, rel=1e-6)


#: Without reductions, as such numbers are solved, HiGHS ends with an error under the units that Pyomo is given.
NO_REDUCTIONS = """
graph {
    node n0 { time = {accelerator: 5000000000 ms, host: 9 ms}, memory = 3 B, parameters = 1 MiB }
    node n1 { time = {accelerator: 0 ms, host: 9 ms}, memory = 3 B, output = 9 MiB, parameters = 1 MiB }
    node n2 { time = {accelerator: 3.5 ms}, memory = 1 B, output = 0 MiB }
    node n3 { time = {accelerator: 10000000000 ms, host: 10000000000 ms}, memory = 0 B, output = 9 MiB }
    node n4 { time = {accelerator: 2500000000 ms}, memory = 2 B, output = 4 MiB }
    node n5 { time = {accelerator: 3 ms, host: 2 ms}, memory = 3 B, output = 4 MiB, parameters = 1 MiB }
    n0 -> n1
    n0 -> n3
    n0 -> n4
    n2 -> n3
    n3 -> n4
    n4 -> n5
}
device gpu[1]: accelerator
interconnect { bandwidth = 8000 MiB/s }
device cpu: host
schedule calls
minimize latency
subject to
    memory
"""


@pytest.mark.parametrize("solver", ["highs", "pyomo", "cvxpy", "cp-sat"])
def test_an_error_without_reductions(solver: str) -> None:
    spec = loads(NO_REDUCTIONS)
    answer = solve(spec.problem, spec.elaborated.checked_formulations, Request(solver=solver))
    if solver != "cp-sat" and answer.termination == "error":
        # HiGHS 1.16 calls infeasible what a placement satisfies, by processor and units: that is told
        assert f"too many powers of ten apart for {solver}; try --solver cp-sat" in answer.message
        return
    assert answer.termination == "optimal", answer.message
    assert answer.value == pytest.approx(12500000.0, rel=1e-6)


def test_what_says_nothing_of_a_unit() -> None:
    """Rows over one column drew the unit of the objective away, until its bound was beyond what was known."""
    text = """
graph { node n0 { time = {host: 20 ns}, output = 64 MiB } }
device gpu[2]: accelerator
interconnect { bandwidth = 1000000000 MiB/s }
device cpu: host
schedule calls
minimize latency
"""
    spec = loads(text)
    request = Request(solver="highs", time_limit=20.0, workers=1)
    answer = solve(spec.problem, spec.elaborated.checked_formulations, request)
    assert answer.termination == "optimal", answer.message
    assert answer.value == pytest.approx(2e-8, rel=1e-6)


ONE_DEVICE = """
graph {
    node n0 { time = {accelerator: 100000000 ms}, output = 0 MiB, color = 0 }
    node b0 { time = {accelerator: 2 ms}, color = 0, backward = true }
    node n1 { time = {accelerator: 100000000 ms}, output = 9 MiB, color = 1 }
    node b1 { time = {accelerator: 0 ms}, output = 9 MiB, color = 1, backward = true }
    node n2 { time = {accelerator: 0.25 ms}, output = 9 MiB, color = 2 }
    node b2 { time = {accelerator: 100000000 ms}, output = 4 MiB, color = 2, backward = true }
    node n3 { time = {accelerator: 1 ms}, color = 3 }
    node b3 { time = {accelerator: 1 ms}, output = 9 MiB, color = 3, backward = true }
    n0 -> n1
    n0 -> n2
    n0 -> n3
    n1 -> b1
    n1 -> n2
    n1 -> n3
    b1 -> b0
    n2 -> b2
    b2 -> b0
    b2 -> b1
    b3 -> b0
    b3 -> b1
}
device gpu[1]: accelerator
interconnect { bandwidth = 2000 MiB/s }
schedule overlapped
minimize communication then time_per_sample
subject to
    colocated by color
    contiguous
    rule0: load(gpu[1]) <= 2 * load(gpu[1]) + 6 ms
"""


def test_what_a_solver_calls_infeasible_in_spite_of_a_placement() -> None:
    """Its numbers are the reason, and that is what is said."""
    spec = loads(ONE_DEVICE)
    answer = solve(spec.problem, spec.elaborated.checked_formulations, Request(solver="pyomo"))
    reason = "calls infeasible what a verified placement satisfies: its numbers lie too many powers of ten apart"
    assert answer.termination == "optimal" or reason in answer.message
    assert answer.value == 0.0


TO_THE_UNIT = """
graph {
    node n0 { time = {accelerator: 1 ns, host: 10000000000 ns}, memory = 1048576 B, output = 1 MiB }
    node n1 { time = {accelerator: 0 ns, host: 20 ns}, memory = 1048576 B }
    node n2 { time = {accelerator: 10000000000 ns, host: 20 ns}, memory = 0 B }
    n0 -> n1
    n0 -> n2
}
device gpu[1]: accelerator { memory = 1073741826 B }
interconnect { bandwidth = 1000000000 MiB/s }
device cpu: host
minimize peak_memory then time_per_sample
subject to
    convex
    rule0: min(load(cpu), load(cpu)) <= 1 ns
    rule1: load(gpu[1]) >= 3 ns or load(cpu) <= 3 ns
"""


def test_a_point_that_is_refused_is_told() -> None:
    """Where a byte less is asked for, and the point breaks a rule by what solvers allow: an error without a word."""
    spec = loads(TO_THE_UNIT)
    answer = solve(spec.problem, spec.elaborated.checked_formulations, Request(solver="highs"))
    refused = "highs gives a point that the evaluator refuses: its numbers lie too many powers of ten apart for highs"
    assert answer.termination == "optimal" or refused in answer.message
    assert answer.value == 2097152.0
