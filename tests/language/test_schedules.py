"""Which schedule a spec has, and what it makes of links."""

from __future__ import annotations

import pytest

import placedsl
from placedsl.problem import Problem

GRAPH = "graph {\n    node a { time = 1 ms, output = 1 MiB }\n    node b { time = 2 ms }\n    a -> b\n}\n"
DEVICES = "device gpu[2]: accelerator { memory = 4 GiB }\ndevice cpu: host\ninterconnect { bandwidth = 1 GB/s }\n"


def problem(rest: str) -> Problem:
    return placedsl.loads(GRAPH + DEVICES + rest).problem


@pytest.mark.parametrize(
    "rest",
    [
        "minimize latency",
        "minimize max(d in devices: memory(d)) then 2 * latency",
        "minimize peak_memory\nsubject to\n    early: latency <= 5 ms",
    ],
)
def test_a_spec_that_speaks_of_latency_is_about_one_sample(rest: str) -> None:
    found = problem(rest)
    assert found.schedule == "dataflow"
    assert found.moves is not None


@pytest.mark.parametrize("rest", ["minimize time_per_sample", "minimize peak_memory", "minimize communication"])
def test_any_other_spec_is_about_throughput(rest: str) -> None:
    found = problem(rest)
    assert found.schedule == "pipedream"
    assert found.moves is None


def test_a_name_of_ones_own_says_nothing_of_the_schedule() -> None:
    found = problem("define latency = time_per_sample\nminimize latency")
    assert found.schedule == "pipedream"


def test_the_schedule_that_is_said_counts() -> None:
    assert problem("schedule calls\nminimize latency").schedule == "calls"
    assert problem("schedule dataflow\nminimize peak_memory").schedule == "dataflow"


def test_calls_have_one_piece_unless_it_is_said() -> None:
    assert problem("schedule calls\nminimize latency").pieces == 1
    assert problem("schedule calls { pieces = 3 }\nminimize latency").pieces == 3
    assert problem("param q = 2\nschedule calls { pieces = q }\nminimize latency").pieces == 2


def test_calls_need_no_links_between_devices() -> None:
    assert problem("schedule calls\nminimize latency").moves is None


@pytest.mark.parametrize("name", ["sequential", "congestion"])
def test_rules_of_a_schedule_say_which_it_is(name: str) -> None:
    assert problem(f"minimize peak_memory\nsubject to\n    {name}").schedule == "dataflow"


@pytest.mark.parametrize(("text", "by"), [("congestion", "port"), ("congestion by port", "port")])
def test_congestion_is_by_port_unless_it_is_said(text: str, by: str) -> None:
    rule = problem(f"minimize latency\nsubject to\n    {text}").rule("congestion")
    assert rule is not None
    assert rule.by == by


def test_quantities_of_one_sample_in_constraints_and_definitions() -> None:
    spec = placedsl.loads(
        GRAPH + DEVICES + "define waiting(v in nodes) = start(v) - start(a)\nminimize latency\nsubject to\n"
        "    apart: start(b) >= finish(a) + 3 ms\n"
        "    bounded: forall v in nodes: waiting(v) <= 10 ms\n"
        "    soon: forall t in tensors, d in devices: arrived(t, d) - sent(t, d) <= 5 ms\n"
        "    at_once: forall t in tensors, d in devices: moved(t, gpu[1], d) => sent(t, d) <= 1 ms\n"
    )
    found = spec.evaluate({"a": "gpu[1]", "b": "gpu[1]"})
    assert [v.rule for v in found.violations] == ["apart"]
    problem = spec.problem
    kept = placedsl.cost.evaluate.evaluate(problem, [0, 0], {"start": {(0,): 0.0, (1,): 4e-3}})
    assert kept.feasible
    assert kept.objectives == pytest.approx((6e-3,))
