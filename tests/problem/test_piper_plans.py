"""Plans as Piper's program writes them, read for evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import placedsl
from placedsl.diagnostics import InputError, Source
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.placement_files import read, read_values


def option(name: str, time: float, stash: float, *, before: int, after: int, layers: int = 3) -> dict[str, Any]:
    """A way to run a layer of a chain; nothing is moved within it."""
    return {
        "id": name, "timePerSample": time, "parameterSize": 2, "memoryUsageA": stash, "memoryUsageB": 2,
        "syncTimeFw": {str(before): 0} if before >= 0 else {}, "syncTimeBw": {str(after): 0} if after < layers else {},
    }  # fmt: skip


LAYERS = {
    "nodes": [
        {"id": v, "TMPCs": {
            str(t): [option("vanilla", 8 / t, 4 / t, before=v - 1, after=v + 1),
                     option("activation recomp", 12 / t, 1 / t, before=v - 1, after=v + 1)]
            for t in (1, 2)
        }}
        for v in range(3)
    ],
    "edges": [{"sourceId": v, "destId": v + 1, "communicationCost": 512} for v in range(2)],
}  # fmt: skip
SPEC = """graph from "layers.json" { time_unit = 1 s }
device gpu[4]: accelerator { memory = 16 B }
interconnect { bandwidth = 1 KiB/s }
parallelism { microbatches = 4, data = divisors(microbatches), tensor = {1, 2}, exchange = batch, weights_traffic = 4 }
minimize time_per_sample
subject to
    memory
    contiguous
"""
FIRST = {"nodes": [0, 1], "dataParallelDegree": 2, "tensorParallelDegree": 1,
         "TMPCids": [[0, "vanilla"], [1, "activation recomp"]]}  # fmt: skip
LAST = {"nodes": [2], "dataParallelDegree": 1, "tensorParallelDegree": 2, "TMPCids": {"2": "vanilla"}}


@pytest.fixture
def spec(tmp_path: Path) -> placedsl.Spec:
    (tmp_path / "layers.json").write_text(json.dumps(LAYERS), encoding="utf-8")
    return placedsl.loads(SPEC, tmp_path)


def source(*stages: object) -> Source:
    return Source("plan.json", json.dumps({"stages": stages}, indent=1))


def test_a_plan_is_evaluated(spec: placedsl.Spec) -> None:
    """8 + 12 s and a tensor of 512 bytes there and back, by two copies, with half the weights sent four times a batch;
    the second stage runs on two devices."""
    plan = source(FIRST, LAST)
    found = evaluate(spec.problem, read(spec.problem, plan), read_values(spec.problem, plan))
    assert not found.violations
    exchange = 4 * (1 / 2) * 4 / 1024 / 4
    assert found.loads[0] == pytest.approx((20 + 1) / 2 + exchange, rel=1e-12)
    assert found.loads[2] == pytest.approx(4 + 1, rel=1e-12)
    # Two samples are in flight on each copy of the first stage: ceil(3 / 2).
    assert found.memory[0] == (4 + 1) * 2 + 2 + 2
    assert found.memory[2] == 2 + 2


def test_it_is_read_as_what_solving_writes(spec: placedsl.Spec) -> None:
    """The best plan, written as Piper's program would, has the same value and memory."""
    best = spec.solve()
    stages = [
        {
            "nodes": [node.id for node in stage.nodes],
            "dataParallelDegree": stage.parallelism["data"], "tensorParallelDegree": stage.parallelism["tensor"],
            "TMPCids": {str(node.id): node.option for node in stage.nodes},
        }
        for stage in best.plan.stages
    ]  # fmt: skip
    plan = source(*stages)
    found = evaluate(spec.problem, read(spec.problem, plan), read_values(spec.problem, plan))
    assert best.evaluation is not None
    assert found.objectives == best.evaluation.objectives
    assert found.memory == best.evaluation.memory


@pytest.mark.parametrize(
    ("stages", "told"),
    [
        ((), "this plan holds no stages"),
        (({**FIRST, "dataParallelDegree": 0}, LAST), "'stages[0].dataParallelDegree' is a whole number, 1 or more"),
        (
            ({**FIRST, "dataParallelDegree": 4}, LAST),
            "'stages[1]' takes more devices than there are: 6 up to here, of 4",
        ),
        ((FIRST, {**LAST, "nodes": [1, 2]}), "'stages[1].nodes[0]' is in stage 1 already"),
        ((FIRST, {**LAST, "nodes": [7]}), "the graph has no node '7'"),
        ((FIRST, {**LAST, "TMPCids": {"2": "vanila"}}), "node '2' has no option 'vanila' for 2 devices"),
        ((FIRST, {**LAST, "TMPCids": [[2]]}), "is a list of pairs: a node and an option"),
        ((FIRST, {**LAST, "nodes": []}), "'stages[1].nodes' is empty"),
        ((FIRST, 3), "'stages[1]' is a number: an object is expected"),
    ],
)
def test_what_is_wrong_is_told(stages: tuple[object, ...], told: str, spec: placedsl.Spec) -> None:
    plan = source(*stages)
    with pytest.raises(InputError) as found:
        read_values(spec.problem, plan) if read(spec.problem, plan) else None
    assert told in "\n".join(d.render() for d in found.value.diagnostics)
    assert all(d.span is not None for d in found.value.diagnostics)


def test_a_spec_that_asks_for_no_plan(tmp_path: Path) -> None:
    chain = placedsl.loads(
        "graph { node a { time = {accelerator: 1 s} } }\ndevice gpu: accelerator\nminimize time_per_sample\n", tmp_path
    )
    with pytest.raises(InputError, match="this is a plan of copies, and the spec asks for none"):
        read(chain.problem, source(FIRST))
