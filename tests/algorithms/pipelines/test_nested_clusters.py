"""Clusters within clusters by dynamic programming, against enumeration by the evaluator."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from support.brute_force import best_by_evaluation

import placedsl
from placedsl.algorithms.pipelines import hierarchical
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.supports import ignored, reasons_against
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem

pytestmark = pytest.mark.rotates(2)

#: Up to five devices in two or three levels of clusters, of like and unlike sizes, some outside of the inner clusters;
#: a statement ends at a semicolon.
MACHINES = (
    "cluster rack[2] {{; cluster server[2] {{; device gpu[1]: {gpu}; {i}; }}; {j}; }}; {k}",
    "cluster rack {{; cluster server {{; device gpu[2]: {gpu}; {i}; }}; device tpu[1]: {tpu}; {j}; }}; "
    "device npu[1]: {gpu}; {k}",
    "cluster rack {{; cluster server[2] {{; device gpu[1]: {gpu}; {i}; }}; {j}; }}; "
    "cluster pod {{; device tpu[2]: {tpu}; {i}; }}; {k}",
    "cluster rack {{; cluster server {{; device gpu[2]: {gpu}; {i}; }}; "
    "cluster small {{; device tpu[1]: {tpu}; {i}; }}; {j}; }}; device cpu: host; {k}",
    "cluster hall {{; cluster rack {{; cluster server {{; device gpu[2]: {gpu}; {i}; }}; device tpu: {tpu}; }}; "
    "{j}; }}; cluster annex {{; device npu[1]: {gpu}; {j}; }}; {k}",
    "cluster hall[2] {{; cluster rack {{; cluster server {{; device gpu[2]: {gpu}; {i}; }}; {j}; }}; {j}; }}; {k}",
    "cluster rack[2] {{; device tpu[1]: {tpu}; cluster server {{; device cpu: host; {i}; }}; {j}; }}; {k}",
    "cluster rack {{; device tpu[2]: {tpu}; cluster server {{; device gpu: {gpu}; {i}; }}; {j}; }}; "
    "device cpu: host; {k}",
)


def spec_of(seed: int) -> str:
    """A small graph, sometimes with isolated nodes and several ends, on nested clusters."""
    rng = random.Random(seed)
    shared, training = rng.random() < 0.25, rng.random() < 0.25
    nodes = 2 if training else rng.choice([1, 2, 3] if shared else [2, 3, 4, 4])
    extent = rng.choice([1, 1, 1000])
    lines = ["graph {"]
    for v in range(nodes):
        for name, rest in ((f"n{v}", ""), (f"b{v}", ", backward = true"))[: 1 + training]:
            times = f"{{accelerator: {rng.choice([1, 2, 3, 5])} ms, host: {rng.choice([2, 4, 9])} ms}}"
            lines.append(
                f"    node {name} {{ time = {times}, memory = {rng.choice([0, 1, 2])} MiB, color = {v}, "
                f"output = {rng.choice([0, 1, 4, 9]) * extent} MiB, parameters = {rng.choice([1, 5])} MiB{rest} }}"
            )
    for u in range(nodes):
        for v in range(u + 1, nodes):
            if rng.random() < 0.5:
                lines += [f"    n{u} -> n{v}"] + [f"    b{v} -> b{u}"] * training
    lines += [f"    n{nodes - 1} -> b{nodes - 1}"] * training + ["}"]
    gpu, tpu = (f"accelerator {{ memory = {rng.choice([2, 4, 9])} MiB }}" for _ in range(2))
    i, j, k = (
        f"interconnect {{ bandwidth = {bandwidth * extent} GiB/s }}"
        for bandwidth in rng.choice([(8, 4, 2), (8, 2, 1), (400, 4, 1), (8, 8, 0.01), (1, 2, 1), (8, 1, 4)])
    )
    j = "" if rng.random() < 0.1 else j
    lines += rng.choice(MACHINES).format(gpu=gpu, tpu=tpu, i=i, j=j, k=k).split("; ")
    lines.append(f"schedule {rng.choice(['pipedream', 'pipedream', 'overlapped', 'duplex'])}")
    lines += [f"parallelism {{ data = 1..2, weights = {rng.choice(['parameters', '0'])} }}"] * shared
    lines.append("minimize time_per_sample" + rng.choice(["", " then devices_used"]))
    lines += ["subject to", "    contiguous"] + ["    memory"] * (rng.random() < 0.7)
    lines += ["    colocated by color"] * (training or rng.random() < 0.1)
    return "\n".join(lines) + "\n"


def confirm(problem: Problem) -> None:
    """The dynamic program proves what enumeration finds, in all objectives."""
    assert not reasons_against(problem, contiguous.SUPPORTS)
    assert not ignored(problem, contiguous.SUPPORTS)
    found, expected = contiguous.solve(problem), best_by_evaluation(problem)
    assert found.complete
    assert (found.placement is None) == (expected is None)
    if found.placement is not None:
        evaluation = evaluate(problem, found.placement.tolist(), found.values)
        assert evaluation.violations == ()
        assert evaluation.objectives == pytest.approx(expected, rel=1e-9)
        assert found.value == pytest.approx(evaluation.objectives[0], rel=1e-9)


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(20)) for n in range(0, 400, 10)])
def test_random_machines(first: int) -> None:
    for seed in range(first, first + 10):
        confirm(placedsl.loads(spec_of(seed)).problem)


LAYERS = """
graph {
    node a { time = 10 ms, output = 8 MiB }
    node b { time = 10 ms, output = 1 MiB }
    node c { time = 10 ms, output = 8 MiB }
    node e { time = 10 ms, output = 8 MiB }
    a -> b -> c -> e
}
cluster rack[2] {
    cluster server[2] {
        device gpu[1]: accelerator
        interconnect { bandwidth = 16 GiB/s }
    }
    interconnect { bandwidth = 8 GiB/s }
}
interconnect { bandwidth = 1 GiB/s }
minimize time_per_sample
subject to
    contiguous
"""


def test_the_smallest_tensor_goes_the_longest_way() -> None:
    problem = placedsl.loads(LAYERS).problem
    answer = placedsl.loads(LAYERS).solve(method="dp")
    assert answer.termination == "optimal"
    (expected,) = best_by_evaluation(problem) or ()
    assert answer.value == pytest.approx(expected)
    rack = {node: device.partition(".")[0] for node, device in answer.device_of().items()}
    assert rack["a"] == rack["b"] != rack["c"] == rack["e"]


def test_what_takes_too_much_room_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search says so, with a bound and the pipeline that it has; ``auto`` goes on with a program."""
    problem = placedsl.loads(LAYERS).problem
    best = contiguous.solve(problem).value
    monkeypatch.setattr(hierarchical, "MOST_NUMBERS", 10)
    found = contiguous.solve(problem)
    assert not found.complete
    assert found.message.startswith("more than ")
    assert found.bound <= best
    answer = placedsl.loads(LAYERS).solve(workers=1, time_limit=60)
    assert answer.termination == "optimal"
    assert answer.value == pytest.approx(best)


def test_a_level_that_charges_nothing_only_asks_for_contiguity() -> None:
    """Without an interconnect of its own, a rack costs what is around it."""
    text = LAYERS.replace("    interconnect { bandwidth = 8 GiB/s }\n", "")
    problem = placedsl.loads(text).problem
    confirm(problem)
    free = replace(problem, cluster_surcharge=0.0 * problem.cluster_surcharge)
    confirm(free)
