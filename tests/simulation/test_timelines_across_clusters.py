"""Plans over clusters that share samples, sample by sample: what is measured is what the evaluator says."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from support.paths import ROOT
from support.piper_levels import drawn_levels
from support.timeline_invariants import check_operations

import placedsl
from placedsl import Answer
from placedsl.api.timelines import shown_timeline
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.problem.cluster_levels import ClusterLevels
from placedsl.simulation.pipeline_timeline import PipelineTimeline

HELD = ("pipeline", "batch", "sample")


def timeline_of(answer: Answer) -> PipelineTimeline:
    assert answer.evaluation is not None
    assert answer.placement is not None
    return shown_timeline(answer.problem, answer.placement, answer.evaluation, None, None, None)


def check_links(timeline: PipelineTimeline, levels: ClusterLevels) -> None:
    """Each tensor between stages of different clusters goes over each link on its way once, after it is made and before
    it is read, in the clusters that work on the sample; links do one thing at a time, and carry what the graph says."""
    assert timeline.links is not None
    links, begun, ended = timeline.links.links, timeline.links.begun, timeline.links.ended
    slack, graph = 1e-9 * timeline.total, timeline.problem.graph
    both, number = any(s.backward for s in timeline.stages), len(links.plan.planned)
    place = {v: p for p, stage in enumerate(timeline.stages) if not stage.backward for v in stage.nodes}
    carried = dict.fromkeys(links.used, 0.0)
    for o, operation in enumerate(links.operations):
        known = np.isfinite(begun[o])
        assert np.allclose((ended - begun)[o][known], operation.duration, rtol=0, atol=slack)
        assert known.all() or operation.kind == "weights"
        carried[operation.cluster] += operation.duration * (operation.kind != "weights")
    expected = dict.fromkeys(links.used, 0.0)
    for tensor, maker in enumerate(graph.tensor_producer.tolist()):
        readers = [place[v] for v in graph.edge_target[graph.edge_tensor == tensor].tolist()]
        home = set(levels.around[timeline.stages[place[maker]].device])
        for cluster in links.used:
            inside = [cluster in levels.around[timeline.stages[p].device] for p in readers]
            if (cluster in home and not all(inside)) or (cluster not in home and any(inside)):
                expected[cluster] += float(levels.crossing[levels.level_of[cluster], tensor])
        for reader in readers:
            away = set(levels.around[timeline.stages[reader].device])
            for backward in range(1 + both):
                first, last = place[maker] + number * backward, reader + number * backward
                if backward:
                    first, last = last, first
                on_way = {
                    cluster: [o for o, operation in enumerate(links.operations) if operation.cluster == cluster
                              and operation.kind != "weights" and operation.stage == place[maker] + number * backward]
                    for cluster in (home ^ away if reader != place[maker] else ())
                }  # fmt: skip
                for cluster, ways in on_way.items():
                    assert ways, "nothing goes over a link on the way"
                    in_time = [(begun[o] >= timeline.end[first] - slack).all() for o in ways]
                    in_time = [(ended[o] <= timeline.start[last] + slack).all() and known
                               for o, known in zip(ways, in_time, strict=True)]  # fmt: skip
                    assert any(in_time), cluster
    assert carried == pytest.approx(expected, rel=1e-9)
    tasks, names = timeline.tasks, [row.name for row in timeline.rows]
    assert len(names) == len(set(names))
    for row in timeline.rows:
        own = [tasks[k] for k in row.tasks]
        assert all(b.start >= a.finish - slack for a, b in itertools.pairwise(own)), "a link does two things at once"
        if row.kind == "link":
            assert all(t.finish - t.start > 0 for t in own)
    for (cluster, image), name in links.names().items():
        known = next(c for c in timeline.problem.machine.clusters if c.name == name)
        own = [tasks[k] for d in known.devices for k in timeline.rows[d].tasks]
        held = {task.sample for task in own if task.kind == "stage"}
        turns = {timeline.turn(n - 1) % links.images(cluster) for n in held}
        assert turns <= {image}, "a cluster takes one turn"
        assert turns or 0 < timeline.microbatches <= image


@pytest.mark.sampled(12)
@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("first", range(0, 320, 20))
def test_what_is_measured_is_what_the_evaluator_says(held: str, first: int, tmp_path: Path) -> None:
    known = 0
    for seed in range(first, first + 20):
        asked, levels = drawn_levels(seed)
        asked = dataclasses.replace(asked, held=held)
        (tmp_path / "w.json").write_text(json.dumps(asked.workload), encoding="utf-8")
        spec = placedsl.loads(levels.spec(asked, "w.json"), tmp_path)
        answer = solve(spec.problem, spec.elaborated.checked_formulations, Request(workers=1), isolated=False)
        if answer.termination == "infeasible":
            continue
        assert answer.evaluation is not None
        timeline = timeline_of(answer)
        assert timeline.memory is not None
        check_operations(timeline)
        across = answer.problem.execution.cluster_levels
        assert across is not None
        check_links(timeline, across)
        for stage in answer.plan.stages:
            devices = [timeline.problem.machine.positions[name] for name in stage.devices]
            assert sorted(devices) == sorted(timeline.sharing(devices[0])), seed
            most = timeline.device_samples_in_flight[devices]
            assert most[0] == most.max() == stage.in_flight, seed
            assert timeline.memory[devices].max() == pytest.approx(stage.memory, rel=1e-12), seed
            assert timeline.loads[devices].tolist() == pytest.approx([stage.load] * len(devices), rel=1e-9), seed
            assert stage.memory == answer.evaluation.memory[devices[0]], seed
        assert timeline.loads.max() == pytest.approx(answer.value, rel=1e-9), seed
        # A stage that costs nothing and reads nothing may begin all samples before one has left: no steady state then.
        if not np.isnan(timeline.time_per_sample):
            assert timeline.time_per_sample >= answer.value * (1 - 1e-9), seed
        assert timeline.total >= answer.value * timeline.samples * (1 - 1e-9), seed
        known += 1
    assert known


RACKS = """
graph from "blocks.json"
cluster rack[2] {
    cluster server[2] {
        device gpu[2]: accelerator { memory = 24 GiB }
        interconnect { bandwidth = 16 GiB/s }
    }
    interconnect { bandwidth = 12 GiB/s }
}
interconnect { bandwidth = 4 GiB/s }
parallelism { microbatches = 16, data = divisors(microbatches), exchange = batch, across = server }
minimize time_per_sample
subject to
    memory
    contiguous
"""


def test_three_levels_by_hand(tmp_path: Path) -> None:
    """docs/language/plans.md: two racks with a stage each, whose servers share the samples."""
    timeline = placedsl.loads(RACKS, ROOT / "docs" / "language").solve().timeline()
    assert isinstance(timeline, PipelineTimeline)
    assert timeline.links is not None
    # A copy of two devices in each server of a rack.
    assert timeline.work.groups == {0: (0, 2), 4: (4, 6)}
    assert timeline.work.apart == {0: 2, 4: 2}
    assert timeline.device_samples_in_flight.tolist() == [2, 2, 2, 2, 1, 1, 1, 1]
    assert timeline.largest_load == pytest.approx(0.0558125 / 2)
    # Stages wait for the links: few samples are in flight, and weights hold up tensors on the links between servers.
    assert timeline.time_per_sample == pytest.approx(0.0487395833)
    rows = {row.name: row for row in timeline.rows if row.kind == "link"}
    assert set(rows) == {f"around rack[{k}]" for k in (1, 2)} | {
        f"around rack[{k}].server[{s}]" for k in (1, 2) for s in (1, 2)
    }
    tasks = timeline.tasks
    first = [tasks[k] for k in rows["around rack[1]"].tasks]
    # 64 MiB at 4 GiB/s both ways, a third of it forward: for every sample, over one link.
    sent = [t for t in first if t.kind == "send"]
    assert len(sent) == timeline.samples
    assert {round(t.finish - t.start, 12) for t in sent} == {round(1 / 64 / 3, 12)}
    # Servers exchange the weights of both devices of a copy once a batch: half of 4 GiB at 12 GiB/s.
    server = [tasks[k] for k in rows["around rack[1].server[2]"].tasks]
    weights = [t for t in server if t.kind == "weights"]
    assert len(weights) == -(-timeline.samples // 16)
    assert {round(t.finish - t.start, 12) for t in weights} == {round(w, 12) for w in (weights_over_link(timeline),)}
    assert {t.sample % 2 for t in server if t.kind == "send"} == {0}
    timeline.draw(tmp_path / "t.svg")
    assert "around rack[1].server[2]" in (tmp_path / "t.svg").read_text(encoding="utf-8")
    trace = json.loads(timeline.trace())
    assert any(e["name"] == "weights" for e in trace["traceEvents"])
    assert timeline.document()["time_per_sample"] == timeline.time_per_sample


def weights_over_link(timeline: PipelineTimeline) -> float:
    """Half of what one copy of the stage holds, over the link between servers of 12 GiB/s."""
    options = timeline.problem.execution.options
    assert options is not None
    own = timeline.links.links.plan.planned[0] if timeline.links else None
    assert own is not None
    return own.weights * 16 / 12 * len(own.copies[0]) / 2
