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
from typing import NamedTuple

import numpy as np
from numba import njit

from placedsl.algorithms.chains import Chains
from placedsl.graph.graph import Booleans, Integers

#: Inner steps of the walk between two looks at the clock, and in all: a relation that takes more is far too wide.
_STEPS = 1_000_000
_MOST_STEPS = 25 * _STEPS
#: Random descents by which the steps of a walk that goes on are estimated.
_PROBES = 2_000
#: How many are made room for at first.
_ROOM = 1 << 14
_EVERYTHING = ((0, 2**62),)


class Gate(NamedTuple):
    """What is asked of an ideal when transfers count.  s states, e edges, u units.

    Times and weights are whole parts, so that sums that are kept up to date do not drift.

    ``touch_start``, ``touched``, ``role``, ``full``   units and edges, and what is inside of an edge that is not cut
    ``cost``     e x 2 x 4: what it adds to each of four sums that an edge is cut, by whether its maker is inside: what
                 the ideal pays, what its complement pays, and both of the edges that one boundary only can cut
    ``inside``   e what is inside now;  ``paid``  the four sums now
    ``low``, ``high``  s the weights that an ideal can have there by themselves;  ``total``  one number, the whole
    ``others``   2 x s what devices of other classes take, of those used and of those left
    ``time``     2 x s what the paying devices have to spend, less what boundaries add
    ``counts``   2 x s whether the ideal's own edges are theirs as well
    ``spent``, ``taken``   the knapsack of the paying class: time spent, weight taken
    ``digit``    s how many paying devices have been used;  ``least``  2 x digits the least of the last two sums so far
    """

    touch_start: Integers
    touched: np.ndarray
    role: np.ndarray
    full: np.ndarray
    cost: Integers
    inside: np.ndarray
    paid: Integers
    low: Integers
    high: Integers
    total: Integers
    others: Integers
    time: Integers
    counts: Booleans
    spent: Integers
    taken: Integers
    digit: Integers
    least: Integers


def no_gate() -> Gate:
    """Nothing is asked: no states."""
    none, few, table = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros((2, 0), dtype=np.int64)
    return Gate(
        none, few, few, few, np.zeros((0, 2, 4), dtype=np.int64), few, none, none, none, none, table, table,
        np.zeros((2, 0), dtype=np.bool_), none, none, none, table,
    )  # fmt: skip


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
    if not windows:
        return Ideals(np.empty((0, cover.count), dtype=cover.dtype), 0, True, fit=0)
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
            if steps >= _MOST_STEPS or (steps == _STEPS and walk.estimate(sums, low, high) > _MOST_STEPS):
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

    def estimate(self, sums: Integers, low: Integers, high: Integers) -> float:
        """About how many steps the whole walk takes."""
        cover = self.cover
        return float(
            _descents(cover.row_start, cover.start, cover.need, cover.block, sums, low, high, _PROBES)
        )  # fmt: skip


@njit(cache=True)
def _descents(row_start, start, need, block, sums, low, high, probes):  # type: ignore[no-untyped-def]
    """The mean of Knuth's estimate of a tree's size (1975) over random descents through the walk."""
    np.random.seed(0)
    chains = need.shape[1]
    least, most = np.zeros(chains, dtype=np.int64), np.zeros(chains, dtype=np.int64)
    total = 0.0
    for _ in range(probes):
        for c in range(chains):
            least[c], most[c] = 0, start[c + 1] - start[c]
        share, taken = 1.0, 0
        for level in range(chains - 1):
            total += share * (most[level] - least[level] + 1)
            entered, chosen = 0, -1
            for p in range(least[level], most[level] + 1):
                row = row_start[level] + p
                lightest = heaviest = taken + sums[row]
                for c in range(level + 1, chains):
                    lightest += sums[row_start[c] + max(least[c], need[row, c])]
                    heaviest += sums[row_start[c] + min(most[c], block[row, c])]
                enter = len(low) == 0
                for w in range(len(low)):
                    if lightest <= high[w]:
                        enter = heaviest >= low[w]
                        break
                if enter:
                    entered += 1
                    if np.random.randint(entered) == 0:
                        chosen = p
            if entered == 0:
                break
            share *= entered
            row = row_start[level] + chosen
            taken += sums[row]
            for c in range(level + 1, chains):
                least[c], most[c] = max(least[c], need[row, c]), min(most[c], block[row, c])
    return total / probes


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
    (touch_start, touched, role, full, cost, inside, paid, lightest_at, heaviest_at, total, others, time, counts,
     spent, taken, digit, fewest) = gate  # fmt: skip
    gated = len(digit) > 0
    all_of = total[0] if gated else 0
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
                        _move(unit, start[c], have[c], at[c], touch_start, touched, role, full, cost, inside, paid)
                        have[c] = at[c]
                    # From the nearer end of the range, so that little is undone.
                    up = have[last] - a <= p - 1 - have[last]
                    for i in range(p - a):
                        q = a + i if up else p - 1 - i
                        _move(unit, start[last], have[last], q, touch_start, touched, role, full, cost, inside, paid)
                        have[last] = q
                        weight = sofar[last] + sums[row + q]
                        fits = False
                        for s in range(len(digit)):
                            if weight < lightest_at[s] or weight > heaviest_at[s]:
                                continue
                            spare = time[0, s] - (paid[0] if counts[0, s] else 0)
                            if weight - others[0, s] > _takes(spare, spent, taken):
                                continue
                            spare = time[1, s] - (paid[1] if counts[1, s] else 0)
                            if all_of - weight - others[1, s] > _takes(spare, spent, taken):
                                continue
                            fits = True
                            fewest[0, digit[s]] = min(fewest[0, digit[s]], paid[2])
                            fewest[1, digit[s]] = min(fewest[1, digit[s]], paid[3])
                        if fits:
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
        enter = windows == 0
        for w in range(windows):
            if lightest <= high[w]:
                enter = heaviest >= low[w]
                break
        if enter:
            level += 1
            at[level] = least[level, level]
        else:
            at[level] += 1
    state[0], state[1] = level, filled
    return -1


@njit(cache=True)
def _move(unit, start, now, goal, touch_start, touched, role, full, cost, inside, paid):  # type: ignore[no-untyped-def]
    """Take units of a chain in or out until there are ``goal`` instead of ``now``, and keep up what is paid."""
    while now != goal:
        if now < goal:
            u, sign = unit[start + now], 1
            now += 1
        else:
            now -= 1
            u, sign = unit[start + now], -1
        for j in range(touch_start[u], touch_start[u + 1]):
            e = touched[j]
            old = inside[e]
            new = old + sign * role[j]
            inside[e] = new
            if 0 < old < full[e]:
                for k in range(4):
                    paid[k] -= cost[e, old & 1, k]
            if 0 < new < full[e]:
                for k in range(4):
                    paid[k] += cost[e, new & 1, k]


@njit(cache=True)
def _takes(time, spent, taken):  # type: ignore[no-untyped-def]
    """The weight that devices can take in a time; without a table weight is time."""
    end = len(spent) - 1
    if end < 0:
        return max(time, 0)
    if time <= spent[0]:
        return taken[0]
    if time >= spent[end]:
        return taken[end]
    a, b = 0, end  # the last that is spent, and the first that is not
    while b - a > 1:
        middle = (a + b) >> 1
        if spent[middle] <= time:
            a = middle
        else:
            b = middle
    share = (time - spent[a]) / (spent[b] - spent[a])
    return taken[a] + np.int64(share * (taken[b] - taken[a])) + 1
