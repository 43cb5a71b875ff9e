"""Lower bounds are no higher than the optimum, by enumeration, whatever the incumbent that they are told of.

The master program is HiGHS, which does not go into one process with CP-SAT: bounds are asked of a process of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.apart import Apart
from support.brute_force import best
from support.random_specs import random_spec

import placedsl
from placedsl.export.workload_spec import spec_of_workload
from placedsl.graph.readers import read

pytestmark = [pytest.mark.xdist_group("bounds"), pytest.mark.rotates(2)]
CASES = 240
TOLD = (1.0, np.inf, 2.0, 0.9)


def bounds_of(text: str, told: tuple[float, ...], most: int = 10**9) -> list[list[float]]:
    """The stream of bounds for each incumbent told; ``most`` ends it after so many."""
    from placedsl.algorithms.partitions.bounds.streams import proven_bounds

    problem = placedsl.loads(text, ".").problem
    out = []
    for value in told:
        heard: list[float] = []
        for bound in proven_bounds(
            problem, upper=lambda value=value: value, stop=lambda heard=heard: len(heard) >= most
        ):
            heard.append(bound.value)
        out.append(heard)
    return out


@pytest.fixture(scope="module")
def process() -> Iterator[Apart]:
    started = Apart()
    yield started
    started.close()


def unrestricted(text: str) -> str:
    """A random spec with memory and colocation for its only rules."""
    text = re.sub(r"    custom\d.*\n|    contiguous\n|    convex\n|schedule \w+\n", "", text)
    return text.replace("subject to\n", "") if text.endswith("subject to\n") else text


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(6)) for n in range(0, CASES, 10)])
def test_no_bound_exceeds_the_optimum(process: Apart, first: int) -> None:
    reached = 0
    for seed in range(first, first + 10):
        text = unrestricted(random_spec(seed))
        found = best(placedsl.loads(text, ".").problem)
        optimum = np.inf if found is None else found[0]
        told = tuple(share * optimum for share in TOLD) if found else (np.inf,)
        for stream in process.call("bounds", bounds_of, text, told):
            assert stream == sorted(stream), seed
            assert stream[-1] <= optimum * (1 + 1e-9), seed
        reached += stream[-1] >= 0.9 * optimum * (1 - 1e-5)
    assert reached >= 7


def test_bounds_hold_under_rules_that_they_do_not_know(process: Apart) -> None:
    for seed in range(30):
        text = re.sub(r"schedule \w+\n", "", random_spec(seed))
        found = best(placedsl.loads(text, ".").problem)
        if found is not None:
            (stream,) = process.call("bounds", bounds_of, text, (found[0],))
            assert stream[-1] <= found[0] * (1 + 1e-9), seed


def spec(nodes: str, edges: str, devices: str, rules: str = "") -> str:
    return f"graph {{\n{nodes}\n{edges}\n}}\n{devices}\nminimize time_per_sample\n{rules}"


MACHINE = "device gpu[2]: accelerator { memory = 4 MiB }\ndevice cpu[1]: host\ninterconnect { bandwidth = 1 GiB/s }"


@pytest.mark.parametrize(
    ("nodes", "edges", "rules"),
    [
        pytest.param(
            [(1e-6, 1e3, 0, 512), (1e6, 1e9, 0, 0), (3.0, 1e3, 0, 1), (0.1, 0.2, 0, 0)], [(0, 1), (1, 2), (0, 3)], "",
            id="times over fifteen orders of magnitude",
        ),
        pytest.param([(1, 1, 0, 0)] * 6, [], "", id="ties, and loads that meet the bound exactly"),
        pytest.param([(1 / 3, 1, 0, 0)] * 9, [], "", id="thirds, whose sums round"),
        pytest.param([(0.0, 0.0, 0, 4)] * 4, [(0, 1), (1, 2), (2, 3)], "", id="transfers without work"),
        pytest.param([(1, 50, 2, 1)] * 4, [(0, 1), (1, 2), (2, 3)], "subject to\n    memory", id="memory exactly full"),
        pytest.param([(1, 50, 2, 1)] * 5, [(0, 4)], "subject to\n    memory", id="memory that leaves one for the host"),
        pytest.param([(None, 3, 0, 8), (1, None, 0, 8), (1, 9, 0, 8)], [(0, 1), (1, 2)], "", id="one device kind only"),
        pytest.param([(5, 5, 0, 1024)] * 3, [(0, 1), (1, 2), (0, 2)], "", id="transfers that outweigh all work"),
        pytest.param([(0.1, 1, 0, 0.001)] * 8, [(i, 7) for i in range(7)], "", id="transfers that may be left out"),
    ],
)  # fmt: skip
def test_bounds_of_awkward_problems(
    process: Apart, nodes: list[tuple[float | None, ...]], edges: list[tuple[int, int]], rules: str
) -> None:
    lines = []
    for i, (accelerator, host, memory, output) in enumerate(nodes):
        times = [f"{k}: {t} ms" for k, t in (("accelerator", accelerator), ("host", host)) if t is not None]
        lines.append(f"    node n{i} {{ time = {{{', '.join(times)}}}, memory = {memory} MiB, output = {output} MiB }}")
    text = spec("\n".join(lines), "\n".join(f"    n{u} -> n{v}" for u, v in edges), MACHINE, rules)
    found = best(placedsl.loads(text, ".").problem)
    assert found is not None
    optimum = found[0]
    for stream in process.call("bounds", bounds_of, text, (optimum, np.inf, optimum * (1 + 1e-12), 0.0)):
        assert max(stream) <= optimum * (1 + 1e-9)


def test_what_cannot_be_placed_has_no_finite_bound(process: Apart) -> None:
    node = "    node n%d { time = {accelerator: 1 ms}, memory = 3 MiB, output = 1 MiB }"
    text = spec("\n".join(node % i for i in range(3)), "", MACHINE, "subject to\n    memory")
    ((*_, last),) = process.call("bounds", bounds_of, text, (np.inf,))
    assert last == np.inf


def test_other_objectives_and_schedules_have_no_bounds(process: Apart) -> None:
    text = spec("    node a { time = {accelerator: 1 ms}, memory = 1 MiB, output = 1 MiB }", "", MACHINE)
    for other in (text.replace("time_per_sample", "communication"), "schedule gpipe\n" + text):
        assert process.call("bounds", bounds_of, other, (np.inf,)) == [[]]


def test_the_same_problem_gives_the_same_bounds(process: Apart) -> None:
    for seed in range(5):
        text = unrestricted(random_spec(seed))
        first, second = process.call("bounds", bounds_of, text, (np.inf, np.inf))
        assert first == second


def test_stops_when_told_to(process: Apart) -> None:
    text = unrestricted(random_spec(5))
    (stream,) = process.call("bounds", bounds_of, text, (np.inf,), 2)
    assert len(stream) == 2


@pytest.mark.workloads
@pytest.mark.parametrize(
    ("file", "optimum"),
    [
        ("OperatorGraphs/resnet50_inference.json", 124.34884977404485),
        ("OperatorGraphs/bert_l-3_training.json", 54.20741),
        ("LayerGraphs/bert24_inference.json", 17.71472),
    ],
)
def test_proves_published_optima(process: Apart, workloads: Path, tmp_path: Path, file: str, optimum: float) -> None:
    workload = workloads / "dnn-partitioning" / "throughput-inputs" / file
    text = spec_of_workload(read(workload, "dnn-partitioning"), workload, tmp_path, contiguous=False)
    (stream,) = process.call("bounds", bounds_of, text, (optimum,))
    assert optimum * (1 - 1e-5) <= stream[-1] <= optimum * (1 + 1e-6)
