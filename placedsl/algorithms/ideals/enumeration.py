"""Ideals of a partial order: the sets that hold, with a unit, all that comes before it.

They are walked over chain by chain: how much of one chain is taken bounds how much can be of the next ones, and
within these bounds every choice is part of some ideal, so that the walk meets no dead end and needs no table of visited
ideals.  Whole branches whose weights are in no requested range are skipped; so are ideals that the pruning by transfers
rules out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from placedsl.algorithms.ideals.chain_cover import ChainCover
from placedsl.algorithms.ideals.walk_kernel import (
    DONE,
    FULL,
    ChainTables,
    TransferPruning,
    WalkState,
    estimated_steps,
    no_transfer_pruning,
    walk,
)
from placedsl.algorithms.kernels import SLOWER, spent_plainly
from placedsl.arrays import Integers
from placedsl.records import dataclass

#: Inner steps of the walk between two looks at the clock, and in all: a relation that takes more is far too wide.
_STEPS = 1_000_000
_MOST_STEPS = 25 * _STEPS
#: The first look at the clock comes early, for relations that are too wide beyond doubt: estimated at so many steps.
_FIRST_STEPS = _STEPS // 16
_HOPELESS = 1e4 * _MOST_STEPS
#: Random descents by which the steps of a walk that goes on are estimated.
_PROBES = 2_000
#: How many are made room for at first.
_ROOM = 1 << 14
_EVERYTHING = ((0, 2**62),)


@dataclass(frozen=True, eq=False)
class Ideals:
    """``positions``: ideals x chains, what each has of a chain, those met first first.

    ``met``: ideals that were met, stored or not.  ``fit``: those that pass ranges and pruning, where the walk came to
    its end.  ``complete``: False when the budget or the time ran out, ``too_many``: it was the budget.
    """

    positions: np.ndarray
    met: int
    complete: bool
    too_many: bool = False
    fit: int | None = None


def ideals(
    cover: ChainCover,
    weight: Integers,
    ranges: Sequence[tuple[int, int]] = _EVERYTHING,
    *,
    most: int,
    pruning: TransferPruning | None = None,
    deadline: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> Ideals:
    """The ideals whose weight (whole numbers, one a unit) lies in one of the ranges (ascending, disjoint).

    Ends incomplete with more than ``most`` of them or far too many to be met, or when ``deadline``
    (``time.monotonic()``) or ``stop`` says so.  With a ``pruning`` the walk goes on beyond ``most`` without storing, so
    that the pruning learns from all of them.
    """
    if not ranges:
        return Ideals(np.empty((0, cover.count), dtype=cover.dtype), 0, True, fit=0)
    low, high = (np.array([w[k] for w in ranges], dtype=np.int64) for k in (0, 1))
    progress = _Walk(cover, cover.prefix_sums(weight), low, high, pruning)
    allocated = most if pruning is not None else min(most, _ROOM)
    found = np.empty((allocated, cover.count), dtype=cover.dtype)
    asked = 0
    while True:
        ended = progress.on(found)
        if ended == FULL:
            if allocated == most:
                return Ideals(found, progress.met, False, True)
            allocated = min(most, 4 * allocated)
            wider = np.empty((allocated, cover.count), dtype=cover.dtype)
            wider[: progress.filled] = found[: progress.filled]
            found = wider
        elif ended == DONE:
            few = progress.fit <= most
            return Ideals(found[: progress.filled], progress.met, few, not few, progress.fit)
        else:
            if progress.steps >= _MOST_STEPS:
                return Ideals(found[: progress.filled], progress.met, False, True)
            if asked < 2 and progress.steps >= (_FIRST_STEPS, _STEPS)[asked]:
                if progress.estimate() > (_HOPELESS, _MOST_STEPS)[asked]:
                    return Ideals(found[: progress.filled], progress.met, False, True)
                asked += 1
        if (deadline is not None and time.monotonic() > deadline) or (stop is not None and stop()):
            return Ideals(found[: progress.filled], progress.met, False)


def count_ideals(cover: ChainCover, most: int) -> int | None:
    """How many ideals there are; None for more than ``most``."""
    none = np.zeros(0, dtype=np.int64)
    progress = _Walk(cover, np.zeros(int(cover.row_start[-1]), dtype=np.int64), none, none)
    while progress.on(np.empty((0, cover.count), dtype=cover.dtype)) != DONE:
        if progress.met > most or progress.steps >= _MOST_STEPS:
            return None
    return None if progress.met > most else progress.met


class _Walk:
    """A walk that can be interrupted."""

    def __init__(
        self, cover: ChainCover, sums: Integers, low: Integers, high: Integers, pruning: TransferPruning | None = None
    ) -> None:
        chains = cover.count
        self.tables = ChainTables(
            cover.row_start, cover.start, cover.unit, cover.need, cover.block, sums, low, high
        )  # fmt: skip
        self.pruning = no_transfer_pruning() if pruning is None else pruning
        least, most = (np.zeros((chains + 1, chains), dtype=np.int32) for _ in range(2))
        most[0] = np.diff(cover.start)
        at, have = (np.zeros(max(1, chains), dtype=np.int64) for _ in range(2))
        self.state = WalkState(least, most, at, have, np.zeros(5, dtype=np.int64))

    @property
    def filled(self) -> int:
        """How many have been stored."""
        return int(self.state.counts[1])

    @property
    def met(self) -> int:
        """How many have been met."""
        return int(self.state.counts[2])

    @property
    def fit(self) -> int:
        """How many have passed the ranges and the pruning."""
        return int(self.state.counts[3])

    @property
    def steps(self) -> int:
        """How many have been made."""
        return int(self.state.counts[4])

    def on(self, found: np.ndarray) -> int:
        """Go on until all are met, ``found`` is full, or it is time to look at the clock."""
        patience = _STEPS if self.steps else _FIRST_STEPS
        patience = patience // SLOWER if spent_plainly(patience // SLOWER) else patience
        return int(walk(self.tables, self.state, found, self.pruning, patience))

    def estimate(self) -> float:
        """About how many steps the whole walk takes."""
        return float(estimated_steps(self.tables, _PROBES))
