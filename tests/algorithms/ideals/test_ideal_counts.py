"""ChainCover and ideals against their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placedsl.algorithms.ideals.chain_cover import MOST_CHAINS, ChainCover, chain_cover
from placedsl.algorithms.ideals.enumeration import _FIRST_STEPS, Ideals, count_ideals, ideals
from placedsl.algorithms.ideals.walk_kernel import walk
from placedsl.algorithms.kernels import SLOWER

pytestmark = pytest.mark.rotates(2)

Pairs = list[tuple[int, int]]
RELATIONS = st.tuples(st.integers(1, 8), st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14))


def relation(n: int, drawn: set[tuple[int, int]]) -> tuple[Pairs, ChainCover]:
    pairs = sorted({(min(p), max(p)) for p in drawn if p[0] != p[1] and max(p) < n})
    before, after = (np.array([p[k] for p in pairs], dtype=np.int64) for k in (0, 1))
    cover = chain_cover(n, before, after)
    assert cover is not None
    return pairs, cover


def by_definition(n: int, pairs: Pairs) -> set[frozenset[int]]:
    subsets = (frozenset(s) for k in range(n + 1) for s in itertools.combinations(range(n), k))
    return {s for s in subsets if all(u in s for u, v in pairs if v in s)}


def members(cover: ChainCover, found: Ideals) -> list[frozenset[int]]:
    """Each ideal as a set of units: of every chain as many as its position says."""
    return [
        frozenset(int(cover.unit[cover.start[c] + i]) for c, end in enumerate(row) for i in range(int(end)))
        for row in found.positions
    ]


@given(RELATIONS)
@settings(max_examples=150, deadline=None)
def test_chains_are_chains(drawn: tuple[int, set[tuple[int, int]]]) -> None:
    pairs, cover = relation(*drawn)
    before = {(u, v) for u, v in pairs}
    for _ in range(drawn[0]):
        before |= {(u, w) for u, v in before for x, w in before if v == x}
    assert sorted(cover.unit.tolist()) == list(range(drawn[0]))
    for first, last in itertools.pairwise(cover.start.tolist()):
        assert all(pair in before for pair in itertools.pairwise(cover.unit[first:last].tolist()))


@given(RELATIONS)
@settings(max_examples=150, deadline=None)
def test_every_ideal_once(drawn: tuple[int, set[tuple[int, int]]]) -> None:
    pairs, cover = relation(*drawn)
    weight = np.ones(drawn[0], dtype=np.int64)
    found = ideals(cover, weight, most=1000)
    sets = members(cover, found)
    assert found.complete
    assert len(set(sets)) == len(sets) == found.met == count_ideals(cover, 1000)
    assert set(sets) == by_definition(drawn[0], pairs)


@given(
    RELATIONS, st.lists(st.integers(0, 20), min_size=4, max_size=4), st.lists(st.integers(0, 5), min_size=8, max_size=8)
)
@settings(max_examples=200, deadline=None)
def test_those_in_the_windows(drawn: tuple[int, set[tuple[int, int]]], ends: list[int], weights: list[int]) -> None:
    """Ranges of weight, ascending and apart: just the ideals in one of them are stored."""
    pairs, cover = relation(*drawn)
    a, b, c, d = sorted(ends)
    windows = [(a, b), (c, d)] if b < c else [(a, d)]
    found = ideals(cover, np.array(weights[: drawn[0]]), windows, most=1000)
    sets = members(cover, found)
    inside = {
        s for s in by_definition(*(drawn[0], pairs))
        if any(low <= sum(weights[u] for u in s) <= high for low, high in windows)
    }  # fmt: skip
    assert len(set(sets)) == len(sets)
    assert set(sets) == inside
    assert found.met >= len(sets)


@given(RELATIONS)
@settings(max_examples=50, deadline=None)
def test_the_walk_goes_on_where_it_stopped(drawn: tuple[int, set[tuple[int, int]]]) -> None:
    """With a pause after every step, and a store that has to grow, the same is found."""
    _, cover = relation(*drawn)
    weight = np.ones(drawn[0], dtype=np.int64)
    whole = ideals(cover, weight, most=1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("placedsl.algorithms.ideals.enumeration._STEPS", 0)
        patch.setattr("placedsl.algorithms.ideals.enumeration._MOST_STEPS", 10**9)
        patch.setattr("placedsl.algorithms.ideals.enumeration._ROOM", 1)
        paused = ideals(cover, weight, most=1000)
    assert np.array_equal(whole.positions, paused.positions)
    assert whole.met == paused.met


def test_more_than_the_budget() -> None:
    none = np.zeros(0, dtype=np.int64)
    cover = chain_cover(10, none, none)
    assert cover is not None
    weight = np.ones(10, dtype=np.int64)
    assert count_ideals(cover, 1023) is None
    assert count_ideals(cover, 1024) == 1024
    few = ideals(cover, weight, most=1023)
    assert not few.complete
    assert few.too_many
    assert ideals(cover, weight, most=1024).complete


def test_far_too_many_are_given_up_soon() -> None:
    """A hundred unrelated units; and more chains than are looked at."""
    none = np.zeros(0, dtype=np.int64)
    wide = chain_cover(100, none, none)
    assert wide is not None
    assert count_ideals(wide, 10**9) is None
    weight = np.ones(100, dtype=np.int64)
    assert ideals(wide, weight, [(50, 50)], most=10**6).too_many
    assert chain_cover(MOST_CHAINS + 1, none, none) is None


def test_a_deadline() -> None:
    none = np.zeros(0, dtype=np.int64)
    cover = chain_cover(34, none, none)
    assert cover is not None
    found = ideals(cover, np.ones(34, dtype=np.int64), [(17, 17)], most=10**7, deadline=0.0)
    assert not found.complete
    assert not found.too_many


@pytest.mark.parametrize("compiled", [True, False])
def test_walks_that_are_not_compiled_look_at_the_clock_more_often(
    monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    """While an installation compiles its kernels, problems are solved without: steps take hundreds of times as long."""
    none = np.zeros(0, dtype=np.int64)
    cover = chain_cover(60, none, none)
    assert cover is not None
    monkeypatch.setattr("placedsl.algorithms.kernels.kernels_run_compiled", lambda: compiled)
    walks: list[int] = []
    monkeypatch.setattr(
        "placedsl.algorithms.ideals.enumeration.walk", lambda *given: walks.append(given[-1]) or walk(*given)
    )

    def stop() -> bool:
        return True

    assert not ideals(cover, np.ones(60, dtype=np.int64), [(30, 30)], most=10**7, stop=stop).complete
    assert walks == [_FIRST_STEPS if compiled else _FIRST_STEPS // SLOWER]


def test_a_long_path() -> None:
    """One chain; no table is larger than the path."""
    steps = np.arange(70_000)
    cover = chain_cover(70_000, steps[:-1], steps[1:])
    assert cover is not None
    assert cover.count == 1
    assert count_ideals(cover, 10**6) == 70_001


def test_layers_unrolled_over_steps_are_a_chain_each() -> None:
    """Each cell reads the layer below it and its own a step before; units that end last would make a chain a step."""
    layers, steps = 3, 40
    cell = np.arange(layers * steps).reshape(steps, layers)
    before = np.concatenate((cell[:-1].ravel(), cell[:, :-1].ravel()))
    after = np.concatenate((cell[1:].ravel(), cell[:, 1:].ravel()))
    cover = chain_cover(layers * steps, before, after)
    assert cover is not None
    assert cover.count == layers


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        chain_cover(2, np.array([0, 1]), np.array([1, 0]))
