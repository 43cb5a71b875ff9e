"""How many steps a walk over ideals takes is estimated by random descents."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from placedsl.algorithms.ideals import enumeration as ideals
from placedsl.algorithms.ideals.chain_cover import ChainCover, chain_cover

EVERYTHING = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def steps(cover: ChainCover) -> int:
    """By counting: what can be had of the first chains together, for each of them but the last."""
    lengths = np.diff(cover.start)
    number = 0
    for upto in range(1, cover.count):
        for taken in itertools.product(*(range(n + 1) for n in lengths[:upto])):
            rows = [cover.row_start[c] + p for c, p in enumerate(taken)]
            number += all(
                cover.need[row, d] <= taken[d] <= cover.block[row, d] for row in rows for d in range(upto)
            )  # fmt: skip
    return number


def cover_of(seed: int) -> ChainCover:
    """A random relation of low width."""
    rng = np.random.default_rng(seed)
    rows, length = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    pairs = [(r * length + i, r * length + i + 1) for r in range(rows) for i in range(length - 1)]
    for u, v in itertools.combinations(range(rows * length), 2):
        if u % length < v % length and rng.random() < 0.1:
            pairs.append((u, v))
    before, after = np.array(pairs, dtype=np.int64).T
    cover = chain_cover(rows * length, before, after)
    assert cover is not None
    return cover


@pytest.mark.parametrize("seed", range(20))
def test_the_steps_of_a_walk_are_estimated(seed: int) -> None:
    """Within a fifth of what counting says, on relations with and without ties between their chains."""
    cover = cover_of(seed)
    sums = np.zeros(int(cover.row_start[-1]), dtype=np.int64)
    estimate = ideals._Walk(cover, sums, *EVERYTHING).estimate()
    assert estimate == pytest.approx(steps(cover), rel=0.2)


def test_weights_that_lie_in_no_window_end_a_descent() -> None:
    """Three rows of five; at most one unit may be taken: six first steps, and six more after each of two."""
    pairs = np.array([(5 * r + i, 5 * r + i + 1) for r in range(3) for i in range(4)], dtype=np.int64)
    cover = chain_cover(15, pairs[:, 0], pairs[:, 1])
    assert cover is not None
    sums = cover.prefix_sums(np.ones(15, dtype=np.int64))
    low, high = np.array([0], dtype=np.int64), np.array([1], dtype=np.int64)
    assert ideals._Walk(cover, sums, low, high).estimate() == pytest.approx(6 + 2 * 6)
