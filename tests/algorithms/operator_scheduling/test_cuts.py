"""Cuts into blocks: those with nothing beside them, and those of a path with most of the work between them."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from support.operator_schedules import sample

from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import all_predecessors
from placedsl.algorithms.operator_scheduling.decomposition.blocks import chain_of
from placedsl.algorithms.operator_scheduling.decomposition.cuts import chosen_cuts, exact_cuts
from placedsl.algorithms.operator_scheduling.decomposition.cuts_kernel import (
    places_along,
    weight_beside,
    widest_path,
)

DISCOUNT = 0.5


@pytest.mark.sampled(6)
@pytest.mark.parametrize("nodes", [1, 2, 13, 64, 65, 130])
@pytest.mark.parametrize("seed", range(5))
def test_what_lies_beside_a_node(nodes: int, seed: int) -> None:
    instance = sample(seed, nodes=nodes, devices=2).instance
    weight = np.random.default_rng(seed).random(nodes) * 10.0 ** np.random.default_rng(seed).integers(-6, 6, nodes)
    before = all_predecessors(instance)
    beside = ~(before | before.T | np.eye(nodes, dtype=bool))
    assert weight_beside(instance, weight) == pytest.approx(beside @ weight, rel=1e-9, abs=1e-9 * weight.sum())
    assert sorted(exact_cuts(instance).tolist()) == np.flatnonzero(~beside.any(axis=1)).tolist()
    cuts = exact_cuts(instance).tolist()
    assert all(before[v, u] for u, v in itertools.pairwise(cuts))


@pytest.mark.parametrize("seed", range(10))
def test_a_path_and_the_places_of_all_nodes_along_it(seed: int) -> None:
    instance = sample(seed, nodes=12, devices=2).instance
    worth = np.random.default_rng(seed).random(12)
    before = all_predecessors(instance)
    path = widest_path(instance, worth).tolist()
    assert all(before[v, u] for u, v in itertools.pairwise(path))
    some = path[::2]
    last, first = places_along(instance, np.array(some))
    for v in range(12):
        assert last[v] == max([k for k, u in enumerate(some) if before[v, u]], default=-1)
        assert first[v] == min([k for k, u in enumerate(some) if before[u, v]], default=len(some))


def paths(before: np.ndarray, reads: set[tuple[int, int]], v: int) -> list[list[int]]:
    """All paths that end in a node."""
    return [[v], *([*path, v] for u, w in reads if w == v for path in paths(before, reads, u))]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(30))
def test_no_chain_of_nodes_of_the_path_has_more_work_in_its_blocks(seed: int) -> None:
    case = sample(seed, nodes=9, devices=2)
    instance = case.instance
    before = all_predecessors(instance)
    work = np.where(np.isfinite(instance.time), instance.time, np.inf).min(axis=1)
    beside = ~(before | before.T | np.eye(9, dtype=bool)) @ work
    worth = 1.0 / (np.maximum(beside, 0.0) + 1e-5 * max(work.sum(), 1e-300))
    path = widest_path(instance, worth).tolist()
    reads = {(case.producer[t], v) for t, v in case.reads}
    most = max(worth[p].sum() for v in range(9) for p in paths(before, reads, v))
    assert worth[path].sum() == pytest.approx(most)

    def value(cuts: tuple[int, ...]) -> float:
        total = work[list(cuts)].sum()
        for u, w in itertools.pairwise((-1, *cuts, -2)):
            inside = (before[:, u] if u >= 0 else np.ones(9, bool)) & (before[w] if w >= 0 else np.ones(9, bool))
            total += work[inside].sum() * (1.0 if inside.sum() <= 3 else DISCOUNT)
        return float(total)

    chosen = tuple(chosen_cuts(instance, 3)[0].tolist())
    assert set(chosen) <= set(path)
    every = (cuts for n in range(len(path) + 1) for cuts in itertools.combinations(path, n))
    assert value(chosen) == pytest.approx(max(map(value, every)), rel=1e-6)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(20))
def test_a_block_holds_what_comes_after_one_cut_and_before_the_next(seed: int) -> None:
    instance = sample(seed, nodes=14, devices=2).instance
    before = all_predecessors(instance)
    for most in (None, 5):
        chain = chain_of(instance, most)
        ends = [-1, *chain.nodes.tolist(), -1]
        assert len(chain.blocks) == len(ends) - 1
        for block, u, w in zip(chain.blocks, ends, ends[1:], strict=False):
            inside = (before[:, u] if u >= 0 else np.ones(14, bool)) & (before[w] if w >= 0 else np.ones(14, bool))
            wanted = [v for v in instance.topological.tolist() if inside[v] or (v >= 0 and v in (u, w))]
            assert block.nodes.tolist() == wanted
            assert (block.before, block.after) == (u, w)


def test_a_long_chain_has_a_limited_number_of_cuts() -> None:
    case = sample(1, nodes=2, devices=2)
    nodes = 7_001
    case.time, case.memory, case.groups = np.ones((nodes, 2)), np.zeros(nodes), []
    case.producer = list(range(nodes - 1))
    case.reads = [(v, v + 1) for v in range(nodes - 1)]
    case.moves = dataclasses.replace(case.moves, size=np.ones(nodes - 1), explicit=np.zeros((0, 2, 2)))
    cuts = exact_cuts(case.instance)
    assert len(cuts) <= 3_000
    assert np.diff(cuts).max() == 3
