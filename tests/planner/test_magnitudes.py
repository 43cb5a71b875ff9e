"""Programs whose numbers are very small, very large or far apart have the optimum that enumeration finds."""

from __future__ import annotations

import random

import pytest
from support.brute_force import best_by_evaluation
from support.solver_alone import by_program

from placedsl import loads
from placedsl.budget import Budget
from placedsl.ir.program import LinearProgram
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.planner.strategies import program as strategy
from placedsl.solvers.interface import Outcome, Progress
from placedsl.solvers.isolated import run_isolated

pytestmark = pytest.mark.rotates(2)

SOLVERS = ("highs", "cp-sat")
GOALS = (
    "time_per_sample", "max(d in gpu: load(d)) + load(cpu)", "sum(d in devices: load(d))",
    "time_per_sample + 0.1 * load(gpu[1])", "max(d in devices: load(d)) - min(d in gpu: load(d))",
)  # fmt: skip


def prohibitive_host(seed: int) -> str:
    """Microseconds on accelerators, hours on the host."""
    of = random.Random(seed)
    nodes = [
        f"    node n{v} {{ time = {{accelerator: {of.randint(10, 60)} us, host: {of.randint(1, 9)} h}} }}"
        for v in range(of.randint(3, 6))
    ]
    goal = of.choice(GOALS)
    rules = f"minimize {goal}\nsubject to\n    apart: not (n0 on gpu[1] and n1 on gpu[1])\n"
    return "\n".join(["graph {", *nodes, "}", "device gpu[2]: accelerator", "device cpu: host", rules])


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", [4, 5, 8, 10, 12, 15])
def test_numbers_ten_powers_of_ten_apart(seed: int, solver: str) -> None:
    text = prohibitive_host(seed)
    best = best_by_evaluation(loads(text).problem)
    assert best is not None
    answer = by_program(text, solver)
    assert answer.termination == "optimal"
    assert answer.value == pytest.approx(best[0], rel=1e-6)
    assert answer.bound <= best[0] * (1 + 1e-6)
    assert answer.bound >= best[0] * (1 - 1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_nanoseconds_with_a_variable_in_no_row(solver: str) -> None:
    text = """
graph { node a { time = {accelerator: 1 ns} } }
device gpu[2]: accelerator
var u: time in 0 ns .. 4 ns
minimize time_per_sample - u
"""
    answer = by_program(text, solver)
    assert answer.termination == "optimal"
    assert answer.value == pytest.approx(-3e-9, rel=1e-6)


@pytest.mark.parametrize("solver", [*SOLVERS, "auto"])
def test_a_byte_more_than_there_is(solver: str) -> None:
    text = """
graph { node a { time = {accelerator: 2 s, host: 100 s}, memory = 17179869185 B } }
device gpu[1]: accelerator { memory = 16 GiB }
device cpu: host
minimize time_per_sample
subject to
    memory
"""
    assert loads(text).solve(solver=solver).value == 100.0
    assert loads(text.replace("9185", "9184")).solve(solver=solver).value == 2.0


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_picosecond_more_than_a_nanosecond(solver: str) -> None:
    text = """
graph { node a { time = {accelerator: 1.001 ns} } }
device gpu[1]: accelerator
minimize devices_used
subject to
    soon: load(gpu[1]) <= 1 ns
"""
    assert loads(text).solve(solver=solver).termination == "infeasible"
    assert loads(text.replace("1.001", "1")).solve(solver=solver).termination == "optimal"


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("objective", ["100000000", "50000000 * sum(v in nodes, d in gpu: v on d)"])
def test_whole_objectives_give_no_way_to_later_ones(objective: str, solver: str) -> None:
    text = f"""
graph {{
    node a {{ time = {{accelerator: 1 s}} }}
    node b {{ time = {{accelerator: 1 s}} }}
}}
device gpu[2]: accelerator
minimize {objective} + (a on gpu[2]) + 2 * (b on gpu[2]) then time_per_sample
"""
    answer = loads(text).solve(solver=solver)
    assert answer.termination == "optimal"
    assert answer.evaluation is not None
    assert answer.evaluation.objectives == (100000000, 2)


def test_solvers_may_not_stop_one_short_of_a_whole_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    """However large its constant part: a gap is a share of the value."""
    asked: list[float] = []

    def heard(name: str, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:
        asked.append(budget.gap)
        return run_isolated(name, program, budget, progress)

    monkeypatch.setattr(strategy, "run_isolated", heard)
    spec = loads("""
graph {
    node a { time = {accelerator: 1 s} }
    node b { time = {accelerator: 1 s} }
}
device gpu[2]: accelerator
minimize 100000000 + (a on gpu[2]) + 2 * (b on gpu[2]) then time_per_sample
""")
    solve(spec.problem, spec.elaborated.checked_formulations, Request(solver="highs"))
    assert len(asked) == 3  # the second asks for one less, and there is none
    assert asked[0] * 100000000 < 1


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("objective", "rule"),
    [
        ("load(gpu[1]) - load(gpu[2])", "least: load(gpu[1]) >= load(gpu[2])"),
        ("max(d in gpu: load(d)) - min(d in gpu: load(d))", "least: load(gpu[1]) >= 0.1 s"),
        ("sum(d in gpu: load(d)) - 0.6 s", "least: load(gpu[1]) >= 0.1 s"),
    ],
)
def test_an_optimum_of_zero_is_proven(objective: str, rule: str, solver: str) -> None:
    """0.1 + 0.2 is not quite 0.3, and what cancels is measured by its terms."""
    text = f"""
graph {{
    node a {{ time = {{accelerator: 0.1 s}} }}
    node b {{ time = {{accelerator: 0.2 s}} }}
    node c {{ time = {{accelerator: 0.3 s}} }}
}}
device gpu[2]: accelerator
minimize {objective}
subject to
    {rule}
"""
    answer = loads(text).solve(solver=solver)
    assert answer.termination == "optimal", answer.message
    assert answer.value == pytest.approx(0.0, abs=1e-12)
    assert answer.bound <= answer.value
    assert answer.gap <= 1e-6


LEAST_MEMORY = """
graph {
    node n0 { time = {accelerator: 7 ns}, memory = 1073741825 B, output = 64 MiB }
    node n1 { time = {accelerator: 1 ns}, memory = 1 B, output = 4 MiB }
    node n2 { time = {accelerator: 0 ns}, memory = 3 B, output = 1 MiB }
    node n3 { time = {accelerator: 0.5 ns}, memory = 1073741825 B }
    node n4 { time = {accelerator: 7 ns}, memory = 3 B, output = 9 MiB }
    n0 -> n2
    n0 -> n3
    n0 -> n4
    n1 -> n2
    n1 -> n4
    n2 -> n3
    n2 -> n4
    n3 -> n4
}
device gpu[2]: accelerator { memory = 2147483648 B }
interconnect { bandwidth = 100000000000 MiB/s }
minimize peak_memory then time_per_sample
subject to
    contiguous
    memory
"""


@pytest.mark.parametrize("solver", [None, "highs", "cp-sat"])
def test_a_largest_value_in_bytes_gives_no_way(solver: str | None) -> None:
    """By enumeration; two bytes more make the later objective 0.01 ns less."""
    answer = loads(LEAST_MEMORY).solve(solver=solver)
    assert answer.evaluation is not None
    assert answer.evaluation.objectives == (1073741829.0, pytest.approx(8.69e-9, rel=1e-9))


WIDE_SIZES = """
graph {
    node n0 { time = {accelerator: 3.5 us}, memory = 2 B, output = 0 MiB, color = 0 }
    node b0 { time = {accelerator: 2 us}, memory = 3 B, output = 0 MiB, color = 0, backward = true }
    node n1 { time = {accelerator: 2 us, host: 9 us}, memory = 1 B, output = 9 MiB, color = 1 }
    node b1 { time = {accelerator: 0 us, host: 9 us}, memory = 1073741825 B, color = 1, backward = true }
    node n2 { time = {accelerator: 1 us, host: 20 us}, memory = 1073741825 B, output = 0 MiB, color = 2 }
    node b2 { time = {accelerator: 0.5 us}, memory = 2 B, output = 4 MiB, color = 2, backward = true }
    n0 -> b0
    n1 -> b1
    n2 -> b2
}
device gpu[2]: accelerator { memory = 1073741825 B }
device cpu: host
link gpu <-> gpu { bandwidth = 1000000 MiB/s, latency = 1 us }
link gpu <-> cpu { bandwidth = 1000000 MiB/s, latency = 1 us }
schedule gpipe
minimize peak_memory then time_per_sample
subject to
    colocated by color
    rule: min(load(gpu[2]), load(cpu)) <= 6 us
"""


@pytest.mark.parametrize("solver", ["highs", "cp-sat", "pyomo", "mip", "cvxpy"])
def test_sizes_that_solvers_drop_beside_larger_ones(solver: str) -> None:
    """HiGHS drops coefficients below 1e-9 of the largest, and called infeasible what a placement satisfies."""
    answer = by_program(WIDE_SIZES, solver)
    assert answer.termination == "optimal", answer.message
    assert answer.evaluation is not None
    assert answer.evaluation.objectives == (1073741827.0, pytest.approx(18e-6, rel=1e-9))


@pytest.mark.parametrize("solver", ["highs", "cp-sat"])
def test_a_zero_whose_terms_are_zero(solver: str) -> None:
    """On a grid of integers the bound is just below it: no share of the value, but none of the data either."""
    answer = by_program(
        """
graph {
    node a { time = {accelerator: 3 ms, host: 7 ms}, memory = 1 MiB }
    node b { time = {accelerator: 2 ms, host: 7 ms}, memory = 1 MiB }
    a -> b
}
device gpu[1]: accelerator { memory = 16 MiB }
device cpu[1]: host
interconnect { bandwidth = 1000 MiB/s }
var y: integer in 0..2
schedule calls
minimize (max(y * 2 ms, memory(gpu[1]) / (1 MiB) * 1 ms)) - y * 1 ms
""",
        solver,
    )
    assert answer.termination == "optimal", answer.message
    assert answer.evaluation is not None
    assert answer.evaluation.objectives == (0.0,)
    assert answer.bound <= 0.0
    assert answer.proven()
