"""Plans sample by sample: what is measured is what the evaluator says, under every way to hold samples."""

from __future__ import annotations

import dataclasses
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from support.piper_workloads import Asked, drawn
from support.plan_rules import drawn_goals
from support.timeline_invariants import check_operations

import placedsl
from placedsl import InputError, UsageError
from placedsl.api.timelines import shown_timeline
from placedsl.planner.answer import Answer
from placedsl.planner.request import Request
from placedsl.planner.solve import solve

HELD = ("pipeline", "batch", "sample")
BLOCKS = Path(__file__).parents[2] / "docs" / "language" / "blocks.json"


def planned(asked: Asked, goals: str, folder: Path) -> Answer:
    (folder / "w.json").write_text(json.dumps(asked.workload), encoding="utf-8")
    text = asked.spec("w.json").replace("minimize time_per_sample", f"minimize {goals}")
    spec = placedsl.loads(text, folder)
    return solve(spec.problem, spec.elaborated.checked_formulations, Request(workers=1), isolated=False)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("first", range(0, 320, 20))
def test_what_is_measured_is_what_the_evaluator_says(held: str, first: int, tmp_path: Path) -> None:
    known = 0
    for seed in range(first, first + 20):
        asked = dataclasses.replace(drawn(seed), held=held)
        goals = " then ".join(drawn_goals(random.Random(seed)))
        answer = planned(asked, goals, tmp_path)
        if answer.termination == "infeasible":
            continue
        assert answer.evaluation is not None
        assert answer.placement is not None
        timeline = shown_timeline(answer.problem, answer.placement, answer.evaluation, None, None, None)
        assert timeline.memory is not None
        check_operations(timeline)
        for stage in answer.plan.stages:
            devices = [timeline.problem.machine.positions[name] for name in stage.devices]
            assert stage.parallelism["data"] * stage.parallelism["tensor"] == len(devices), seed
            most = timeline.device_samples_in_flight[devices]
            assert most[0] == most.max() == stage.in_flight, seed
            assert timeline.memory[devices].max() == pytest.approx(stage.memory, rel=1e-12), seed
            if asked.microbatches % stage.parallelism["data"] == 0 or asked.held != "batch":
                assert timeline.memory[devices].min() == timeline.memory[devices].max(), seed
            assert timeline.loads[devices].tolist() == pytest.approx([stage.load] * len(devices), rel=1e-9), seed
            assert stage.memory == answer.evaluation.memory[devices[0]], seed
        unused = sorted({*range(len(timeline.problem.machine.devices))} - {*timeline.devices})
        assert not timeline.memory[unused].any()
        assert timeline.largest_load == pytest.approx(max(answer.evaluation.loads), rel=1e-9), seed
        assert timeline.time_per_sample >= timeline.largest_load * (1 - 1e-9), seed
        known += 1
    assert known


def copies_at_work(text: str, **asked: object) -> placedsl.Timeline:
    spec = placedsl.loads(text, BLOCKS.parent)
    timeline = spec.solve().timeline(**asked)  # type: ignore[arg-type]
    assert isinstance(timeline, placedsl.Timeline)
    return timeline


SPEC = """
graph from "blocks.json"
device gpu[8]: accelerator { memory = 24 GiB }
interconnect { bandwidth = 16 GiB/s }
parallelism { microbatches = 16, data = divisors(microbatches), exchange = batch }
minimize time_per_sample
subject to
    memory
    contiguous
"""


def test_by_hand() -> None:
    """Two stages, each of two copies over two devices; docs/language/plans.md has the numbers."""
    timeline = copies_at_work(SPEC)
    assert timeline.schedule == "1f1b"
    assert timeline.work.groups == {0: (0, 2), 4: (4, 6)}
    assert timeline.work.copies == {0: (0, 1), 2: (2, 3), 4: (4, 5), 6: (6, 7)}
    assert timeline.device_samples_in_flight.tolist() == [2, 2, 2, 2, 1, 1, 1, 1]
    assert [stage.name for stage in timeline.stages] == [
        "gpu[1] forward", "gpu[5] forward", "gpu[1] backward", "gpu[5] backward"
    ]  # fmt: skip
    # 55.8 ms per sample of a copy, a third of it forward; the second stage begins when the first has sent.
    forward = (2 * 24 + 1e3 / 256 + 1e3 / 256) / 3 / 1e3
    assert timeline.costs.duration(0) == pytest.approx(forward)
    assert timeline.start[1, 0] == pytest.approx(forward)
    assert timeline.time_per_sample == pytest.approx(0.0318125)
    # After 16 samples the four devices of a stage exchange half of 2 GiB: 62.5 ms.
    exchanges = [task for task in timeline.tasks if task.kind == "weights" and math.isfinite(task.start)]
    assert {round(task.finish - task.start, 12) for task in exchanges} == {0.0625}
    assert {task.sample for task in exchanges} == {16, 32, 48, 64, 80, 96, 100}


def test_whole_batches() -> None:
    """All forward passes of a batch are done before its first backward pass, and its last before the next batch."""
    timeline = copies_at_work(SPEC.replace("exchange = batch", "exchange = batch, in_flight = batch"))
    assert (timeline.schedule, timeline.microbatches, timeline.samples) == ("gpipe", 16, 32)
    stages = len(timeline.stages) // 2
    for p in range(stages):
        for copy in range(2):
            own = np.arange(copy, 16, 2)
            assert timeline.end[p, own].max() <= timeline.start[stages + p, own].min()
            assert timeline.end[stages + p, own].max() <= timeline.start[p, own + 16].min()
    assert timeline.time_per_sample > timeline.largest_load  # the pipeline fills and drains once a batch


def test_stages_that_do_not_wait_for_one_another() -> None:
    """A batch of a plan may take less than the largest forward and the largest backward load together, which are those
    of two stages here: 1 s, and 1 s with 1.5 s of weights.  It takes no less than the largest load."""
    text = """
graph {
    node a { time = 3 s }
    node b { time = 3 s, parameters = 12 GiB }
}
device gpu[3]: accelerator
interconnect { bandwidth = 1 GiB/s }
parallelism { data = {1, 2}, microbatches = 4, exchange = batch, in_flight = batch }
minimize time_per_sample
"""
    placement, copies = {"a": "gpu[1]", "b": "gpu[2]"}, {"copies": {"gpu[1]": 1, "gpu[2]": 2}}
    timeline = placedsl.loads(text).timeline(placement, variables=copies)
    assert isinstance(timeline, placedsl.Timeline)
    assert timeline.schedule == "gpipe"
    assert timeline.loads.tolist() == pytest.approx([3.0, 3.0, 3.0])
    assert timeline.largest_load == pytest.approx(3.0)
    assert timeline.time_per_sample == pytest.approx(3.0)
    assert "in batches of 4" in str(timeline)
    assert "over whole batches: the largest load" in str(timeline)


def test_what_cannot_be_asked() -> None:
    spec = placedsl.loads(SPEC, BLOCKS.parent)
    answer = spec.solve()
    for asked in ({"schedule": "gpipe"}, {"microbatches": 4}):
        with pytest.raises(UsageError, match=r"stands in the spec: parallelism \{ in_flight = pipeline \}"):
            answer.timeline(**asked)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="whole number from 1"):
        answer.timeline(samples=0)
    with pytest.raises(InputError, match="is on no device"):
        spec.timeline([-1] * 4)
