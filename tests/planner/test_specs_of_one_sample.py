"""Constraints and objectives of one's own for one sample's run, through the programs."""

from __future__ import annotations

import numpy as np
import pytest

from placedsl import loads
from placedsl.grounding.build import build
from placedsl.lowering.lower import lower
from placedsl.planner.answer import Answer
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.problem.formulation import choose
from placedsl.solvers.registry import get

pytestmark = pytest.mark.rotates(2)

GRAPH = """
graph {
    node a { time = {accelerator: 4 s, host: 9 s},  memory = 2 GiB, output = 8 GiB }
    node b { time = {accelerator: 6 s, host: 30 s}, memory = 3 GiB, output = 8 GiB }
    node c { time = {accelerator: 5 s, host: 25 s}, memory = 3 GiB, output = 16 GiB }
    node e { time = {accelerator: 5 s, host: 2 s}, memory = 3 GiB, output = 1 GiB }
    a -> b
    a -> c
    b -> e
    c -> e
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 16 GiB/s }
"""
DATAFLOW = GRAPH + "schedule dataflow\nminimize latency\nsubject to\n    memory\n    sequential\n    congestion\n"
CALLS = GRAPH + "schedule calls\nminimize latency\nsubject to\n    memory\n"


def answer_of(text: str, solver: str = "cp-sat", **wanted: object) -> Answer:
    spec = loads(text)
    request = Request(solver, "program", start=False, **wanted)
    found = solve(spec.problem, spec.elaborated.checked_formulations, request)
    assert found.termination in ("optimal", "infeasible"), found.message
    return found


def test_a_deadline_that_costs_nothing() -> None:
    free = answer_of(DATAFLOW)
    held = answer_of(DATAFLOW + "    soon: finish(b) <= 10.5 s\n")
    assert held.value == pytest.approx(free.value)
    assert held.evaluation.times.finish[1] <= 10.5


def test_a_deadline_that_nobody_keeps() -> None:
    assert answer_of(DATAFLOW + "    soon: finish(e) <= 11 s\n").termination == "infeasible"
    assert answer_of(CALLS + "    soon: finish(e) <= 11 s\n").termination == "infeasible"


def test_a_release_time_moves_the_run() -> None:
    """Nothing else says that the first node waits: the answer's own start times do."""
    free = answer_of(DATAFLOW)
    late = answer_of(DATAFLOW + "    late: start(a) >= 100 s\n")
    assert late.value == pytest.approx(free.value + 100.0)
    assert late.bound == pytest.approx(late.value)


def test_calls_do_not_wait_for_nothing() -> None:
    """Under calls a start is when the inputs are there: a constraint chooses among runs, it delays none."""
    assert answer_of(CALLS + "    late: start(a) >= 100 s\n").termination == "infeasible"
    late = answer_of(CALLS + "    late: start(c) >= 9 s\n")
    assert late.evaluation.times.start[2] >= 9.0 - 1e-9


def test_times_of_two_nodes() -> None:
    apart = answer_of(DATAFLOW + "    gap: start(c) >= finish(b) + 1 s\n")
    times = apart.evaluation.times
    assert times.start[2] >= times.finish[1] + 1.0 - 1e-6


def test_then_fewer_devices() -> None:
    one = answer_of(DATAFLOW)
    two = answer_of(DATAFLOW.replace("minimize latency", "minimize latency then devices_used"))
    assert two.value == pytest.approx(one.value)
    assert two.evaluation.objectives[1] == pytest.approx(two.bounds[1])
    assert two.evaluation.objectives[1] <= sum(load > 0.0 for load in one.evaluation.loads)


def test_latency_second() -> None:
    """Fewest devices first: times have bounds although no objective asks for them."""
    fewest = answer_of(DATAFLOW.replace("minimize latency", "minimize devices_used then latency"))
    assert fewest.evaluation.objectives[0] == 1.0
    assert fewest.evaluation.objectives[1] == pytest.approx(66.0)  # all on the host


@pytest.mark.parametrize("text", [CALLS.replace("schedule calls", "schedule calls { pieces = 2 }"), DATAFLOW])
def test_a_run_that_is_told_is_a_whole_point(text: str) -> None:
    """What an answer says is enough for every column: its point satisfies all rows and has its latency."""
    answer = answer_of(text)
    spec = loads(text)
    grounded = build(spec.problem, choose(spec.problem, spec.elaborated.checked_formulations()))
    point = grounded.hint(np.array(answer.placement), answer.evaluation.values)
    assert not np.isnan(point).any()
    goal = grounded.program.objectives[0]
    assert goal.coefficient @ point[goal.column] + goal.constant == pytest.approx(answer.value)
    assert grounded.placement(point).tolist() == list(answer.placement)
    for block in grounded.program.rows:
        value = np.bincount(block.row, block.coefficient * point[block.column], minlength=block.rows)
        assert (value >= block.lower - 1e-6).all(), block.origin.name
        assert (value <= block.upper + 1e-6).all(), block.origin.name


def test_the_best_known_run_bounds_big_m() -> None:
    spec = loads(DATAFLOW)
    grounded = build(spec.problem, choose(spec.problem, spec.elaborated.checked_formulations()))
    largest = [
        max(note.big_m for note in lower(grounded.program, native=get("highs").features.native, most=most).notes)
        for most in (np.inf, 13.0)
    ]
    assert largest[1] < 0.5 * largest[0] < np.inf


def test_what_a_path_orders_needs_no_order() -> None:
    """Of four nodes only b and c have no path between them: one 0/1 column says which comes first."""
    text = DATAFLOW.replace("    congestion\n", "")
    spec = loads(text)
    grounded = build(spec.problem, choose(spec.problem, spec.elaborated.checked_formulations()))
    (note,) = [n for n in lower(grounded.program).notes if n.constraint == "sequential" and "pairs" in n.rewrite]
    assert note.instances == 3  # on each of three devices


@pytest.mark.parametrize("text", [CALLS, DATAFLOW])
def test_a_sum_of_times_first(text: str) -> None:
    """That the sum is kept to holds times from above only: what bounds them is still the run."""
    found = answer_of(text.replace("minimize latency", "minimize sum(v in nodes: finish(v)) then latency"))
    assert found.termination == "optimal"
    late = answer_of(text + f"    early: sum(v in nodes: finish(v)) <= {found.value + 0.001} s\n")
    assert late.value == pytest.approx(found.evaluation.objectives[1], abs=0.01)


def test_a_tensor_that_does_not_go_is_there_when_it_is_made() -> None:
    """Without a way to e on the second GPU the tensor of a cannot leave late for it."""
    text = DATAFLOW + "    stays: forall v in nodes: v on cpu\n    late: forall t in tensors: sent(t, gpu[2]) >= 20 s\n"
    found = answer_of(text)
    assert found.evaluation.times.finish[0] >= 20.0 - 1e-6


def test_a_soft_release_time_is_kept_where_that_is_cheaper() -> None:
    """Waiting costs a second for a second, starting early five of them."""
    free = answer_of(DATAFLOW)
    kept = answer_of(DATAFLOW + "    soft late at 5: start(a) >= 7 s\n")
    assert kept.value == pytest.approx(free.value + 7.0)
    assert kept.evaluation.soft_costs[0] == pytest.approx(0.0, abs=1e-6)
    broken = answer_of(DATAFLOW + "    soft late at 0.5: start(a) >= 7 s\n")
    assert broken.value == pytest.approx(free.value + 3.5)
