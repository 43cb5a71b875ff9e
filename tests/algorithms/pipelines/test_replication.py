"""StageCostModel that several devices share (Appendix C.2), by program, against enumeration.

The reference takes placements and loads from plain enumeration, and every way to share out the devices of a class.
"""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.brute_force import allowed, beside, confirm_dynamic_program, loads, placements, shared_out
from support.random_specs import random_spec

import placedsl
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.supports import reasons_against
from placedsl.diagnostics import InputError
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.problem.plan import sharing
from placedsl.problem.problem import Problem
from placedsl.report.json.answer_document import device_list

pytestmark = pytest.mark.rotates(2)

BY_HAND = """
graph {
    node a { time = {accelerator: 2 ms}, memory = 2 GiB, output = 16 MiB }
    node b { time = {accelerator: 9 ms}, memory = 3 GiB, output = 16 MiB, parameters = 48 MiB }
    a -> b
}
device gpu[4]: accelerator { memory = 4 GiB }
interconnect { bandwidth = 16000 MiB/s }
parallelism { data = 1..3 }
minimize time_per_sample then devices_used
subject to
    memory
"""


def replicated(seed: int) -> str:
    """A random spec with parallelism, and weights to exchange on some nodes."""
    rng = random.Random(f"replication {seed}")
    lines = [line for line in random_spec(seed).splitlines() if "custom" not in line and "gpipe" not in line]
    for i, line in enumerate(lines):
        if line.startswith("    node ") and rng.random() < 0.7:
            lines[i] = line.removesuffix(" }") + f", parameters = {rng.choice([1, 4, 20])} MiB }}"
    data = rng.choice(["1..2", "1..3", "{1, 2}", "{1, 3}"])
    weights = rng.choice(["", "", ", weights = memory", ", weights = 0"])
    lines.insert(lines.index("minimize time_per_sample"), f"parallelism {{ data = {data}{weights} }}")
    if lines[-1] == "subject to":
        lines.pop()
    return "\n".join(lines) + "\n"


def small(seed: int) -> bool:
    text = random_spec(seed)
    devices = sum(int(number) for number in re.findall(r"^device \w+\[(\d+)\]", text, re.MULTILINE))
    return devices >= 2 and devices ** len(re.findall(r"^    node ", text, re.MULTILINE)) <= 3000


def least(problem: Problem) -> float:
    """The least time per sample over placements and copies; inf where nothing is allowed."""
    every = placements(problem)
    every = every[allowed(problem, every)]
    if not len(every):
        return math.inf
    if problem.execution.name == "pipedream":
        whole = loads(problem, every)
    else:
        computing, read, written = beside(problem, every)
        moving = read + written if problem.execution.name == "overlapped" else np.maximum(read, written)
        whole = np.maximum(computing, moving)
    return shared_out(problem, every, whole)


def test_by_hand() -> None:
    """b by three: a third of 9 ms and of 1 ms for its transfer, and two thirds of 3 ms for its weights."""
    spec = placedsl.loads(BY_HAND)
    found = solve(spec.problem, spec.elaborated.checked_formulations)
    assert found.termination == "optimal"
    assert found.value == pytest.approx((9 + 1) / 3 * 1e-3 + 2 / 3 * 3e-3)
    assert found.evaluation is not None
    assert sorted(found.evaluation.values["copies"].values()) == [0, 0, 1, 3]
    assert found.evaluation.objectives[1] == 4


def test_the_evaluator_counts_devices() -> None:
    problem = placedsl.loads(BY_HAND).problem
    one = evaluate(problem, [0, 1])
    assert one.objectives == (pytest.approx(10e-3), 2.0)
    assert not one.violations

    def told(*copies: float) -> list[str]:
        values = {"copies": {(d,): number for d, number in enumerate(copies)}}
        return [violation.message for violation in evaluate(problem, [0, 1], values).violations]

    assert told(1, 3, 0, 0) == []
    assert told(2, 3, 0, 0) == ["5 copies on 4 devices (gpu[1], gpu[2], gpu[3], gpu[4])"]
    assert told(1, 2, 1, 0) == ["copies[gpu[3]] is 1, and nothing is on gpu[3]"]
    assert told(0, 3, 0, 0) == ["copies[gpu[1]] is 0, allowed are 1, 2, 3"]


def test_a_group_is_of_one_family() -> None:
    """What is said of a family, its price say, holds for all that share a stage."""
    text = BY_HAND.replace("device gpu[4]", "device dear[3]: accelerator { memory = 8 GiB }\ndevice gpu[2]")
    text = text.replace("memory = 4 GiB", "memory = 8 GiB") + "    cheap: sum(d in dear: copies[d]) == 0\n"
    answer = placedsl.loads(text).solve()
    assert set(answer.device_of().values()) <= {"gpu[1]", "gpu[2]"}
    assert answer.value == pytest.approx(7e-3), "both nodes on both: 11 ms and 3 ms of weights, halved"


def test_an_extended_formulation_that_is_not_for_parallelism_is_told() -> None:
    spec = placedsl.loads(
        BY_HAND + "extend max_load {\n    subject to\n        none: forall v in nodes, d in devices: x[v, d] <= 0\n}\n"
    )
    answer = spec.solve()
    assert "formulation 'max_load' is not taken: the parallelism asked for is data" in answer.notes


@pytest.mark.parametrize("wrong", [math.nan, math.inf, 1e308, -1.0, 1.5])
def test_copies_that_cannot_be_are_violations(wrong: float) -> None:
    problem = placedsl.loads(BY_HAND).problem
    found = evaluate(problem, [0, 1], {"copies": {(1,): wrong}})
    assert found.violations
    assert sharing(problem, found) == {2: 1, 3: 1} if wrong > 3 else True


def test_weights_cannot_be_negative(tmp_path: Path) -> None:
    nodes = [{"id": "a", "time": {"accelerator": 1}, "attributes": {"parameters": -5.0}}]
    graph = {"format": "placedsl-graph", "version": 1, "time_unit": "ms", "nodes": nodes, "edges": []}
    (tmp_path / "negative.json").write_text(json.dumps(graph))
    text = 'graph from "negative.json"\ndevice gpu[2]: accelerator\ninterconnect { bandwidth = 1 GB/s }\n'
    with pytest.raises(InputError, match="node 'a' has weights of -5 bytes"):
        placedsl.loads(text + "parallelism { data = 1..2 }\nminimize time_per_sample\n", tmp_path)


def test_no_more_copies_than_devices() -> None:
    problem = placedsl.loads(BY_HAND.replace("1..3", "1..10000")).problem
    assert problem.execution.data_parallelism is not None
    assert problem.execution.data_parallelism.degrees == (1, 2, 3, 4)


def test_what_shares_a_stage_is_in_the_answer() -> None:
    spec = placedsl.loads(BY_HAND)
    found = solve(spec.problem, spec.elaborated.checked_formulations)
    assert found.evaluation is not None
    sharing = [device for device in device_list(spec.problem, found.evaluation) if "with" in device]
    assert len(sharing) == 2
    assert [device["load"] for device in sharing] == [pytest.approx(16e-3 / 3)] * 2


@pytest.mark.parametrize("solver", ["cp-sat", "highs"])
@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(32)) for n in range(0, 200, 25)])
def test_random_problems(first: int, solver: str) -> None:
    compared = shared = 0
    for seed in filter(small, range(first, first + 25)):
        spec = placedsl.loads(replicated(seed))
        expected = least(spec.problem)
        found = solve(spec.problem, spec.elaborated.checked_formulations, Request(solver=solver, method="program"))
        compared += 1
        if expected == math.inf:
            assert found.termination == "infeasible", seed
            continue
        assert found.termination == "optimal", seed
        assert found.value == pytest.approx(expected, rel=1e-6), seed
        assert found.evaluation is not None
        shared += max(found.evaluation.values["copies"].values()) > 1
    assert compared >= 2
    assert shared >= 1


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(20)) for n in range(0, 400, 20)])
def test_random_pipelines_by_dynamic_programming(first: int) -> None:
    problems = [placedsl.loads(replicated(seed)).problem for seed in filter(small, range(first, first + 20))]
    known = [p for p in problems if not reasons_against(p, replace(contiguous.SUPPORTS, relaxes=False))]
    for problem in known:
        confirm_dynamic_program(problem, least(problem))
    assert len(known) >= 2
