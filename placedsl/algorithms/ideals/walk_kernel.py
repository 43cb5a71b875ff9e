"""Compiled: the walk over the ideals of a partial order, depth-first over the chains of a chain cover."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Booleans, Integers, Integers32

#: How a walk that is interrupted ended: all ideals met, or no room for one more.
DONE, FULL = -1, -2
#: So many states of the pruning are looked at in the time of a step.
_LOOKS = 2


class TransferPruning(NamedTuple):
    """Which ideals matter where transfers count.  s states, e edges, u units.

    Times and weights are whole parts, so that sums that are kept up to date do not drift.

    ``touch_start``, ``touched``, ``role``, ``full``   units and edges, and what is inside of an edge that is not cut
    ``cost``     e x 2 x 4: what a cut edge adds to each of four sums, by whether its producer is inside: the cost of
                 the ideal, that of its complement, and both of the edges that only one boundary can cut
    ``inside``   e what is inside now;  ``paid``  the four sums now
    ``low``, ``high``  s the weights that an ideal can have there by themselves;  ``total``  one number, the whole
    ``others``   2 x s what devices of other classes take, of those used and of those left
    ``time``     2 x s what the paying devices have to spend, less what boundaries add
    ``counts``   2 x s whether the ideal's own edges are theirs as well
    ``spent``, ``taken``   the knapsack of the paying class: time spent, weight taken
    ``digit``    s how many paying devices have been used;  ``least``  2 x digits the least of the last two sums so far
    """

    touch_start: Integers
    touched: Integers32
    role: Integers32
    full: Integers32
    cost: Integers
    inside: Integers32
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


def no_transfer_pruning() -> TransferPruning:
    """Every ideal matters: no states."""
    none, few, table = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros((2, 0), dtype=np.int64)
    return TransferPruning(
        none, few, few, few, np.zeros((0, 2, 4), dtype=np.int64), few, none, none, none, none, table, table,
        np.zeros((2, 0), dtype=np.bool_), none, none, none, table,
    )  # fmt: skip


class ChainTables(NamedTuple):
    """The arrays of a :class:`placedsl.algorithms.ideals.chain_cover.ChainCover`, and the weights to walk within.

    ``row_start``, ``start``, ``unit``, ``need``, ``block``   as there
    ``sums``          per row the weight of the first p units of its chain
    ``low``, ``high`` the ranges of weight that are asked for, ascending and disjoint; none: all ideals
    """

    row_start: Integers
    start: Integers
    unit: Integers
    need: Integers32
    block: Integers32
    sums: Integers
    low: Integers
    high: Integers


class WalkState(NamedTuple):
    """Where a walk over k chains stands.

    ``least``, ``most``  (k + 1) x k bounds on what is taken of each chain, by how many chains are decided
    ``at``      k what is taken of each chain;  ``have``  k what the sums of the transfer pruning count of each
    ``counts``  5: the chain that the walk is at, ideals stored, ideals met, ideals that passed, steps so far
    """

    least: Integers32
    most: Integers32
    at: Integers
    have: Integers
    counts: Integers


@kernel(allocates=True)
def estimated_steps(tables: ChainTables, probes: int) -> float:
    """The mean of Knuth's estimate of a tree's size (1975) over random descents through the walk."""
    np.random.seed(0)
    row_start, start, need, block, sums = tables.row_start, tables.start, tables.need, tables.block, tables.sums
    low, high = tables.low, tables.high
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


# Longer than 80 lines: every array is a local variable; functions that take the tuples apart in the inner loops make
# the walk five times as slow.
@kernel(allocates=True)
def walk(
    tables: ChainTables, state: WalkState, found: NDArray[np.unsignedinteger], pruning: TransferPruning, patience: int
) -> int:
    """Go on until all are met or ``found`` is full, or ``patience`` is over, which steps take one of and the pruning
    more; on the last chain whole ranges at a time.

    Without ranges of weight nothing is stored and no branch passed over: the ideals are counted.
    """
    row_start, start, unit, need, block, sums, low, high = tables
    least, most, at, have, counters = state
    (touch_start, touched, role, full, cost, inside, paid, lightest_at, heaviest_at, total, others, time, counts,
     spent, taken, digit, fewest) = pruning  # fmt: skip
    chains = need.shape[1]
    last = chains - 1
    windows = len(low)
    level, filled = counters[0], counters[1]
    gated = len(digit) > 0
    all_of = total[0] if gated else 0
    sofar = np.zeros(chains + 1, dtype=np.int64)
    for c in range(level):
        sofar[c + 1] = sofar[c] + sums[row_start[c] + at[c]]
    steps = looked = 0
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
                    looked += int(p - a) * (1 + len(digit) // _LOOKS)
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
                            counters[3] += 1
                            if filled < len(found):
                                for c in range(last):
                                    found[filled, c] = at[c]
                                found[filled, last] = q
                                filled += 1
                    continue
                while p <= end and sofar[last] + sums[row + p] <= high[w]:
                    if filled == len(found):
                        counters[0], counters[1], counters[4] = level, filled, counters[4] + steps
                        counters[2] += p - first
                        at[last] = p
                        return FULL
                    for c in range(last):
                        found[filled, c] = at[c]
                    found[filled, last] = p
                    filled += 1
                    counters[3] += 1
                    p += 1
            counters[2] += end - first + 1
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
        if looked > patience:
            counters[0], counters[1], counters[4] = level, filled, counters[4] + steps
            return 0
        steps += 1
        looked += 1
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
    counters[0], counters[1], counters[4] = level, filled, counters[4] + steps
    return DONE


# More than ten arguments: the arrays one by one, as in ``walk``.
@kernel(no_cpython_wrapper=True)
def _move(
    unit: Integers, start: int, now: int, goal: int, touch_start: Integers, touched: Integers32,
    role: Integers32, full: Integers32, cost: Integers, inside: Integers32, paid: Integers,
) -> None:  # fmt: skip
    """Take units of a chain in or out until there are ``goal`` instead of ``now``, and keep the sums up to date."""
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


@kernel(no_cpython_wrapper=True)
def _takes(time: int, spent: Integers, taken: Integers) -> int:
    """The weight that devices can take in a time; without a table weight is time."""
    end = len(spent) - 1
    if end < 0:
        return max(time, 0)
    if time <= spent[0]:
        return int(taken[0])
    if time >= spent[end]:
        return int(taken[end])
    a, b = 0, end  # the last that is spent, and the first that is not
    while b - a > 1:
        middle = (a + b) >> 1
        if spent[middle] <= time:
            a = middle
        else:
            b = middle
    share = (time - spent[a]) / (spent[b] - spent[a])
    return int(taken[a] + np.int64(share * (taken[b] - taken[a])) + 1)
