"""What holds of every timeline, checked on its arrays and the problem alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from placedsl.simulation.pipeline_timeline import PipelineTimeline


def check(timeline: PipelineTimeline, placement: Sequence[int]) -> None:
    """Each node in one stage of its device, each stage once a sample, one thing at a time, inputs there before."""
    problem = timeline.problem
    stage_of = {v: p for p, stage in enumerate(timeline.stages) for v in stage.nodes}
    assert sorted(v for stage in timeline.stages for v in stage.nodes) == list(range(problem.graph.nodes))
    assert all(timeline.stages[stage_of[v]].device == d for v, d in enumerate(placement))
    start, end = timeline.start, timeline.end
    slack = 1e-12 * timeline.total
    assert start.shape == end.shape == (len(timeline.stages), timeline.samples)
    assert np.isfinite(start).all()
    assert np.isfinite(end).all()
    assert (start >= 0).all()
    for p in range(len(timeline.stages)):
        assert np.allclose(end[p] - start[p], timeline.costs.duration(p), rtol=0, atol=1e-11 * timeline.total)
    for device in {stage.device for stage in timeline.stages}:
        own = [p for p, stage in enumerate(timeline.stages) if stage.device == device]
        begins, ends = start[own].ravel(), end[own].ravel()
        order = np.lexsort((ends, begins))
        assert (begins[order][1:] >= ends[order][:-1] - slack).all(), "a device does two things at once"
    for u, v in zip(problem.graph.edge_source.tolist(), problem.graph.edge_target.tolist()):
        if stage_of[u] != stage_of[v]:
            assert (start[stage_of[v]] >= end[stage_of[u]] - slack).all(), "an input had not arrived"
    for p in range(len(timeline.stages)):
        assert (np.diff(start[p]) >= -slack).all(), "samples overtake one another"


def check_operations(timeline: PipelineTimeline) -> None:
    """Every operation once a sample, on one engine one thing at a time, after what it needs; samples taken in turn."""
    work, slack = timeline.work, 1e-9 * timeline.total
    begun, ended = timeline.begun, timeline.ended
    for o, operation in enumerate(work.operations):
        known = np.isfinite(begun[o])
        assert np.allclose((ended - begun)[o][known], operation.duration, rtol=0, atol=slack)
        assert known.all() or operation.kind == "weights"
    for q, p in work.arcs:
        if work.operations[p].kind != "weights":
            assert (begun[p] >= ended[q] - slack).all(), "an input had not arrived"
            continue
        apart = work.apart.get(work.operations[p].device, 1)
        turns = np.array([timeline.turn(i) for i in range(timeline.samples)])
        for part in range(apart):  # an exchange of weights follows all samples of its copies since the one before
            own = np.flatnonzero(turns % apart == part)
            last = 0
            for k in np.flatnonzero(np.isfinite(begun[p, own])):
                assert (begun[p, own[k]] >= ended[q, own[last : k + 1]] - slack).all()
                last = k + 1
            assert last == len(own)
    tasks = timeline.tasks
    for row in timeline.rows:
        own = [tasks[k] for k in row.tasks]
        assert all(b.start >= a.finish - slack for a, b in itertools.pairwise(own)), "an engine does two things at once"
    names = [device.name for device in timeline.problem.machine.devices]
    for leader, members in work.groups.items():
        for place, device in enumerate(members):
            own = [tasks[k] for k in timeline.rows[names.index(names[device])].tasks]
            held = {task.sample - 1 for task in own if task.kind == "stage"}
            assert all(timeline.turn(i) % len(members) == place for i in held)
            pieces = sum(stage.device == leader for stage in timeline.stages)
            assert sum(task.kind == "stage" for task in own) == pieces * len(held)
