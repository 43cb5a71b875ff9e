"""Timelines small enough to be worked out by hand, among them those of Figures 5 and 7 of Tarnawski et al. 2020."""

from __future__ import annotations

import pytest
from support.timeline_invariants import check

import placedsl
from placedsl.diagnostics import InputError, UsageError
from placedsl.problem.problem import Problem
from placedsl.simulation.pipeline import simulate
from placedsl.simulation.pipeline_timeline import PipelineTimeline


def problem_of(nodes: dict[str, float], edges: str, gpus: int, output: float = 0, more: str = "") -> Problem:
    """Nodes with their times in ms (``b…`` is backward), every tensor of so many ms to move."""
    lines = ["graph {"]
    for name, time in nodes.items():
        back = ", backward = true" if name.startswith("b") else ""
        lines.append(f"    node {name} {{ time = {time} ms, output = {output} MB{back} }}")
    lines += [f"    {edges}", "}", f"device gpu[{gpus}]: accelerator", "device cpu: host"]
    lines += ["interconnect { bandwidth = 1 GB/s }", more, "minimize time_per_sample"]
    return placedsl.loads("\n".join(lines)).problem


def training(stages: int) -> Problem:
    """A chain of so many layers, each pass of each takes 1 ms."""
    forward, backward = ([f"{part}{s}" for s in range(stages)] for part in "fb")
    chain = " -> ".join([*forward, *reversed(backward)])
    return problem_of(dict.fromkeys([*forward, *backward], 1.0), chain, stages)


def drawn(timeline: PipelineTimeline, backward: str = "'") -> list[str]:
    """What each device does in each slot of 1 ms: the number of the sample, marked in its backward pass."""
    rows = []
    for device in sorted({piece.device for piece in timeline.stages}):
        slots = ["."] * round(1000 * timeline.total)
        for p, piece in enumerate(timeline.stages):
            for i in range(timeline.samples) if piece.device == device else ():
                first, past = round(1000 * timeline.start[p, i]), round(1000 * timeline.end[p, i])
                assert slots[first:past] == ["."] * (past - first)
                slots[first:past] = [f"{i + 1}{backward if piece.backward else ''}"] * (past - first)
        rows.append(" ".join(slots))
    return rows


def test_figure_5a_a_contiguous_pipeline_runs_at_its_longest_stage() -> None:
    problem = problem_of({"u": 1, "v": 2, "w": 1}, "u -> v -> w", 3)
    timeline = simulate(problem, [0, 1, 2], samples=4)
    assert timeline.schedule == "pipelined"
    assert drawn(timeline) == [
        "1 2 3 . 4 . . . . .",  # sample 4 enters when sample 1 has left: three stages, three samples
        ". 1 1 2 2 3 3 4 4 .",
        ". . . 1 . 2 . 3 . 4",
    ]
    assert timeline.ramp_up == pytest.approx(3e-3)
    assert timeline.total == pytest.approx(10e-3)
    assert timeline.idle[:3] == pytest.approx([0.6, 0.2, 0.6])
    assert timeline.samples_in_flight == 3
    assert simulate(problem, [0, 1, 2], samples=50).time_per_sample == pytest.approx(2e-3, rel=1e-12)


def test_figure_5b_a_device_with_two_pieces_runs_each_on_another_sample() -> None:
    problem = problem_of({"u": 1, "v": 2, "w": 1}, "u -> v -> w", 2)
    timeline = simulate(problem, [0, 1, 0], samples=5)
    assert [piece.name for piece in timeline.stages] == ["gpu[1] 1", "gpu[2]", "gpu[1] 2"]
    assert drawn(timeline) == ["1 2 . 1 3 2 4 3 5 4 . 5", ". 1 1 2 2 3 3 4 4 5 5 ."]
    order = sorted((timeline.start[p, i], f"{i + 1}{'ab'[p // 2]}") for p in (0, 2) for i in range(5))
    assert " ".join(word for _, word in order) == "1a 2a 1b 3a 2b 4a 3b 5a 4b 5b"
    assert simulate(problem, [0, 1, 0], samples=50).time_per_sample == pytest.approx(2e-3, rel=1e-12)


def test_figure_7a_gpipe() -> None:
    timeline = simulate(training(4), [0, 1, 2, 3] * 2, samples=6, schedule="gpipe", microbatches=4)
    forward_then_backward = [
        "1 2 3 4 . . . . . . 1' 2' 3' 4' 5 6",
        ". 1 2 3 4 . . . . 1' 2' 3' 4' . . 5",
        ". . 1 2 3 4 . . 1' 2' 3' 4' . . . .",
        ". . . 1 2 3 4 1' 2' 3' 4' . . . . .",
    ]
    assert [" ".join(row.split()[:16]) for row in drawn(timeline)] == forward_then_backward
    assert timeline.microbatches == 4
    assert timeline.time_per_sample == pytest.approx(14e-3 / 4)


def test_figure_7b_one_forward_one_backward() -> None:
    """The figure lets stages 2 and 3 run ahead in the ramp-up (1f1b-eager); what is needed is less (1f1b)."""
    figure = [
        "1 2 3 4 . . . 1' 5 2' 6 3' 7 4' 8 5'",
        ". 1 2 3 4 . 1' . 2' 5 3' 6 4' 7 5' 8",
        ". . 1 2 3 1' 4 2' . 3' 5 4' 6 5' 7 6'",
        ". . . 1 1' 2 2' 3 3' 4 4' 5 5' 6 6' 7",
    ]
    eager = simulate(training(4), [0, 1, 2, 3] * 2, samples=9, schedule="1f1b-eager")
    assert [" ".join(row.split()[:16]) for row in drawn(eager)] == figure
    plain = simulate(training(4), [0, 1, 2, 3] * 2, samples=9)
    assert plain.schedule == "1f1b"
    rows = [" ".join(row.split()[:16]) for row in drawn(plain)]
    assert rows[0] == figure[0]
    assert rows[1] == ". 1 2 3 . . 1' 4 2' 5 3' 6 4' 7 5' 8"
    assert rows[2] == ". . 1 2 . 1' 3 2' 4 3' 5 4' 6 5' 7 6'"
    assert rows[3] == figure[3]
    assert plain.total == eager.total
    assert plain.device_samples_in_flight.tolist() == [4, 3, 2, 1, 0]
    assert eager.device_samples_in_flight.tolist() == [4, 4, 3, 1, 0]


def test_one_forward_one_backward_with_longer_backward_passes() -> None:
    problem = problem_of({"f0": 1, "f1": 1, "b1": 2, "b0": 2}, "f0 -> f1 -> b1 -> b0", 2)
    assert drawn(simulate(problem, [0, 1, 1, 0], samples=4)) == [
        "1 2 . . 1' 1' 3 2' 2' 4 3' 3' . 4' 4'",
        ". 1 1' 1' 2 2' 2' 3 3' 3' 4 4' 4' . .",
    ]


def test_a_backward_pass_along_the_devices_is_a_longer_pipeline() -> None:
    """Both passes run through gpu[1] first: four stages on two devices."""
    problem = problem_of(dict.fromkeys(["f0", "f1", "b0", "b1"], 1.0), "f0 -> f1 -> b0 -> b1", 2)
    timeline = simulate(problem, [0, 1, 0, 1], samples=40)
    assert timeline.time_per_sample == pytest.approx(2e-3, rel=1e-12)
    assert timeline.ramp_up == pytest.approx(3e-3)
    check(timeline, [0, 1, 0, 1])


def test_transfers_are_paid_once_a_device_and_by_accelerators_alone() -> None:
    """u's tensor is read by two pieces of gpu[1]: it moves in with the first and stays; the host pays nothing."""
    problem = problem_of({"u": 1, "v": 2, "w": 3, "x": 4}, "u -> v -> w -> x\n    u -> x", 2, output=0.5)
    timeline = simulate(problem, [2, 0, 1, 0], samples=3)
    assert [piece.name for piece in timeline.stages] == ["cpu", "gpu[1] 1", "gpu[2]", "gpu[1] 2"]
    costs = timeline.costs
    assert costs.receive == pytest.approx((0, 0.5e-3, 0.5e-3, 0.5e-3))
    assert costs.compute == pytest.approx((1e-3, 2e-3, 3e-3, 4e-3))
    assert costs.send == pytest.approx((0, 0.5e-3, 0.5e-3, 0))
    assert timeline.start[:, 0] == pytest.approx([0, 1e-3, 4e-3, 8e-3])
    lying = {(h.device, h.since, h.until): h.tensors for h in costs.stashes}
    assert lying == {(2, 0, (1,)): 1, (0, 1, (3,)): 1, (0, 1, (2,)): 1, (1, 2, (3,)): 1}
    assert simulate(problem, [2, 0, 1, 0], samples=1).bytes_in_flight.tolist() == [1e6, 0.5e6, 0.5e6]


def test_what_is_stashed_for_the_backward_pass_is_counted_where_it_lies() -> None:
    """Stage s of S keeps its output for S - s samples; the last one also what it sends back, until that is read."""
    nodes = {"f0": 1.0, "f1": 1.0, "f2": 1.0, "b2": 1.0, "b1": 1.0, "b0": 1.0}
    edges = "f0 -> f1 -> f2 -> b2 -> b1 -> b0\n    f0 -> b0\n    f1 -> b1"
    timeline = simulate(problem_of(nodes, edges, 3, output=1), [0, 1, 2, 2, 1, 0], samples=20)
    assert timeline.tensors_in_flight.tolist() == [3, 2, 2, 0]
    assert timeline.bytes_in_flight.tolist() == [3e6, 2e6, 2e6, 0.0]


def test_sizes_are_unknown_where_the_graph_gives_times_only() -> None:
    text = """
    graph {
        node u { time = 1 ms, transfer = 2 ms }
        node v { time = 1 ms, transfer = 2 ms }
        u -> v
    }
    device gpu[2]: accelerator
    minimize time_per_sample
    """
    timeline = simulate(placedsl.loads(text).problem, [0, 1], samples=5)
    assert timeline.tensors_in_flight.tolist()[0] >= 1
    assert str(timeline.bytes_in_flight[0]) == "nan"


def test_too_few_samples_have_no_steady_state() -> None:
    problem = problem_of({"u": 1, "v": 2}, "u -> v", 2)
    assert str(simulate(problem, [0, 1], samples=1).time_per_sample) == "nan"


def test_what_cannot_be_simulated() -> None:
    problem = problem_of({"u": 1, "v": 2}, "u -> v", 2)
    with pytest.raises(UsageError, match="no schedule 'pipelines': did you mean 'pipelined'"):
        simulate(problem, [0, 1], schedule="pipelines")
    with pytest.raises(UsageError, match="has no backward part"):
        simulate(problem, [0, 1], schedule="1f1b")
    with pytest.raises(UsageError, match="'samples' is a whole number from 1 on"):
        simulate(problem, [0, 1], samples=0)
    with pytest.raises(UsageError, match="'microbatches' is for schedule gpipe"):
        simulate(problem, [0, 1], microbatches=4)
    with pytest.raises(InputError, match="u is on no device"):
        simulate(problem, [-1, 1])
    with pytest.raises(InputError, match="the placement has 1 entries"):
        simulate(problem, [0])


def test_a_forward_part_that_reads_from_the_backward_part_has_no_gpipe() -> None:
    problem = problem_of({"f": 1, "b": 1, "g": 1}, "f -> b -> g", 2)
    with pytest.raises(InputError, match="the forward part from the backward part"):
        simulate(problem, [0, 0, 1], schedule="gpipe")
    check(simulate(problem, [0, 0, 1], schedule="1f1b", samples=9), [0, 0, 1])
