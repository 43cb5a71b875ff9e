"""The program over paths of ideals, against enumeration: rules of every kind on small pipelines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.apart import Apart
from support.odd_ruled_pipelines import MOST_PLACEMENTS, least, odd_ruled_pipeline
from support.ruled_pipelines import optimum, refuted, ruled_pipeline, searched

import placedsl
from placedsl.algorithms.exclusion import with_implied
from placedsl.diagnostics import InputError

CASES, AT_ONCE = 1_000, 10


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    """HiGHS is not loaded into the process of the tests."""
    processes = Apart()
    yield processes
    processes.close()


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(12)) for n in range(0, CASES, AT_ONCE)])
def test_no_bound_is_wrong_and_what_is_settled_is_best(apart: Apart, first: int) -> None:
    """Bounds never exceed the optimum, and a search that ends settled has found it, or proven that there is none."""
    settled = 0
    for seed in range(first, first + AT_ONCE):
        text = ruled_pipeline(seed)
        try:
            problem = with_implied(placedsl.loads(text).problem)
        except InputError:
            continue  # a rule that no placement satisfies is told at once
        best = optimum(problem)
        value, bound, complete, _ = apart.call("paths", searched, text)
        assert bound <= best * (1 + 1e-9), text
        assert value >= best * (1 - 1e-9), text
        if complete:
            assert value == pytest.approx(best, rel=1e-6), text
            assert (best == np.inf) == (bound == np.inf), text
        settled += complete
    assert settled >= AT_ONCE // 4


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(25)) for n in range(0, CASES, AT_ONCE)])
def test_unlike_kinds_of_pipelines(apart: Apart, first: int) -> None:
    """Training, hosts, leaves, two sources, other magnitudes: no bound is wrong, and what is settled is best."""
    settled = known = 0
    for seed in range(first, first + AT_ONCE):
        text = odd_ruled_pipeline(seed)
        try:
            problem = with_implied(placedsl.loads(text).problem)
        except InputError:
            continue
        if len(problem.machine.devices) ** problem.graph.nodes > MOST_PLACEMENTS:
            continue
        best, known = least(problem), known + 1
        value, bound, complete, _ = apart.call("paths", searched, text)
        assert bound <= best * (1 + 1e-9), text
        assert value >= best * (1 - 1e-9), text
        if complete:
            assert value == pytest.approx(best, rel=1e-6), text
            assert (best == np.inf) == (bound == np.inf), text
        settled += complete
    assert min(known, settled) >= AT_ONCE // 4


def cancelling(seed: int) -> str:
    """A rule that every placement satisfies with both sides equal: of large numbers that are no whole ones."""
    rng = np.random.default_rng(seed)
    share = rng.random()
    nodes = [
        f"    node n{v} {{ time = {rng.random() * 30:.5f} ms, memory = {rng.integers(1, 10**12)} B, output = 3 MiB,"
        f" weight = {rng.random() * 1e12!r} }}"
        for v in range(5)
    ]
    rule = (
        f"sum(v in nodes, d in gpu: {share!r} * v.weight * (v on d)) <= {share!r} * sum(v in nodes: v.weight)",
        f"sum(v in nodes, d in gpu: {share!r} * v.weight * (v on d)) >= {share!r} * sum(v in nodes: v.weight)",
        f"sum(d in gpu: {share!r} * memory(d)) <= {share!r} * sum(v in nodes: v.memory)",
    )[seed % 3]
    return "\n".join([
        "graph {", *nodes, *(f"    n{v} -> n{v + 1}" for v in range(4)), "}", "device gpu[3]: accelerator",
        "interconnect { bandwidth = 8 GB/s }", "minimize time_per_sample", "subject to", "    contiguous",
        f"    all: {rule}",
    ])  # fmt: skip


@pytest.mark.rotates(1)
def test_what_is_left_of_numbers_that_cancel_refutes_nothing(apart: Apart) -> None:
    for seed in range(40):
        text = cancelling(seed)
        best = optimum(with_implied(placedsl.loads(text).problem))
        value, bound, _, _ = apart.call("paths", searched, text)
        assert value == pytest.approx(best, rel=1e-6), text
        assert bound <= best * (1 + 1e-9), text


def test_half_a_device_is_none(apart: Apart) -> None:
    """Below 21 ms two quick devices and two cheap ones leave 36 layers for the quick ones, one too many, and a third
    cheap one costs too much; a mixture of paths has two and a fifth."""
    layers = "\n".join(f"    node l{i} {{ time = {{quick: 1 ms, cheap: 3 ms}} }}" for i in range(48))
    text = "\n".join([
        f"graph {{\n{layers}\n    {' -> '.join(f'l{i}' for i in range(48))}\n}}",
        "device quick[3]: accelerator { price = 4 USD/h }", "device cheap[8]: accelerator { price = 1.6 USD/h }",
        "minimize time_per_sample", "subject to", "    contiguous",
        "    paid: sum(d in devices: d.price * used(d)) <= 11.5 USD/h",
        "    few: sum(v in nodes, d in quick: v on d) <= 35",
    ])  # fmt: skip
    value, bound, complete, _ = apart.call("paths", searched, text)
    assert complete
    assert value == pytest.approx(21e-3)
    assert bound == pytest.approx(value)
    assert apart.call("paths", refuted, text, 0.999 * value) == (False, True)
    assert apart.call("paths", refuted, text, 1.001 * value) == (False, False)
