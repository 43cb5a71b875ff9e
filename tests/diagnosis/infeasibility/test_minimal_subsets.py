"""Minimal sets of parts, over conflicts that are known: no solver is needed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from placedsl.diagnosis.infeasibility.minimal_subset import minimal


def test_minimal_sets_of_random_conflicts() -> None:
    """The outcome contains one of the planted conflicts and nothing else, after few questions."""
    for seed in range(300):
        rng = random.Random(seed)
        parts = list(range(rng.randint(1, 60)))
        planted = [set(rng.sample(parts, min(len(parts), rng.randint(1, 5)))) for _ in range(rng.randint(1, 3))]
        asked = 0

        def together(chosen: Sequence[int], planted: list[set[int]] = planted) -> bool:
            nonlocal asked
            asked += 1
            return not any(conflict <= set(chosen) for conflict in planted)

        found, proven = minimal(parts, together)
        assert proven
        assert set(found) in planted
        assert not any(conflict < set(found) for conflict in planted)
        assert asked <= 2 * len(found) * (len(parts).bit_length() + 1) + len(found) + 3, seed


def test_what_is_not_known_stays_in() -> None:
    """Without answers everything stays, and is not called smallest."""
    assert minimal([1, 2, 3], lambda _: None) == ([1, 2, 3], False)


def test_parts_that_make_others_easier() -> None:
    """Where more parts may be easier to satisfy, the outcome still conflicts, and no part of it can be spared."""
    for seed in range(300):
        rng = random.Random(seed)
        parts = list(range(rng.randint(2, 6)))
        subsets = [frozenset(s) for k in range(len(parts)) for s in itertools.combinations(parts, k)]
        table = {s: rng.random() < 0.6 for s in subsets} | {frozenset(parts): False, frozenset(): True}
        found, proven = minimal(parts, lambda chosen, table=table: table[frozenset(chosen)])
        assert proven
        assert not table[frozenset(found)]
        assert all(table[frozenset(found) - {part}] for part in found)
