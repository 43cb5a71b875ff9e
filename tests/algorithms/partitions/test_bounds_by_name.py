"""Bounds by name: never above the optimum of tiny graphs, and what the enumeration says that they are.

Ten thousand graphs, of which a run of the tests takes a few hundred; ``--everything`` takes all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.apart import Apart
from support.tiny_graphs import TinyGraph, bottleneck, guesses, optimum, superblocks, tiny_graph

import placedsl
from placedsl.algorithms.partitions.bounds import named

pytestmark = [pytest.mark.xdist_group("bounds")]
GRAPHS, AT_ONCE = 10_000, 25


@pytest.fixture(scope="module")
def process() -> Iterator[Apart]:
    started = Apart()
    yield started
    started.close()


def computed(asked: list[tuple[str, float]]) -> list[dict[str, float]]:
    """The value of each bound that a problem has, by name; 0 where nothing is proven."""
    out = []
    for text, upper in asked:
        problem = placedsl.loads(text, ".").problem
        values: dict[str, float] = {}
        for one in named.NAMED:
            if one.against(problem):
                continue
            heard = [0.0]
            one.run(problem, upper, None, lambda bound, heard=heard: heard.append(bound.value))
            values[one.name] = heard[-1]
        out.append(values)
    return out


def near(value: float, expected: float, upper: float) -> bool:
    """Whether a bound is what it is to be; one that is told of a value goes no further.

    Programs are solved within 1e-7 of their largest number, which is up to fifty times the value.
    """
    return value == pytest.approx(min(expected, upper), rel=1e-5, abs=1e-9)


def halved(graph: TinyGraph) -> float:
    """The bound by doubling."""
    devices, share = graph.blocks, 1
    while devices > 2:
        devices, share = -(-devices // 2), share * 2
    return superblocks(graph, (share, share))


def sizes(devices: int, blocks: int) -> tuple[int, ...]:
    return tuple(len(own) for own in np.array_split(np.arange(devices), min(devices, blocks)))


def check(graph: TinyGraph, upper: float, values: dict[str, float]) -> tuple[float, bool]:
    """That each is a bound, and the one that it is to be; the optimum, and whether the best guess reaches it."""
    exact = optimum(graph)
    assert set(values) == {one.name for one in named.NAMED}
    for name, value in values.items():
        assert value <= exact * (1 + 1e-9) + 1e-12, name
    assert near(values["exact"], exact, upper)
    assert near(values["simple"], graph.simple, np.inf)
    assert near(values["bottleneck"], bottleneck(graph), np.inf)
    for name in ("bottleneck-no-dag", "no-dag"):
        assert near(values[name], bottleneck(graph, ordered=False), np.inf)
    assert near(values["bottleneck-no-io"], bottleneck(graph, transfers=False), np.inf)
    found = guesses(graph)
    assert near(values["guess"], min(found), upper)
    assert near(values["guess-maximum"], max(found), upper)
    assert near(values["doubling"], halved(graph), upper)
    for blocks in (2, 4):
        assert near(values[f"superblocks-{blocks}"], superblocks(graph, sizes(graph.blocks, blocks)), upper)
    return exact, max(found) >= exact * (1 - 1e-6)


def failures(process: Apart, first: int, count: int) -> int:
    """Check so many graphs with and without a known value; how many of them the best guess settles."""
    graphs = [tiny_graph(seed) for seed in range(first, first + count)]
    told = [optimum(graph) * (1.01, 1.0, 3.0)[k % 3] if k % 4 else np.inf for k, graph in enumerate(graphs)]
    asked = [(graph.spec(), upper) for graph, upper in zip(graphs, told, strict=True)]
    reached = 0
    for graph, (text, upper), values in zip(graphs, asked, process.call("bounds", computed, asked), strict=True):
        try:
            reached += check(graph, upper, values)[1]
        except AssertionError as problem:
            raise AssertionError(f"{text}\n{values}") from problem
    return reached


@pytest.mark.parametrize("first", [pytest.param(n, marks=pytest.mark.sampled(100)) for n in range(0, GRAPHS, AT_ONCE)])
def test_bounds_are_those_of_the_enumeration(process: Apart, first: int) -> None:
    assert failures(process, first, AT_ONCE) >= 0.3 * AT_ONCE


def repeated(text: str, most: tuple[int, ...], upper: float) -> list[float]:
    """The bound by superblocks of such sizes, for sixty seeds of the solver."""
    from placedsl.algorithms.partitions.bounds.superblock_program import Superblocks, pipeline_of, superblock_bound
    from placedsl.budget import Budget

    pipeline = pipeline_of(placedsl.loads(text, ".").problem)
    assert pipeline is not None
    asked = Superblocks(tuple(map(float, most)))
    budgets = [Budget(None, 2.5e-7, 1, seed) for seed in range(60)]
    return [superblock_bound(pipeline, asked, upper, budget, lambda _b, _f: False)[0] for budget in budgets]


def test_an_optimum_that_a_release_of_the_solver_cut_off(process: Apart) -> None:
    """HiGHS 1.15.1 proves 7 here for some seeds, where 6.25 is the optimum."""
    graph = tiny_graph(5795)
    least = superblocks(graph, (2, 1, 1, 1))
    assert least == pytest.approx(6.25)
    for value in process.call("bounds", repeated, graph.spec(), (2, 1, 1, 1), 7.07):
        assert value == pytest.approx(least, rel=1e-6)
