"""Ideals of a partial order: the sets that hold, with a unit, all that comes before it.

They are walked over chain by chain: how much of one chain is taken bounds how much can be of the next ones, and
within these bounds every choice is part of some ideal, so that the walk meets no dead end and needs no table
of what it has met.  Ideals whose weight lies in no window are passed over, whole branches at a time, and never stored;
of the others those that a gate holds back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from placedsl.algorithms.chains import Chains
from placedsl.algorithms.gate import Gate, fitting, moved, no_gate
from placedsl.graph.graph import Integers

#: Inner steps of the walk between two looks at the clock, and in all: a relation that takes more is far too wide.
_STEPS = 1_000_000
_MOST_STEPS = 25 * _STEPS
#: How many are made room for at first.
_ROOM = 1 << 14
_EVERYTHING = ((0, 2**62),)


@dataclass(frozen=True, eq=False)
class Ideals:
    """``positions``: ideals x chains, what each has of a chain, those met first first.

    ``met``: ideals that were met, stored or not.  ``fit``: those that pass windows and gate, where the walk came to
    its end.  ``complete``: False when the budget or the time ran out, ``too_many``: it was the budget.
    """

    positions: np.ndarray
    met: int
    complete: bool
    too_many: bool = False
    fit: int | None = None


def ideals(
    cover: Chains,
    weight: Integers,
    windows: Sequence[tuple[int, int]] = _EVERYTHING,
    *,
    most: int,
    gate: Gate | None = None,
    deadline: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> Ideals:
    """The ideals whose weight (whole numbers, one a unit) lies in one of the windows (ascending, disjoint).

    Ends incomplete with more than ``most`` of them or far too many to be met, or when ``deadline``
    (``time.monotonic()``) or ``stop`` says so.  With a ``gate`` the walk goes on beyond ``most`` without storing, so
    that the gate learns from all of them.
    """
    sums = cover.prefix_sums(weight)
    low, high = (np.array([w[k] for w in windows], dtype=np.int64) for k in (0, 1))
    walk = _Walk(cover, gate)
    room = most if gate is not None else min(most, _ROOM)
    found = np.empty((room, cover.count), dtype=cover.dtype)
    steps = 0
    while True:
        ended = walk.on(sums, low, high, found)
        if ended == _FULL:
            if room == most:
                return Ideals(found, walk.met, False, True)
            room = min(most, 4 * room)
            wider = np.empty((room, cover.count), dtype=cover.dtype)
            wider[: walk.filled] = found[: walk.filled]
            found = wider
        elif ended == _DONE:
            few = walk.fit <= most
            return Ideals(found[: walk.filled], walk.met, few, not few, walk.fit)
        else:
            steps += _STEPS
            if steps >= _MOST_STEPS:
                return Ideals(found[: walk.filled], walk.met, False, True)
        if (deadline is not None and time.monotonic() > deadline) or (stop is not None and stop()):
            return Ideals(found[: walk.filled], walk.met, False)


def count(cover: Chains, most: int) -> int | None:
    """How many ideals there are; None for more than ``most``."""
    none = np.zeros(0, dtype=np.int64)
    walk = _Walk(cover)
    sums = np.zeros(int(cover.row_start[-1]), dtype=np.int64)
    steps = 0
    while walk.on(sums, none, none, np.empty((0, cover.count), dtype=cover.dtype)) != _DONE:
        steps += _STEPS
        if walk.met > most or steps >= _MOST_STEPS:
            return None
    return None if walk.met > most else walk.met


_DONE, _FULL = -1, -2


class _Walk:
    """Where the walk stands, so that it can go on."""

    def __init__(self, cover: Chains, gate: Gate | None = None) -> None:
        self.cover = cover
        self.gate = no_gate() if gate is None else gate
        chains = cover.count
        self.low = np.zeros((chains + 1, chains), dtype=np.int32)
        self.high = np.zeros((chains + 1, chains), dtype=np.int32)
        self.high[0] = np.diff(cover.start)
        self.at = np.zeros(max(1, chains), dtype=np.int64)
        self.have = np.zeros(max(1, chains), dtype=np.int64)
        self.state = np.zeros(4, dtype=np.int64)

    @property
    def filled(self) -> int:
        """How many have been stored."""
        return int(self.state[1])

    @property
    def met(self) -> int:
        """How many have been met."""
        return int(self.state[2])

    @property
    def fit(self) -> int:
        """How many have passed windows and gate."""
        return int(self.state[3])

    def on(self, sums: Integers, low: Integers, high: Integers, found: np.ndarray) -> int:
        """Go on until all are met, ``found`` is full, or it is time to look at the clock."""
        cover = self.cover
        return int(
            _walk(cover.row_start, cover.start, cover.unit, cover.need, cover.block, sums, low, high, self.low,
                  self.high, self.at, self.have, self.state, found, self.gate, _STEPS)
        )  # fmt: skip


@njit(cache=True)
def _walk(  # type: ignore[no-untyped-def]
    row_start, start, unit, need, block, sums, low, high, least, most, at, have, state, found, gate, patience
):
    """Depth-first over the chains; on the last one whole ranges at a time.

    Without windows nothing is stored and no branch passed over: the ideals are counted.
    ``state``: chain that the walk is at, ideals stored, met, and passed.  ``have``: what the gate has of each chain.
    """
    chains = need.shape[1]
    last = chains - 1
    windows = len(low)
    level, filled = state[0], state[1]
    gated = len(gate.low) > 0
    sofar = np.zeros(chains + 1, dtype=np.int64)
    for c in range(level):
        sofar[c + 1] = sofar[c] + sums[row_start[c] + at[c]]
    steps = 0
    while level >= 0:
        if level == last:
            row = row_start[last]
            first, end = np.int64(at[last]), np.int64(most[last, last])
            p = first
            for w in range(windows):
                if sofar[last] + sums[row + end] < low[w]:
                    break
                a, b = p, end + 1
                while a < b:  # the first that is heavy enough
                    middle = (a + b) >> 1
                    if sofar[last] + sums[row + middle] < low[w]:
                        a = middle + 1
                    else:
                        b = middle
                p = a
                if gated:
                    while p <= end and sofar[last] + sums[row + p] <= high[w]:
                        p += 1
                    if p == a:
                        continue
                    for c in range(last):
                        have[c] = moved(gate, unit, start[c], have[c], at[c])
                    # From the nearer end of the range, so that little is undone.
                    up = have[last] - a <= p - 1 - have[last]
                    for i in range(p - a):
                        q = a + i if up else p - 1 - i
                        have[last] = moved(gate, unit, start[last], have[last], q)
                        if fitting(gate, sofar[last] + sums[row + q]):
                            state[3] += 1
                            if filled < len(found):
                                for c in range(last):
                                    found[filled, c] = at[c]
                                found[filled, last] = q
                                filled += 1
                    continue
                while p <= end and sofar[last] + sums[row + p] <= high[w]:
                    if filled == len(found):
                        state[0], state[1] = level, filled
                        state[2] += p - first
                        at[last] = p
                        return -2
                    for c in range(last):
                        found[filled, c] = at[c]
                    found[filled, last] = p
                    filled += 1
                    state[3] += 1
                    p += 1
            state[2] += end - first + 1
            level -= 1
            if level >= 0:
                at[level] += 1
            continue
        p = at[level]
        if p > most[level, level]:
            level -= 1
            if level >= 0:
                at[level] += 1
            continue
        if steps > patience:
            state[0], state[1] = level, filled
            return 0
        steps += 1
        row = row_start[level] + p
        sofar[level + 1] = sofar[level] + sums[row]
        lightest, heaviest = sofar[level + 1], sofar[level + 1]
        for c in range(level + 1, chains):
            a, b = max(least[level, c], need[row, c]), min(most[level, c], block[row, c])
            least[level + 1, c] = a
            most[level + 1, c] = b
            lightest += sums[row_start[c] + a]
            heaviest += sums[row_start[c] + b]
        inside = windows == 0
        for w in range(windows):
            if lightest <= high[w]:
                inside = heaviest >= low[w]
                break
        if inside:
            level += 1
            at[level] = least[level, level]
        else:
            at[level] += 1
    state[0], state[1] = level, filled
    return -1
