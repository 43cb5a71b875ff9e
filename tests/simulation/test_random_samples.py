"""Runs of one sample on random graphs: nothing waits without a reason, the critical path lasts as long as they do."""

from __future__ import annotations

import random
from math import fsum

import pytest

import placedsl
from placedsl.api.timelines import SampleTimeline
from placedsl.diagnostics import InputError

RULES = ["", "sequential", "congestion by port", "sequential\n    congestion by port"]


def random_run(seed: int, rules: str, calls: bool) -> SampleTimeline:
    """Ten nodes, some of no length, on three devices and a host; the first split in calls that waits in no circle."""
    rng = random.Random(seed)
    nodes = range(10)
    lines = ["graph {"]
    for v in nodes:
        time = rng.choice([0, 1, 2, 3, 5]) + rng.random() * rng.choice([0, 1])
        lines.append(f"    node n{v} {{ time = {time:.3f} ms, output = {rng.randint(0, 4)} MB }}")
    lines += [f"    n{u} -> n{v}" for u in nodes for v in nodes if u < v and rng.random() < 0.25]
    lines += ["}", "device gpu[3]: accelerator", "device cpu: host", "interconnect { bandwidth = 1 GB/s }"]
    lines += ["schedule calls { pieces = 4 }" if calls else "schedule dataflow", "minimize latency"]
    lines += ["subject to", f"    {rules}"] if rules else []
    spec = placedsl.loads("\n".join(lines))
    while True:
        placement = [rng.randrange(4) for _ in nodes]
        times = {"nodes": {f"n{v}": {"piece": 1 + v * 4 // 10} for v in nodes}} if calls else None
        try:
            found = spec.timeline(placement, times=times)
        except InputError:
            continue
        assert isinstance(found, SampleTimeline)
        return found


@pytest.mark.parametrize("rules", [*RULES, "calls"])
def test_waits_and_the_critical_path(rules: str) -> None:
    for seed in range(25):
        timeline = random_run(seed, "" if rules == "calls" else rules, rules == "calls")
        tasks = timeline.tasks
        for k, task in enumerate(tasks):
            wait = timeline.wait(k)
            assert wait.reason != "given"
            if wait.reason == "nothing":
                assert task.start == pytest.approx(0.0)
            else:
                assert tasks[wait.of].finish == pytest.approx(task.start)
                assert wait.of in task.inputs or (wait.row in task.rows and wait.row in tasks[wait.of].rows)
            assert all(tasks[of].finish <= task.start + 1e-12 for of in task.inputs)
        assert fsum(tasks[k].finish - tasks[k].start for k in timeline.critical) == pytest.approx(timeline.latency)
        assert tasks[timeline.critical[-1]].finish == timeline.latency


@pytest.mark.parametrize("rules", [*RULES, "calls"])
def test_rows_lanes_and_busy_times(rules: str) -> None:
    several = 0
    for seed in range(25):
        timeline = random_run(seed, "" if rules == "calls" else rules, rules == "calls")
        for r, row in enumerate(timeline.rows):
            own = [timeline.tasks[k] for k in row.tasks]
            lanes = timeline.lanes(r)
            assert sorted(k for lane in lanes for k in lane) == sorted(row.tasks)
            work = fsum(task.finish - task.start for task in own)
            idle = fsum(end - begin for begin, end, _ in timeline.gaps(r))
            assert timeline.busy(r) + idle == pytest.approx(timeline.latency)
            assert timeline.busy(r) <= work + 1e-12
            if row.exclusive:
                assert timeline.busy(r) == pytest.approx(work)
            several += len(lanes) > 1
    assert several or rules == RULES[-1]
