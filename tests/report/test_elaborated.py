"""The elaborated spec is a spec: it means the same, imports nothing, and elaborating it again changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.paths import ROOT
from support.random_specs import random_algebra, random_formulas, random_spec

from placedsl import load, loads
from placedsl.api.spec import Spec
from placedsl.problem.execution import Execution
from placedsl.report.explanation.elaborated_spec import elaborated

pytestmark = pytest.mark.rotates(2)

RANDOM = {"spec": random_spec, "formulas": random_formulas, "algebra": random_algebra}


def same_problem(spec: Spec, again: Spec) -> None:
    """Arrays, devices, objectives and constraints by name."""
    one, other = spec.problem, again.problem
    assert other.graph.ids == one.graph.ids
    for field in ("time", "transfer", "size", "precedence_source", "precedence_target"):
        assert np.array_equal(getattr(other, field), getattr(one, field)), field
    for field in ("memory", "edge_source", "edge_target", "backward"):
        assert np.array_equal(getattr(other.graph, field), getattr(one.graph, field)), field
    assert other.machine.devices == one.machine.devices
    same_execution(one.execution, other.execution)
    assert (other.orientation, other.time_unit) == (one.orientation, one.time_unit)
    assert [(o.name, o.dimension) for o in other.objectives] == [(o.name, o.dimension) for o in one.objectives]
    rules = [(r.name, r.built_in, r.by, r.label) for r in one.constraints]
    assert [(r.name, r.built_in, r.by, r.label) for r in other.constraints] == rules
    assert [s.name for s in other.soft_constraints] == [s.name for s in one.soft_constraints]
    assert other.sets.keys() == one.sets.keys()
    variables = {n: (v.sorts, v.integer, v.low, v.high, v.dimension) for n, v in one.variables.items()}
    assert {n: (v.sorts, v.integer, v.low, v.high, v.dimension) for n, v in other.variables.items()} == variables
    assert again.elaborated.parameters.keys() == spec.elaborated.parameters.keys()
    for name, (value, _) in spec.elaborated.parameters.items():
        assert again.elaborated.parameters[name][0] == value, name


def same_execution(one: Execution, other: Execution) -> None:
    assert replace(other, data_parallelism=None) == replace(one, data_parallelism=None)
    assert (other.data_parallelism is None) == (one.data_parallelism is None)
    if one.data_parallelism and other.data_parallelism:
        assert other.data_parallelism.degrees == one.data_parallelism.degrees
        for field in ("weights", "synchronisation"):
            assert np.array_equal(getattr(other.data_parallelism, field), getattr(one.data_parallelism, field)), field


def same_optimum(spec: Spec, again: Spec) -> None:
    one, other = (s.solve(method="program", solver="highs") for s in (spec, again))
    assert one.termination == other.termination
    assert one.value == pytest.approx(other.value, rel=1e-5, abs=1e-9)


def means_the_same(spec: Spec, folder: Path | str = ".") -> Spec:
    """Read what is printed, compare, print again; the spec that was read."""
    again = loads(spec.explain(), folder)
    same_problem(spec, again)
    text = elaborated(spec.elaborated)
    assert elaborated(again.elaborated) == text
    assert elaborated(loads(text, folder).elaborated) == text
    assert [line for line in spec.explain().split("\n") if len(line) > 120 and "minimize" not in line] == []
    return again


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", RANDOM)
@pytest.mark.parametrize("seed", range(0, 60, 2))
def test_random_specs(kind: str, seed: int) -> None:
    spec = loads(RANDOM[kind](seed))
    again = means_the_same(spec)
    if seed % 10 == 0:
        same_optimum(spec, again)


EXAMPLES = sorted((ROOT / "examples").rglob("*.place"))
#: Values of parameters that some examples leave open.
GIVEN = {"experts-by-traffic": "routing.toml", "fleet": "fleet-small.json", "measured-energy": "energy.json"}
WHOLE = [
    p for p in EXAMPLES
    if 'graph from "bert' not in p.read_text(encoding="utf-8") and p.parent.name not in ("wrong", "shared")
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", WHOLE, ids=lambda p: p.name)
def test_examples(path: Path) -> None:
    data = GIVEN.get(path.stem)
    spec = load(path, data=None if data is None else path.parent / "data" / data)
    means_the_same(spec, path.parent)


@pytest.mark.workloads
@pytest.mark.parametrize("name", ["bert3.place", "custom.place"])
def test_examples_with_a_workload(name: str, workloads: Path) -> None:
    folder = workloads / "dnn-partitioning" / "throughput-inputs" / "OperatorGraphs"
    means_the_same(loads((ROOT / "examples" / name).read_text(encoding="utf-8"), folder), folder)


# every construct once


DEVICES = """
param room: data = 4 MiB
param share = 25%
device gpu[gpus + 1]: accelerator { memory = 2 * room }
device "big one": accelerator { memory = 40 MiB }
device cpu: host
interconnect { bandwidth = 2 GiB/s, latency = 1 us }
"""
MODEL = 'import "../machines/devices.place"\ngraph from "graph.json" { time_unit = 1 ms }\n'
MAIN = """
# A comment that is not kept.
import "models/model.place"
import "machines/devices.place"

param gpus: int = 1
param strict = true
param label = "a, \\"b\\""
param rate = room / (1 s) * 3
param far = 3
param odd = 2 ms * 3 ms
param slow = 3 s / (2 B)
param cost[d in devices]
param moved[v in nodes, d in gpu]: time
param level[i in 1..3] = {1: 2, 2: 1, 3: -4.5}
param step[i in -1..2 where i != 0]: int
param part[p in {forward, backward}]: bool
param every[t in tensors]: data
param half[v in nodes] = v.memory / (2 MiB)
param left[d in devices]: int = {gpu: 1, "big one": 2, cpu: 0}
set heavy = nodes where memory >= 2 MiB
set ends = {a, nodes["max"]} union heavy except {b}
set near = {v in nodes, d in devices: d.number <= 1 and half[v] >= 1}
define held(s: nodes, d in devices) = count(v in s: v on d)
constraint few(limit: int, s: nodes) ("7") = forall d in devices: held(s, d) <= limit
constraint apart by key = forall g in partition(nodes, key), d in devices: count(v in g: v on d) <= 3
var y: integer in 0..3
var z[d in devices]: binary
var t[i in 1..2]: time in 0 ms..9 ms
extend max_load {
    var extra[d in devices] in 0..1
    subject to
        extra_row: forall d in devices: extra[d] <= 1
}
minimize time_per_sample+0.5*share*(y * 1 ms)   then
    devices_used then sum(d in devices: cost[d] * z[d])
subject to
    memory
    few(2 ,ends)
    apart by name
    tens: sum(d in devices: cost[d] * held(nodes, d)) <= 40
    table: forall v in nodes, d in gpu: v on d => moved[v, d] <= 3 ms
    steps: forall i in 1..2: step[i] <= 7
    levels: forall i in 1..3: level[i] <= 3 and t[1] <= t[2] + 1 ms
    parts: forall p in {forward, backward}: part[p]
    sizes: forall t in tensors: t.size <= every[t]
    chain (17): forall (u, v) in edges where u in heavy: not (u on cpu) or v on cpu
    whole: if strict then y <= 2 else y <= 3
    prices: sum(d in devices: left[d] * held(nodes, d)) <= 7
    named: label == "a, \\"b\\"" and odd <= 1 s * 1 s and rate >= 0 MiB/s and slow >= 0 s/B
    marks: forall (v, d) in near: (v on d) => z[d] == 1
    soft wish at 2 ms: forall d in gpu: held(nodes, d) <= 1
    soft less at 0.5: load(cpu) <= 1 ms
solve { solver = highs, gap = 1%, time_limit = 1 min }
"""
DATA = {
    "cost": {"gpu": 3, "cpu": 1, "*": 2.5},
    "moved": {"a": {"gpu[1]": "2 ms"}, "max": {"gpu": 0}, "*": "3 ms"},
    "step": {"2": 7, "*": -1},
    "part": {"forward": True, "*": True},
    "every": {"*": "64 MiB"},
    "room": "6 MiB",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A spec in several folders, its graph, and a data file."""
    for name in ("models", "machines"):
        (tmp_path / name).mkdir()
    nodes = [
        {"id": name, "time": {"accelerator": 1 + i, "host": 9}, "memory": 2**20 * (i + 1), "output": 2**20}
        for i, name in enumerate(["a", "b", "max", "a b", "held"])
    ]
    pairs = [("a", "b"), ("b", "max"), ("a", "a b"), ("max", "held")]
    edges = [{"from": u, "to": v} for u, v in pairs]
    graph = {"format": "placedsl-graph", "version": 1, "nodes": nodes, "edges": edges}
    (tmp_path / "models" / "graph.json").write_text(json.dumps(graph), encoding="utf-8")
    (tmp_path / "models" / "model.place").write_text(MODEL, encoding="utf-8")
    (tmp_path / "machines" / "devices.place").write_text(DEVICES, encoding="utf-8")
    (tmp_path / "main.place").write_text(MAIN, encoding="utf-8")
    (tmp_path / "data.json").write_text(json.dumps(DATA), encoding="utf-8")
    return tmp_path


def test_every_construct(folder: Path) -> None:
    spec = load(folder / "main.place", {"gpus": "2", "share": "50%", "far": "1e999"}, folder / "data.json")
    again = means_the_same(spec, folder)
    same_optimum(spec, again)
    text = elaborated(spec.elaborated)
    assert "import" not in text
    for line in (
        'graph from "models/graph.json" { time_unit = 1 ms }',
        "param room: data = 6 MiB",
        "param gpus: int = 2",
        "param share = 0.5",
        "param strict = true",
        'param label = "a, \\"b\\""',
        "param rate = 18 MiB/s",
        "param odd = 6e-06 * 1 s * 1 s",
        "param far = 1e999",
        "param slow = 1.5 s/B",
        'param cost[d in devices] = {gpu[1]: 3, gpu[2]: 3, gpu[3]: 3, "big one": 2.5, cpu: 1}',
        "param level[i in 1..3] = {1: 2, 2: 1, 3: -4.5}",
        "param step[i in -1..2 where i != 0]: int = {-1: -1, 1: -1, 2: 7}",
        "param part[p in {forward, backward}]: bool = {forward: true, backward: true}",
        "param every[i0 in tensors]: data = 64 MiB",
        "param half[v in nodes] = v.memory / 2 MiB",
        "device gpu[3]: accelerator { memory = 2 * room }",
        "schedule pipedream",
        "    few(2, ends)",
    ):
        assert line in text.split("\n"), line
    assert max(len(line) for line in text.split("\n")) <= 120
