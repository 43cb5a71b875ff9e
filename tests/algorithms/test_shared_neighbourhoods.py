"""Neighbourhoods that processes share out: none is begun twice as long as there are others."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.cluster_members import Hub

from placedsl.algorithms.exchange import ALONE
from placedsl.algorithms.shared_neighbourhoods import MOST_TOLD, SharedNeighbourhoods
from placedsl.arrays import Booleans

AROUND = np.arange(5)


def drawn_by(shared: SharedNeighbourhoods, seed: int, size: int = 6) -> int:
    """One of so many neighbourhoods, which are drawn in an order of the seed's, each once in a round."""
    order = itertools.cycle(np.random.default_rng(seed).permutation(size).tolist())
    return shared.draw(AROUND, lambda: next(order), flags)


def flags(number: int) -> Booleans:
    return np.arange(6) == number


@pytest.mark.parametrize("seed", range(20))
def test_none_is_begun_twice_while_there_are_others(seed: int) -> None:
    members = [SharedNeighbourhoods(line) for line in Hub(3).lines]
    begun = [drawn_by(members[turn % 3], 100 * seed + turn) for turn in range(6)]
    assert sorted(begun) == list(range(6))
    assert [(member.begun, member.twice) for member in members] == [(2, 0)] * 3
    # Now all have been begun: what nobody has done comes first, and what somebody has done last.
    for member in members[:2]:
        member.done()  # the last one that it began
    undone = set(begun) - {begun[3], begun[4]}
    assert drawn_by(members[2], seed) in undone
    assert members[2].twice == 1
    for line, number in itertools.product((members[0],), range(6)):
        line.draw(AROUND, lambda number=number: number, flags)  # type: ignore[misc]
        line.done()
    assert drawn_by(members[1], seed) in range(6)


def test_another_placement_has_other_neighbourhoods() -> None:
    one, other = (SharedNeighbourhoods(line) for line in Hub(2).lines)
    assert one.draw(AROUND, lambda: 0, flags) == 0
    assert other.draw(AROUND + 1, lambda: 0, flags) == 0
    assert (one.twice, other.twice) == (0, 0)
    assert other.draw(AROUND, lambda: 0, flags) == 0
    assert other.twice == 1


def test_what_others_tell_of_is_passed_over() -> None:
    hub = Hub(2)
    shared = SharedNeighbourhoods(hub.lines[0])
    hub.lines[1].tell({("set", 3, True, 0, b"\0"): 1.0, ("neighbourhood", 1, 2): 1.0})
    assert shared.draw(AROUND, lambda: 4, flags) == 4
    assert [key[0] for key in hub.told] == ["set", "neighbourhood", "neighbourhood"]


def test_alone_each_is_drawn_once_before_any_is_drawn_again() -> None:
    shared = SharedNeighbourhoods(ALONE)
    shared.done()  # nothing was drawn
    assert sorted(drawn_by(shared, seed) for seed in range(6)) == list(range(6))
    assert (shared.begun, shared.twice) == (6, 0)


def test_of_many_neighbourhoods_of_a_placement_others_are_not_told() -> None:
    hub = Hub(2)
    one, other = (SharedNeighbourhoods(line) for line in hub.lines)
    numbers = iter(range(2 * MOST_TOLD))
    for _ in range(MOST_TOLD + 50):
        one.draw(AROUND, lambda: next(numbers), bits)
        one.done()
    assert len(hub.told) == MOST_TOLD
    assert other.draw(AROUND, lambda: 0, bits) == 0
    assert other.twice == 1
    told = len(hub.told)
    one.draw(AROUND + 1, lambda: 0, bits)
    assert len(hub.told) == told + 1


def bits(number: int) -> Booleans:
    return np.array([bool(number >> k & 1) for k in range(12)])
