"""Ideals against their definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placedsl.algorithms.ideals import Ideals, chain, ideals


def by_definition(n: int, pairs: list[tuple[int, int]]) -> set[frozenset[int]]:
    subsets = (frozenset(s) for k in range(n + 1) for s in itertools.combinations(range(n), k))
    return {s for s in subsets if all(u in s for u, v in pairs if v in s)}


def members(lattice: Ideals) -> list[frozenset[int]]:
    """Each ideal as a set of units, by walking the covers."""
    found: list[frozenset[int] | None] = [None] * lattice.count
    found[0] = frozenset()
    for i in range(lattice.count):
        inside = found[i]
        assert inside is not None, "a subset comes before its supersets"
        for j in range(lattice.cover_start[i], lattice.cover_start[i + 1]):
            larger = inside | {int(lattice.order[lattice.cover_rank[j]])}
            assert found[lattice.cover_ideal[j]] in (None, larger)
            found[lattice.cover_ideal[j]] = larger
    return [f for f in found if f is not None]


@given(st.integers(1, 8), st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14))
@settings(max_examples=150, deadline=None)
def test_every_ideal_once(n: int, drawn: set[tuple[int, int]]) -> None:
    pairs = sorted({(min(p), max(p)) for p in drawn if p[0] != p[1] and max(p) < n})
    before, after = (np.array([p[k] for p in pairs], dtype=np.int64) for k in (0, 1))
    lattice = ideals(n, before, after, 1000)
    assert lattice is not None
    found = members(lattice)
    assert len(set(found)) == len(found) == lattice.count
    assert set(found) == by_definition(n, pairs)
    for i, inside in enumerate(found):
        ranks = lattice.cover_rank[lattice.cover_start[i] : lattice.cover_start[i + 1]]
        assert (np.diff(ranks) > 0).all()
        assert len(ranks) == sum(inside | {v} in set(found) for v in set(range(n)) - inside)


def test_more_than_the_budget() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert ideals(10, none, none, 1023) is None
    found = ideals(10, none, none, 1024)
    assert found is not None
    assert found.count == 1024


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        ideals(2, np.array([0, 1]), np.array([1, 0]), 10)


def test_chain_of_prefixes() -> None:
    assert members(chain(np.array([2, 0, 1]))) == [frozenset(), {2}, {0, 2}, {0, 1, 2}]
