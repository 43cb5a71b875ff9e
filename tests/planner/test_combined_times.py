"""Objectives that combine times: sums, spans, rewards for starting late; by enumeration, and with every solver."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.one_sample import SHARED, random_graph
from support.orders_of_times import least_of_times

from placedsl import loads
from placedsl.diagnosis.infeasibility.conflict import find
from placedsl.diagnostics import InputError
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.answer import Answer
from placedsl.planner.request import Request
from placedsl.planner.solve import solve

pytestmark = pytest.mark.rotates(2)

F, S, LATENCY = "finish", "start", (1.0, ("latency", 0))
#: How an objective is written, what it adds up, and whether only the latency's limit keeps it from falling for ever.
GOALS = {
    "finish(n0) + finish(n2)": ([(1.0, (F, 0)), (1.0, (F, 2))], False),
    "sum(v in nodes: finish(v))": ([(1.0, (F, v)) for v in range(3)], False),
    "2 * finish(n1) + start(n2) / 2": ([(2.0, (F, 1)), (0.5, (S, 2))], False),
    "max(v in nodes: finish(v)) - start(n1)": ([LATENCY, (-1.0, (S, 1))], False),
    "latency - start(n0) / 2": ([LATENCY, (-0.5, (S, 0))], False),
    "latency + finish(n2) - start(n0) - start(n1)": ([LATENCY, (1.0, (F, 2)), (-1.0, (S, 0)), (-1.0, (S, 1))], False),
    "latency - 2 * start(n2)": ([LATENCY, (-2.0, (S, 2))], True),
    "finish(n1) - start(n0) - start(n2)": ([(1.0, (F, 1)), (-1.0, (S, 0)), (-1.0, (S, 2))], True),
    "0 s - latency": ([(-1.0, ("latency", 0))], True),
}


def random_spec(seed: int, goal: str, further: str = "") -> str:
    """Three nodes on two unlike devices."""
    rng = np.random.default_rng(seed)
    edges = [(u, v) for u, v in ((0, 1), (0, 2), (1, 2)) if rng.random() < 0.6]
    lines = [*random_graph(rng, False)[:4], *(f"    n{u} -> n{v}" for u, v in edges), "}"]
    lines += ["device gpu: accelerator { memory = 8 GiB }", "device cpu: host"]
    lines += ["interconnect { bandwidth = 2 GiB/s }", "schedule dataflow", f"minimize {goal}"]
    lines += ["subject to", "    memory"]
    lines += [f"    {rule}" for rule in SHARED[seed % 3]]
    return "\n".join([*lines, further]) + "\n"


def answer_of(text: str, solver: str = "") -> Answer:
    """By a named solver in a process of its own, else by CP-SAT or, for what rewards later starts, HiGHS."""
    spec = loads(text)
    later = any(" - " in line for line in text.splitlines() if line.startswith("minimize"))
    request = Request(solver or ("highs" if later else "cp-sat"), "program", start=False)
    isolated = request.solver != "cp-sat" or bool(solver)
    return solve(spec.problem, spec.elaborated.checked_formulations, request, isolated=isolated)


def confirmed(answer: Answer, value: float) -> None:
    """The value, proven, and the same when the answer is evaluated again."""
    assert answer.termination == "optimal", answer.message
    assert answer.value == pytest.approx(value, rel=2e-6, abs=1e-6)
    assert answer.evaluation is not None
    again = evaluate(answer.problem, list(answer.placement or ()), answer.evaluation.values)
    assert again.feasible
    assert again.objectives == pytest.approx(answer.evaluation.objectives, rel=1e-9, abs=1e-9)


def settled(text: str, least: float) -> None:
    """The answer has this value; without a least value it is refused."""
    if least == -math.inf:
        with pytest.raises(InputError, match="no least value"):
            answer_of(text)
    else:
        confirmed(answer_of(text), least)


@pytest.mark.parametrize("goal", GOALS)
def test_against_enumeration(goal: str) -> None:
    terms, needs_limit = GOALS[goal]
    for seed in range(2 if " - " in goal else 4):
        limit = "    soon: latency <= 40 s" if needs_limit else ""
        text = random_spec(seed, goal, limit)
        settled(text, least_of_times(loads(text).problem, terms, most=40.0 if needs_limit else math.inf))


@pytest.mark.parametrize("goal", ["finish(n2) - start(n0)", "finish(n2) + finish(n1)", "latency - start(n1)"])
def test_with_a_gap_that_is_asked_for(goal: str) -> None:
    terms = {"f": (1.0, (F, 2))}
    wanted = {
        "finish(n2) - start(n0)": [terms["f"], (-1.0, (S, 0))],
        "finish(n2) + finish(n1)": [terms["f"], (1.0, (F, 1))],
        "latency - start(n1)": [LATENCY, (-1.0, (S, 1))],
    }[goal]
    for seed in range(2):
        edge = "    between: start(n2) >= start(n0) + 7.25 s"
        text = random_spec(seed, goal, edge)
        settled(text, least_of_times(loads(text).problem, wanted, later=[(7.25, (0, 2))]))


@pytest.mark.parametrize("goal", [goal for goal, (_, endless) in GOALS.items() if endless])
def test_what_later_starts_improve_for_ever_is_refused(goal: str) -> None:
    for seed in range(3):
        text = random_spec(seed, goal)
        assert least_of_times(loads(text).problem, GOALS[goal][0]) == -math.inf
        with pytest.raises(InputError) as caught:
            answer_of(text)
        (told,) = caught.value.diagnostics
        assert "no least value" in told.message
        assert told.span is not None
        assert told.span.line == next(k for k, line in enumerate(text.splitlines(), 1) if line.startswith("minimize"))


@pytest.mark.parametrize("solver", ["cp-sat", "highs", "pyomo", "mip", "cvxpy"])
def test_solvers_agree(solver: str) -> None:
    goal = "2 * finish(n1) + start(n2) / 2" if solver == "cp-sat" else "max(v in nodes: finish(v)) - start(n1)"
    text = random_spec(1, goal)
    confirmed(answer_of(text, solver), least_of_times(loads(text).problem, GOALS[goal][0]))


def test_as_late_as_the_best_latency_lets_it() -> None:
    """A second objective that rewards a later start, within the latency that is best."""
    for seed in range(2):
        text = random_spec(seed, "latency then 0 s - start(n1)")
        found = answer_of(text)
        problem = loads(text).problem
        latency = least_of_times(problem, [LATENCY])
        confirmed(found, latency)
        late = least_of_times(problem, [(-1.0, (S, 1))], most=latency * (1 + 1e-9))
        assert found.evaluation.objectives[1] == pytest.approx(late, rel=3e-6, abs=1e-5)


def test_the_whole_span_and_then_the_latency() -> None:
    """The least start is a largest negative: its column has an upper bound and no lower one."""
    goal = "max(v in nodes: finish(v)) - min(v in nodes: start(v)) then latency"
    for seed in range(2):
        text = random_spec(seed, goal)
        confirmed(answer_of(text), least_of_times(loads(text).problem, [LATENCY]))


FOUR = """graph {
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
schedule dataflow
minimize latency
subject to
    memory
    sequential
"""


def test_a_first_schedule_waits_where_constraints_ask_for_it() -> None:
    """Factors of times leave them without an upper bound: what a first schedule takes is one."""
    text = FOUR + "    third: 3 * start(b) <= start(c)\n    late: start(a) >= 7 ms\n"
    with pytest.raises(InputError, match="no latest time follows"):
        answer_of(text)
    spec = loads(text)
    found = solve(spec.problem, spec.elaborated.checked_formulations, Request("cp-sat", "program"), isolated=False)
    # a until 9 ms, then b on the same device, c there from 27 ms on, and d
    assert found.termination == "optimal"
    assert found.value == pytest.approx(0.033, rel=2e-6)


def test_only_what_leaves_times_without_an_end_is_told() -> None:
    """A limit that cannot be kept is not to blame; with one on the latency it is part of a conflict."""
    text = FOUR + "    dl: finish(b) <= 1 ms\n    third: 3 * start(b) <= start(c)\n"
    with pytest.raises(InputError) as raised:
        answer_of(text)
    assert [found.span.line for found in raised.value.diagnostics if found.span] == [text.count("\n")]
    spec = loads(text + "    soon: latency <= 1 s\n")
    conflict = find(spec.problem, spec.elaborated.checked_formulations, isolated=False)
    assert conflict is not None
    assert "dl" in [member.name for member in conflict.members]


def test_a_violation_has_units() -> None:
    problem = loads(FOUR + "    soon: finish(d) <= 1 ms\n    held: memory(gpu[1]) + 1 GiB <= 0.5 GiB\n").problem
    told = [violation.message for violation in evaluate(problem, [2, 2, 2, 2]).violations]
    assert told == ["78 ms <= 1 ms does not hold", "1 GiB <= 512 MiB does not hold"]


def test_tensors_of_one_node_have_names_of_their_own() -> None:
    """What a sends differs from reader to reader."""
    text = FOUR.replace("    a -> b -> d", "    a -> b { output = 4 MB }\n    b -> d")
    problem = loads(text + "    never: forall t in tensors: sent(t, cpu) <= 0 s\n").problem
    names = problem.graph.tensor_names
    assert len(set(names)) == len(names)
    assert {"a for b", "a for c", "b", "c"} <= set(names)
    told = {violation.rule: violation.message for violation in evaluate(problem, [0, 0, 0, 0]).violations}
    assert "t=tensor of a for b: 2 ms <= 0 s does not hold" in told["never"]


def of_sizes(goal: str, *times: str) -> Answer:
    """Independent nodes with these times on the one accelerator and 700 s on the host; CP-SAT."""
    nodes = "\n".join(
        f"    node n{v} {{ time = {{accelerator: {time}, host: 700 s}} }}" for v, time in enumerate(times)
    )
    machine = "device gpu: accelerator\ndevice cpu: host\ninterconnect { bandwidth = 1 GB/s }\n"
    rules = "subject to\n    sequential\n    here: forall v in nodes: v on gpu\n"
    return answer_of(f"graph {{\n{nodes}\n}}\n{machine}minimize {goal}\n{rules}")


def test_what_is_shorter_than_a_step_of_the_grid() -> None:
    """Both start at zero as far as CP-SAT can tell; the short one goes first."""
    found = of_sizes("finish(n0) + finish(n1)", "296.1 s", "39 ns")
    assert found.termination == "optimal"
    assert found.value == pytest.approx(296.1 + 2 * 39e-9, rel=1e-12)


def test_what_is_longer_than_all_times_left() -> None:
    """On the host nothing would be over in time: once the latency is fixed its intervals are longer than the grid."""
    found = of_sizes("latency then sum(v in nodes: finish(v))", "0.2 us", "0.1 us", "0.3 us")
    assert found.termination == "optimal"
    assert found.evaluation.objectives == pytest.approx((0.6e-6, 1e-6), rel=1e-5)
