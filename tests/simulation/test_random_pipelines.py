"""Random splits under every schedule: what holds of each timeline, and the time per sample that is measured."""

from __future__ import annotations

import random
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from support.random_pipelines import random_copies, random_placement, random_problem
from support.timeline_invariants import check, check_operations

from placedsl.evaluation.evaluate import evaluate
from placedsl.evaluation.evaluation import Evaluation
from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.quantities import Quantities
from placedsl.problem.plan import sharing
from placedsl.problem.problem import Problem
from placedsl.problem.virtual_stages import cut
from placedsl.simulation.pipeline import simulate
from placedsl.simulation.pipeline_timeline import PipelineTimeline

pytestmark = pytest.mark.rotates(2)

SEEDS = range(40)


@pytest.mark.parametrize("line", [True, False])
@pytest.mark.parametrize("schedule", ["pipelined", "1f1b", "1f1b-eager", "gpipe"])
def test_every_timeline_is_a_schedule(schedule: str, line: bool) -> None:
    for seed in SEEDS:
        problem = random_problem(seed, training=schedule != "pipelined" or seed % 2 == 1)
        placement = random_placement(problem, seed, line=line)
        for samples in (1, 2, 17):
            check(simulate(problem, placement, samples=samples, schedule=schedule), placement)


@pytest.mark.parametrize("clusters", [False, True])
@pytest.mark.parametrize("line", [True, False])
@pytest.mark.parametrize("schedule", ["pipelined", "1f1b", "1f1b-eager"])
def test_time_per_sample_is_the_largest_load(schedule: str, line: bool, clusters: bool) -> None:
    """The loads are the evaluator's, over clusters too; the steady state runs at the largest, whatever the split."""
    exact = slowed = 0
    for seed in SEEDS:
        problem = random_problem(seed, training=schedule != "pipelined", clusters=clusters)
        placement = random_placement(problem, seed, line=line)
        evaluation = evaluate(problem, placement)
        largest, rounds = evaluation.objectives[0], 0
        for samples in (50, 400):
            timeline = simulate(problem, placement, samples=samples, schedule=schedule)
            rounds = 2 * len(timeline.stages) + 1
            assert np.allclose(timeline.loads, evaluation.loads, rtol=1e-12, atol=0)
            assert samples * largest * (1 - 1e-12) <= timeline.total <= (samples + rounds) * largest * (1 + 1e-12)
            assert abs(timeline.time_per_sample - largest) <= 4 * rounds / samples * largest
            check(timeline, placement)
        exact += abs(timeline.time_per_sample - largest) <= 1e-9 * largest
        at_once = replace(problem, cluster_surcharge=np.zeros_like(problem.cluster_surcharge))
        slowed += not np.allclose(timeline.loads, evaluate(at_once, placement).loads, rtol=1e-9, atol=0)
    assert exact >= 0.9 * len(SEEDS)
    assert slowed >= 0.5 * len(SEEDS) if clusters else slowed == 0


@pytest.mark.parametrize("line", [True, False])
def test_gpipe_takes_the_longest_forward_and_the_longest_backward_load(line: bool) -> None:
    for seed in SEEDS:
        problem = random_problem(seed, training=True, schedule="gpipe")
        placement = random_placement(problem, seed, line=line)
        expected = evaluate(problem, placement).objectives[0]
        passes = Quantities(ProblemData(problem), placement).pass_loads()
        timeline = simulate(problem, placement, samples=800, microbatches=400)
        assert timeline.schedule == "gpipe"
        for device, loads in enumerate(passes):
            for backward in (False, True):
                own = (p for p, x in enumerate(timeline.stages) if (x.device, x.backward) == (device, backward))
                assert sum(map(timeline.costs.duration, own)) == pytest.approx(loads[backward], rel=1e-12)
        assert expected * (1 - 1e-12) <= timeline.time_per_sample <= expected * (1 + 2 * len(timeline.stages) / 400)


@pytest.mark.parametrize("seed", SEEDS)
def test_pieces_are_maximal_and_their_graph_has_no_cycle(seed: int) -> None:
    problem = random_problem(seed, training=False, nodes=30)
    owners = random_placement(problem, seed, line=seed % 4 == 0)
    edges = list(zip(problem.graph.edge_source.tolist(), problem.graph.edge_target.tolist()))
    sets = cut(edges, owners)
    label = {v: number for number, nodes in enumerate(sets) for v in nodes}
    quotient = nx.DiGraph({(label[u], label[v]) for u, v in edges if label[u] != label[v]})
    quotient.add_nodes_from(range(len(sets)))
    assert all(a < b for a, b in quotient.edges)
    assert all(len({owners[v] for v in nodes}) == 1 for nodes in sets)
    for a, b in [(i, j) for j in range(len(sets)) for i in range(j) if owners[sets[i][0]] == owners[sets[j][0]]]:
        merged = nx.contracted_nodes(quotient, a, b, self_loops=False)
        assert not nx.is_directed_acyclic_graph(merged), "two stages could be one"
    if seed % 4 == 0:
        assert len(sets) == len(set(owners)), "a pipeline has one stage a device"


@pytest.mark.parametrize("seed", range(12))
def test_in_flight_counts_agree_with_a_count_by_hand(seed: int) -> None:
    """At each time: the samples that have begun and not ended, the tensors that are made and still wanted."""
    problem = random_problem(seed, training=True)
    placement = random_placement(problem, seed, line=seed % 2 == 0)
    timeline = simulate(problem, placement, samples=9, schedule="1f1b")
    start, end, devices = timeline.start, timeline.end, len(problem.machine.devices)
    times = np.unique(np.concatenate([start.ravel(), end.ravel()]))
    device_of = [stage.device for stage in timeline.stages]
    entered, left = start.min(axis=0), end.max(axis=0)
    assert timeline.samples_in_flight == max(int(((entered <= t) & (t < left)).sum()) for t in times)
    for d in set(device_of):
        own = [p for p, device in enumerate(device_of) if device == d]
        first, last = start[own].min(axis=0), end[own].max(axis=0)
        assert timeline.device_samples_in_flight[d] == max(int(((first <= t) & (t < last)).sum()) for t in times)
    stage_of = {v: p for p, stage in enumerate(timeline.stages) for v in stage.nodes}
    graph = problem.graph
    counts, sizes = np.zeros((devices, len(times))), np.zeros((devices, len(times)))

    def lies(since: int, until: list[int], tensor: int) -> None:
        for a, b in zip(end[since], end[until].max(axis=0)):
            counts[device_of[since]] += (times >= a) & (times < b)
            sizes[device_of[since]] += graph.tensor_bytes[tensor] * ((times >= a) & (times < b))

    for t, producer in enumerate(graph.tensor_producer.tolist()):
        home = stage_of[producer]
        wanted = {stage_of[v] for v in graph.edge_target[graph.edge_tensor == t].tolist()} - {home}
        takes = [p for p in wanted if device_of[p] == device_of[home]]
        for device in {device_of[p] for p in wanted} - {device_of[home]}:
            there = sorted((p for p in wanted if device_of[p] == device), key=lambda p: end[p, 0])
            takes.append(there[0])
            lies(there[0], there, t)
        if takes:
            lies(home, takes, t)
    assert timeline.tensors_in_flight.tolist() == counts.max(axis=1).tolist()
    assert timeline.bytes_in_flight.tolist() == sizes.max(axis=1).tolist()


COMMUNICATION = ("sequential", "overlapped", "full_duplex")
FEW = range(12)


def _timeline(problem: Problem, seed: int, *, line: bool, **asked: int) -> tuple[PipelineTimeline, Evaluation]:
    """The timeline of a random placement, with random numbers of devices that share stages, and its evaluation."""
    placement = random_placement(problem, seed, line=line)
    if problem.execution.data_parallelism is not None:  # of each class one device, so that others are free
        first = {kind: d for d, kind in reversed(list(enumerate(problem.interchangeable().tolist())))}
        rng = random.Random(seed)
        few = sorted({*first.values(), rng.choice(placement)})
        placement = [d if d in few else few[d % len(few)] for d in placement]
    copies = random_copies(problem, placement, seed)
    evaluation = evaluate(problem, placement, {"copies": copies})
    assert evaluation.violations == ()
    followers = sharing(problem, evaluation)
    return simulate(problem, placement, followers=followers, **asked), evaluation


@pytest.mark.parametrize("line", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("communication", COMMUNICATION)
def test_the_interval_is_the_evaluators_largest_load(communication: str, shared: bool, line: bool) -> None:
    """Devices that share stages, transfers beside computation, within and across clusters: what is measured is what
    the evaluator says."""
    exact = several = exchanged = 0
    for seed in FEW:
        schedule = f"1f1b {{ communication = {communication} }}"
        training = seed % 2 == 0
        problem = random_problem(seed, training=training, schedule=schedule, shared=shared, clusters=seed % 3 == 0)
        timeline, evaluation = _timeline(problem, seed, line=line, samples=300)
        largest = evaluation.objectives[0]
        for leader, members in timeline.work.groups.items():
            assert timeline.loads[list(members)] == pytest.approx(evaluation.loads[leader], rel=1e-12)
        assert timeline.largest_load == pytest.approx(largest, rel=1e-12)
        depth = 6 * len(timeline.work.operations) * max(map(len, timeline.work.groups.values()))
        assert timeline.total <= (300 + depth) * largest * (1 + 1e-12)
        assert abs(timeline.time_per_sample - largest) <= depth / 300 * largest
        exact += abs(timeline.time_per_sample - largest) <= 1e-9 * largest
        several += any(len(members) > 1 for members in timeline.work.groups.values())
        exchanged += any(operation.kind == "weights" for operation in timeline.work.operations)
        check_operations(timeline)
    assert exact >= 0.9 * len(FEW)
    assert (several >= 0.5 * len(FEW) and exchanged >= 0.4 * len(FEW)) if shared else several == 0


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("communication", COMMUNICATION)
def test_gpipe_approaches_the_evaluators_time_per_sample(communication: str, shared: bool) -> None:
    for seed in FEW:
        schedule = f"gpipe {{ communication = {communication} }}"
        problem = random_problem(seed, training=True, schedule=schedule, shared=shared, clusters=seed % 3 == 0)
        timeline, evaluation = _timeline(problem, seed, line=seed % 2 == 0, samples=300, microbatches=150)
        expected = evaluation.objectives[0]
        assert timeline.schedule == "gpipe"
        assert timeline.largest_load == pytest.approx(expected, rel=1e-12)
        for leader, members in timeline.work.groups.items():
            assert timeline.loads[list(members)] == pytest.approx(evaluation.loads[leader], rel=1e-12)
        depth = 6 * len(timeline.work.operations) * max(map(len, timeline.work.groups.values()))
        assert expected * (1 - 1e-12) <= timeline.time_per_sample <= expected * (1 + depth / 150)
        check_operations(timeline)
