"""Every keyword of ``schedule`` against one suite.  A new one is given its sample in SAMPLES.

All samples are of one graph: each keyword is solved, evaluated and compared with enumeration.
"""

from __future__ import annotations

import functools
import itertools
import math

import pytest
from support.combinations import EXECUTIONS, GRAPHS, machine
from support.enumeration import enumerated, least

import placedsl
from placedsl.problem.execution import COMMUNICATIONS, ORDERS, RUNS, SCHEDULES, Execution

#: The optimum of the sample under each keyword, in seconds.
SAMPLES = {
    "pipedream": 0.875, "1f1b": 0.875, "gpipe": 0.875, "overlapped": 0.7, "duplex": 0.7, "calls": 1.7,
    "subgraph_calls": 1.7, "dataflow": 1.325, "operators": 1.325,
}  # fmt: skip

DEVICES = machine(0, "alone")

every_schedule = pytest.mark.parametrize("name", SCHEDULES)


def spec(name: str, graph: str = "inference", more: str = "") -> placedsl.api.spec.Spec:
    goal = "latency" if SCHEDULES[name].one_sample else "time_per_sample"
    text = f"{GRAPHS[graph]}\n{DEVICES}\nschedule {name}{more}\nminimize {goal}\nsubject to\n    memory\n"
    return placedsl.loads(text)


@functools.cache
def solved(name: str) -> placedsl.Answer:
    """The answer to the sample."""
    return spec(name).solve(workers=1)


def test_every_schedule_has_a_sample() -> None:
    assert set(SAMPLES) == set(SCHEDULES)


def test_the_combinations_have_every_execution_model() -> None:
    """What tests/combinations crosses with machines, graphs and paths leaves no run, order or communication out."""
    text = GRAPHS["inference"] + "\n" + DEVICES
    found = []
    for statement in EXECUTIONS.values():
        goal = "latency" if "calls" in statement or "dataflow" in statement else "time_per_sample"
        found.append(placedsl.loads(f"{text}\n{statement}\nminimize {goal}\n").problem.execution)
    pipelines = [Execution(order=order, communication=how) for order, how in itertools.product(ORDERS, COMMUNICATIONS)]
    for known in (*pipelines, *(Execution(run=run) for run in RUNS), *SCHEDULES.values()):
        assert any(known.like(one) for one in found), known


@every_schedule
def test_a_keyword_is_the_model_that_it_is_registered_as(name: str) -> None:
    execution = spec(name).problem.execution
    assert execution.like(SCHEDULES[name])
    assert SCHEDULES[execution.name].like(execution), "its name is a keyword for the same"


@pytest.mark.sampled(1)
@every_schedule
def test_the_optimum_is_that_of_enumeration(name: str) -> None:
    answer = solved(name)
    assert answer.termination == "optimal"
    assert answer.evaluation is not None
    assert answer.evaluation.feasible
    optimum = least(enumerated(answer.problem))
    assert answer.evaluation.objectives == pytest.approx(optimum, rel=1e-6)
    assert answer.value == pytest.approx(SAMPLES[name], rel=1e-6)
    assert answer.bound <= answer.value * (1 + 1e-9)


@pytest.mark.sampled(1)
@every_schedule
def test_a_training_graph_is_solved(name: str) -> None:
    loaded = spec(name, "training")
    answer = loaded.solve(workers=1)
    assert answer.termination == "optimal"
    assert answer.value == pytest.approx(least(enumerated(loaded.problem))[0], rel=1e-6)


@every_schedule
def test_a_placement_that_violates_a_limit_is_said_to(name: str) -> None:
    loaded = spec(name)
    found = loaded.evaluate(dict.fromkeys(loaded.problem.graph.names, "gpu[1]"))
    assert [violation.rule for violation in found.violations] == ["memory"]
    assert all(math.isfinite(value) for value in found.objectives)


@pytest.mark.sampled(1)
@every_schedule
def test_a_run_has_a_timeline(name: str) -> None:
    answer = solved(name)
    measured = answer.timeline().document()["latency" if SCHEDULES[name].one_sample else "largest_load"]
    assert measured == pytest.approx(answer.value, rel=1e-9)


@every_schedule
def test_the_elaborated_spec_has_the_same_schedule(name: str) -> None:
    text = spec(name).explain()
    again = placedsl.loads(text).problem.execution
    assert again.like(SCHEDULES[name])


@every_schedule
def test_devices_that_share_a_stage_are_taken_or_refused_with_a_place(name: str) -> None:
    if SCHEDULES[name].shareable:
        assert spec(name, more="\nparallelism { data = 1..2 }").problem.execution.data_parallelism is not None
        return
    with pytest.raises(placedsl.InputError) as caught:
        spec(name, more="\nparallelism { data = 1..2 }")
    assert all(d.span is not None for d in caught.value.diagnostics)
