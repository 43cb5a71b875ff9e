"""The planner's decision: which paths are taken, why not the others, and that it is what is run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import placedsl
from placedsl.diagnostics import UsageError
from placedsl.planner.decision import Strategy
from placedsl.planner.request import Request, resolve
from placedsl.planner.solve import solve
from placedsl.planner.strategies import registry
from placedsl.planner.strategies.registry import decision

GRAPH = "graph {\n    node a { time = 1 ms, output = 1 MiB }\n    node b { time = 2 ms }\n    a -> b\n}\n"
DEVICES = "device gpu[2]: accelerator { memory = 4 GiB }\ndevice cpu: host\ninterconnect { bandwidth = 1 GB/s }\n"
TEXTS = {
    "exact": "minimize time_per_sample\nsubject to\n    contiguous\n",
    "further": "minimize time_per_sample\nsubject to\n    contiguous\n    few: devices_used <= 1\n",
    "free": "minimize time_per_sample\n",
    "objective": "minimize communication\n",
    "variable": "var y in 0..1\nminimize time_per_sample + 1 ms * y\n",
    "calls": "schedule calls\nminimize latency\n",
    "dataflow": "minimize latency\n",
}
#: An algorithm as somebody would add it: what it supports, and a search.
TOY = """
from placedsl.algorithms.simple_bounds import simple_bound
from placedsl.algorithms.supports import PLACING, Supports, reasons_against

SUPPORTS = Supports(objectives=("time_per_sample",), constraints=PLACING)


def fits(problem):
    return reasons_against(problem, SUPPORTS)


def solve(problem, budget, progress):
    return [0] * problem.graph.nodes, 3e-3  # everything on one device, and a bound that proves it for this graph
"""


def spec(name: str) -> placedsl.api.spec.Spec:
    return placedsl.loads(GRAPH + DEVICES + TEXTS[name])


def steps(name: str, **request: object) -> list[str]:
    problem = spec(name).problem
    planned = decision(problem, resolve(problem, Request(**request)))  # type: ignore[arg-type]
    return [step.strategy.name for step in planned.steps]


@pytest.mark.parametrize(
    ("name", "method", "expected"),
    [
        ("exact", "auto", ["dynamic programming", "plug-ins", "program"]),
        ("exact", "dp", ["dynamic programming"]),
        ("exact", "program", ["a start by slicing", "program"]),
        ("further", "auto", ["dynamic programming", "plug-ins", "program"]),
        ("free", "auto", ["a start by slicing", "plug-ins", "program"]),
        ("objective", "auto", ["a start by slicing", "plug-ins", "program"]),
        ("variable", "auto", ["plug-ins", "program"]),
        ("calls", "auto", ["search for schedules", "program"]),
        ("dataflow", "program", ["search for schedules", "program"]),
        ("free", "greedy", ["greedy"]),
    ],
)
def test_steps(name: str, method: str, expected: list[str]) -> None:
    assert steps(name, method=method) == expected


def test_every_path_is_taken_or_has_a_reason_against_it() -> None:
    for name in TEXTS:
        problem = spec(name).problem
        planned = decision(problem, resolve(problem, Request()))
        auto = [row.name for row in registry.STRATEGIES if "auto" in row.methods]
        known = [step.strategy.name for step in planned.steps] + [one.name for one in planned.not_taken]
        assert sorted(known) == sorted(auto)
        assert all(one.reasons for one in planned.not_taken)


def test_what_runs_beside_is_what_supports_the_problem() -> None:
    def beside(name: str) -> tuple[str, ...]:
        return tuple(registry.beside(spec(name).problem))

    assert beside("exact") == ("annealing of stages", "the search for pipelines", "the partition bound")
    assert beside("free") == ("searches for splits", "the partition bound")
    assert beside("objective") == ()
    assert beside("calls") == ("searches for schedules", "lower bounds of the latency")


def test_what_cannot_be_done_is_refused_with_the_reasons() -> None:
    problem = spec("free").problem
    planned = decision(problem, resolve(problem, Request(method="dp")))
    assert planned.steps == ()
    assert planned.text == "none: method dp does not fit"
    with pytest.raises(UsageError, match="method dp does not fit: it requires the 'contiguous' constraint"):
        spec("free").solve(method="dp")


@pytest.mark.parametrize("name", TEXTS)
def test_only_steps_of_the_decision_are_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each path is wrapped: those that are run are the decision's, in its order."""
    ran: list[str] = []

    def noted(row: Strategy) -> Strategy:
        def run(state: object) -> object:
            ran.append(row.name)
            return row.run(state)  # type: ignore[arg-type]

        return Strategy(row.name, row.methods, row.against, row.outlook, run)  # type: ignore[arg-type]

    monkeypatch.setattr(registry, "STRATEGIES", tuple(noted(row) for row in registry.STRATEGIES))
    answer = spec(name).solve(workers=1, time_limit=60)
    assert answer.termination == "optimal"
    assert ran == steps(name)[: len(ran)]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "toy_algorithm.py").write_text(TOY, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "toy_algorithm"
    sys.modules.pop("toy_algorithm", None)


def test_an_algorithm_under_auto_is_a_file_and_a_row(toy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "STRATEGIES", (registry.by_protocol("toy", toy), *registry.STRATEGIES))
    assert steps("free")[0] == "toy"
    assert steps("exact")[0] == "dynamic programming"
    problem = spec("exact").problem
    (against,) = [one for one in decision(problem, resolve(problem, Request())).not_taken if one.name == "toy"]
    assert against.reasons == ("it does not look at contiguous",)
    alone = placedsl.loads(GRAPH + DEVICES.replace("gpu[2]", "gpu").replace("device cpu: host\n", "") + TEXTS["free"])
    answer = solve(alone.problem, alone.elaborated.checked_formulations, Request(workers=1))
    assert (answer.method, answer.termination, answer.placement) == ("toy", "optimal", (0, 0))
    assert alone.explain().splitlines()[-1].startswith("# path taken: toy; program with")
