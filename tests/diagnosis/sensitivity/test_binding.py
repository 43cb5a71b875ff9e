"""What binds and what the bottleneck is, against the definitions, and what the command shows of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from support.brute_force import beside, loads, passes, placements
from support.paths import ROOT
from support.random_specs import random_spec
from support.streaming_specs import best, streamed, streaming_spec

import placedsl
from placedsl.cli import main as cli
from placedsl.diagnosis.sensitivity.binding import binding, bottlenecks
from placedsl.diagnosis.sensitivity.what_if import changes, with_device, with_memory
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem

SCHEMA = json.loads((ROOT / "docs" / "answer.schema.json").read_text(encoding="utf-8"))
SPEC = """graph {
    node a { time = {accelerator: 4 ms, host: 30 ms}, memory = 2 GiB, output = 8 MiB }
    node b { time = {accelerator: 6 ms, host: 40 ms}, memory = 3 GiB, output = 8 MiB }
    node c { time = {accelerator: 5 ms}, memory = 3 GiB, output = 8 MiB }
    a -> b -> c
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
link gpu <-> cpu { bandwidth = 16 GB/s }
set fast = {gpu[1], gpu[2]}
minimize time_per_sample
subject to
    memory
    few: forall d in gpu: count(v in nodes: v on d) <= 2
    last: c on gpu[2]
    quick: forall d in fast: load(d) <= 12 ms
"""


def test_the_bottleneck_has_the_largest_load() -> None:
    """On random placements of random problems, by the reference's loads; passes apart under gpipe."""
    looked = 0
    for seed in range(80):
        problem = placedsl.loads(random_spec(seed)).problem
        if np.isinf(problem.time).all(axis=1).any():
            continue
        rng = np.random.default_rng(seed)
        placement = [int(rng.choice(np.flatnonzero(np.isfinite(t)))) for t in problem.time]
        every = np.array([placement])
        names = [d.name for d in problem.machine.devices]
        back = problem.graph.backward
        parts = [passes(problem, every, ~back)[0], passes(problem, every, back)[0]]
        if problem.execution.name == "pipedream":
            parts = [loads(problem, every)[0]]
        elif problem.execution.name != "gpipe":
            computing, read, written = (part[0] for part in beside(problem, every))
            moving = read + written if problem.execution.name == "overlapped" else np.maximum(read, written)
            parts = [np.maximum(computing, moving)]
        expected = [(n, x) for p in parts for n, x in zip(names, p, strict=True) if x > 0 and x >= p.max() * (1 - 1e-9)]
        found = [(b.device, b.value) for b in bottlenecks(problem, placement)]
        assert [n for n, _ in found] == [n for n, _ in expected], seed
        assert np.allclose([x for _, x in found], [x for _, x in expected])
        looked += 1
    assert looked >= 60


def test_what_binds() -> None:
    problem = placedsl.loads(SPEC).problem
    told = {b.name: (b.instances, b.total) for b in binding(problem, [0, 0, 1])}
    assert told == {"memory": ((), 2), "few": (("d=gpu[1]",), 2), "last": ((), 0), "quick": ((), 2)}
    told = {b.name: b.instances for b in binding(problem, [2, 1, 1])}
    assert told["memory"] == told["few"] == ("d=gpu[2]",)


def test_a_rule_that_binds_is_broken_by_a_little_less() -> None:
    """What is said to have no slack fails once its devices have a little less memory."""
    problem = placedsl.loads(SPEC).problem
    assert not evaluate(problem, [2, 1, 1]).violations
    broken = evaluate(with_memory(problem, "gpu", -1e6), [2, 1, 1]).violations
    assert [v.rule for v in broken] == ["memory"]


def test_one_more_device_leaves_the_others_where_they_are() -> None:
    """It is the last, belongs to the sets of its family and kind, and to no set that lists devices."""
    problem = placedsl.loads(SPEC).problem
    larger = with_device(problem, "gpu")
    assert larger is not None
    assert [d.name for d in larger.machine.devices] == ["gpu[1]", "gpu[2]", "cpu", "gpu[3]"]
    assert np.array_equal(larger.time[:, :3], problem.time)
    assert np.array_equal(larger.time[:, 3], problem.time[:, 0])
    assert np.array_equal(larger.transfer[:, 3], problem.transfer[:, 0])
    only = replace(larger, constraints=tuple(r for r in larger.constraints if r.name in ("few", "quick", "memory")))
    assert {v.rule for v in evaluate(only, [3, 3, 3]).violations} == {"few", "memory"}


def test_one_more_device_where_links_are_declared_one_by_one() -> None:
    own = "link gpu[1] <-> cpu { bandwidth = 16 GB/s }\nlink gpu[2] <-> cpu { bandwidth = 8 GB/s }"
    problem = placedsl.loads(SPEC.replace("link gpu <-> cpu { bandwidth = 16 GB/s }", own)).problem
    larger = with_device(problem, "gpu")
    assert larger is not None
    assert np.array_equal(larger.transfer[:, 3], problem.transfer[:, 1])


def test_one_more_device_under_dataflow() -> None:
    """It moves tensors over the interconnect; over links of single devices nothing reaches it, and nothing is said."""
    text = (
        "graph {\n    node a { time = 4 ms, output = 16 MB }\n    node b { time = 4 ms }\n    a -> b\n}\n"
        "device gpu[2]: accelerator\ninterconnect { bandwidth = 16 GB/s }\nminimize latency\n"
    )
    larger = with_device(placedsl.loads(text).problem, "gpu")
    assert larger is not None
    assert evaluate(larger, [0, 2]).objectives == pytest.approx([0.004 + 0.001 + 0.004])
    single = text.replace("interconnect", "link gpu[1] <-> gpu[2]")
    assert with_device(placedsl.loads(single).problem, "gpu") is None


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.place"
    path.write_text(SPEC, encoding="utf-8")
    assert cli.main(["solve", str(path), "--quiet", "--why", "--solver", "highs"]) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    at = next(i for i, line in enumerate(shown) if line.startswith("bottleneck"))
    assert shown[at:] == [
        "bottleneck gpu[2]: 10.0486 ms, of which 1.04858 ms moving tensors",
        "what binds",
        f"{path}:13 memory slack at this placement",
        f"{path}:14 few 1 of 2: d=gpu[2]",
        f"{path}:15 last no slack to measure",
        f"{path}:16 quick slack at this placement",
        "what would change time_per_sample, each by itself",
        "one more cpu no change proven",
        "1 GiB more on each gpu no change proven",
        "without memory no change proven",
        "without few no change proven",
        "without last no change proven",
        "without quick no change proven",
    ]
    assert cli.main(["solve", str(path), "--json", "-", "--quiet", "--why", "--solver", "highs"]) == 0
    answer = json.loads(capsys.readouterr().out)
    jsonschema.validate(answer, SCHEMA)
    assert answer["why"]["bottlenecks"][0]["device"] == "gpu[2]"
    assert [c["proven"] for c in answer["why"]["changes"]] == [True] * 6


def test_stages_that_several_devices_share() -> None:
    """b is on three of four devices; one more lets a be shared as well, and the load is that of each copy."""
    spec = placedsl.loads(
        """
        graph {
            node a { time = 5 ms }
            node b { time = 12 ms }
            a -> b
        }
        device gpu[4]: accelerator
        interconnect { bandwidth = 16 GiB/s }
        parallelism { data = 1..4 }
        minimize time_per_sample
        subject to
            apart_from: forall d in gpu: not (a on d and b on d)
        """
    )
    told = spec.why(spec.solve())
    assert [round(b.value, 9) for b in told.bottlenecks] == [0.005]
    (more,) = [e for e in told.effects if e.change == "one more gpu"]
    assert more.value == pytest.approx(0.004)


@pytest.mark.parametrize("seed", range(12))
def test_more_memory_and_faster_streams_do_what_enumeration_says(seed: int) -> None:
    problem = placedsl.loads(streaming_spec(seed)).problem
    for family in {d.family for d in problem.machine.devices if d.attributes.get("streams")}:
        known = {change.text: change.problem for change in changes(problem)}
        faster = known[f"streams twice as fast on each {family}"]
        text = next((text for text in known if f" more on each {family}" in text), None)
        if text is not None:  # there may be no memory at all
            assert best(known[text]) <= best(problem) * (1 + 1e-12)
        every = placements(problem)[:200]
        assert np.allclose(streamed(faster, every)[:, members(problem, family)] * 2.0,
                           streamed(problem, every)[:, members(problem, family)])  # fmt: skip
        found = bottlenecks(problem, [0] * problem.graph.nodes)
        assert all(one.streamed == pytest.approx(streamed(problem, every[:1])[0, 0]) for one in found)


def members(problem: Problem, family: str) -> list[int]:
    return [i for i, device in enumerate(problem.machine.devices) if device.family == family]
