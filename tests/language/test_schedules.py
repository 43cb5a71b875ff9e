"""Which schedule a spec has, and what it makes of links."""

from __future__ import annotations

from pathlib import Path

import pytest

import placedsl
from placedsl.diagnostics import InputError, Source
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.formatter import formatted
from placedsl.language.syntax.parser import parse
from placedsl.language.syntax.printer import statement
from placedsl.problem.formulation import choose
from placedsl.problem.problem import Problem

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
    assert found.execution.name == "dataflow"
    assert found.device_to_device is not None


@pytest.mark.parametrize("rest", ["minimize time_per_sample", "minimize peak_memory", "minimize communication"])
def test_any_other_spec_is_about_throughput(rest: str) -> None:
    found = problem(rest)
    assert found.execution.name == "pipedream"
    assert found.device_to_device is None


def test_a_name_of_ones_own_says_nothing_of_the_schedule() -> None:
    found = problem("define latency = time_per_sample\nminimize latency")
    assert found.execution.name == "pipedream"


def test_the_schedule_that_is_said_counts() -> None:
    assert problem("schedule calls\nminimize latency").execution.name == "calls"
    assert problem("schedule dataflow\nminimize peak_memory").execution.name == "dataflow"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("1f1b", "pipedream"),
        ('"1f1b"', "pipedream"),
        ("1f1b { communication = sequential }", "pipedream"),
        ("1f1b { communication = overlapped }", "overlapped"),
        ("1f1b { communication = full_duplex }", "duplex"),
        ("gpipe { communication = sequential }", "gpipe"),
        ("gpipe { communication = overlapped }", "gpipe { communication = overlapped }"),
        ("gpipe { communication = full_duplex }", "gpipe { communication = full_duplex }"),
    ],
)
def test_microbatch_order_and_communication_are_chosen_apart(written: str, name: str) -> None:
    assert problem(f"schedule {written}\nminimize time_per_sample").execution.name == name


@pytest.mark.parametrize(
    ("standard", "shorthand"),
    [("subgraph_calls", "calls"), ("subgraph_calls { slots = 2 }", "calls { pieces = 2 }"), ("operators", "dataflow")],
)
def test_runs_of_one_sample_have_standard_names(standard: str, shorthand: str) -> None:
    found, known = (problem(f"schedule {name}\nminimize latency").execution for name in (standard, shorthand))
    assert found == known


@pytest.mark.parametrize(
    "written", ["1f1b", "1f1b { communication = full_duplex }", "gpipe { communication = overlapped }"]
)
def test_the_standard_form_is_printed_as_it_is_read(written: str) -> None:
    text = GRAPH + DEVICES + f"schedule {written}\nminimize time_per_sample\n"
    (parsed,) = (s for s in parse(Source("spec", text)).statements if isinstance(s, syntax.Schedule))
    assert statement(parsed) == f"schedule {written}"
    assert f"schedule {written}\n" in formatted(text)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("gpipe", 4e-3 + 6e-3 + 2 * 8 / (16 * 1024)),
        ("gpipe { communication = overlapped }", 4e-3 + 6e-3),
        ("gpipe { communication = full_duplex }", 4e-3 + 6e-3),
        ("1f1b", 7e-3 + 2 * 8 / (16 * 1024)),
        ("1f1b { communication = overlapped }", 7e-3),
    ],
)
def test_values_of_the_documented_placement(schedule: str, expected: float) -> None:
    page = (Path(__file__).parents[2] / "docs" / "language" / "schedule.md").read_text(encoding="utf-8")
    text = next(part for part in page.split("```place\n")[1:] if "schedule gpipe\n" in part).partition("```")[0]
    spec = placedsl.loads(text.replace("schedule gpipe\n", f"schedule {schedule}\n"))
    found = spec.evaluate({"f1": "gpu[1]", "b1": "gpu[1]", "f2": "gpu[2]", "b2": "gpu[2]"})
    assert found.feasible
    assert found.objectives == pytest.approx((expected,))


def test_a_combination_without_formulation_is_refused_where_its_objective_is() -> None:
    without = GRAPH + DEVICES + "schedule gpipe { communication = overlapped }\nminimize forward_load(gpu[1])\n"
    with pytest.raises(InputError, match=r"under schedule gpipe \{ communication = overlapped \}") as caught:
        choose(placedsl.loads(without).problem, [])
    (found,) = caught.value.diagnostics
    assert found.span is not None


def test_calls_have_one_piece_unless_it_is_said() -> None:
    assert problem("schedule calls\nminimize latency").execution.slots == 1
    assert problem("schedule calls { pieces = 3 }\nminimize latency").execution.slots == 3
    assert problem("param q = 2\nschedule calls { pieces = q }\nminimize latency").execution.slots == 2


def test_calls_need_no_links_between_devices() -> None:
    assert problem("schedule calls\nminimize latency").device_to_device is None


@pytest.mark.parametrize("name", ["sequential", "congestion"])
def test_rules_of_a_schedule_say_which_it_is(name: str) -> None:
    assert problem(f"minimize peak_memory\nsubject to\n    {name}").execution.name == "dataflow"


@pytest.mark.parametrize(("text", "by"), [("congestion", "port"), ("congestion by port", "port")])
def test_congestion_is_by_port_unless_it_is_said(text: str, by: str) -> None:
    rule = problem(f"minimize latency\nsubject to\n    {text}").constraint("congestion")
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
    kept = placedsl.evaluation.evaluate.evaluate(problem, [0, 0], {"start": {(0,): 0.0, (1,): 4e-3}})
    assert kept.feasible
    assert kept.objectives == pytest.approx((6e-3,))
