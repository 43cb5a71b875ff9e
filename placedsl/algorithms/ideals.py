"""Ideals of a precedence relation: the sets that hold, with a unit, all that comes before it.

Enumerated level by level into bit sets; a hash table over them gives, for each ideal, the ideals that
have one unit more.  Numbers follow size, so a subset always comes before its supersets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from placedsl.graph.graph import Integers
from placedsl.graph.order import topological


@dataclass(frozen=True, eq=False)
class Ideals:
    """``count`` ideals over ``order`` (a topological order of the units; unit ``order[i]`` has rank i).

    ``cover_start``/``cover_rank``/``cover_ideal``: ideal i becomes ideal ``cover_ideal[j]`` by adding the unit of
    rank ``cover_rank[j]``, for j in ``cover_start[i]:cover_start[i+1]``, ranks ascending.  Ideal 0 is empty, the
    last one is everything.
    """

    order: Integers
    count: int
    cover_start: Integers
    cover_rank: Integers
    cover_ideal: Integers


def ideals(units: int, before: Integers, after: Integers, most: int) -> Ideals | None:
    """All ideals of an acyclic relation, or None when there are more than ``most``."""
    order = topological(units, before, after)
    if order is None:
        raise ValueError("the relation has a cycle")
    words = max(1, (units + 63) // 64)
    rank = np.empty(units, dtype=np.int64)
    rank[order] = np.arange(units)
    needed = np.zeros((units, words), dtype=np.uint64)
    for u, v in zip(rank[before].tolist(), rank[after].tolist(), strict=True):
        needed[v, u >> 6] |= np.uint64(1 << (u & 63))
    generator = np.random.default_rng(1)
    keys = generator.integers(1, 2**63, size=max(1, units)).astype(np.uint64)
    count, start, added, target = _enumerate(units, needed, keys, most)
    if count > most:
        return None
    return Ideals(order, count, start, added, target)


def chain(order: Integers) -> Ideals:
    """The prefixes of one order, as the ideals of a total order."""
    n = len(order)
    start = np.minimum(np.arange(n + 2), n)
    return Ideals(order, n + 1, start, np.arange(n), np.arange(1, n + 1))


@njit(cache=True)
def _enumerate(units, needed, keys, most):  # type: ignore[no-untyped-def]
    words = needed.shape[1]
    capacity = 1024
    bits = np.zeros((capacity, words), dtype=np.uint64)
    hashes = np.zeros(capacity, dtype=np.uint64)
    slots = np.full(4 * capacity, -1, dtype=np.int64)
    edges = 4096
    cover_start = np.zeros(capacity + 1, dtype=np.int64)
    cover_rank = np.zeros(edges, dtype=np.int64)
    cover_ideal = np.zeros(edges, dtype=np.int64)
    count, used, current = 1, 0, 0
    slots[0] = 0
    fresh = np.zeros(words, dtype=np.uint64)
    one = np.uint64(1)
    while current < count:
        cover_start[current] = used
        for v in range(units):
            bit = one << np.uint64(v & 63)
            if bits[current, v >> 6] & bit:
                continue
            ready = True
            for w in range(words):
                if needed[v, w] & ~bits[current, w]:
                    ready = False
                    break
            if not ready:
                continue
            key = hashes[current] ^ keys[v]
            for w in range(words):
                fresh[w] = bits[current, w]
            fresh[v >> 6] |= bit
            mask = np.uint64(len(slots) - 1)
            place = np.int64(key & mask)
            found = -1
            while slots[place] >= 0:
                known = slots[place]
                if hashes[known] == key:
                    same = True
                    for w in range(words):
                        if bits[known, w] != fresh[w]:
                            same = False
                            break
                    if same:
                        found = known
                        break
                place = np.int64(np.uint64(place + 1) & mask)
            if found < 0:
                if count >= most:
                    return most + 1, cover_start, cover_rank, cover_ideal
                if count == capacity:
                    capacity *= 2
                    wider = np.zeros((capacity, words), dtype=np.uint64)
                    wider[:count] = bits
                    bits = wider
                    longer = np.zeros(capacity, dtype=np.uint64)
                    longer[:count] = hashes
                    hashes = longer
                    starts = np.zeros(capacity + 1, dtype=np.int64)
                    starts[: count + 1] = cover_start
                    cover_start = starts
                    slots = np.full(4 * capacity, -1, dtype=np.int64)
                    mask = np.uint64(len(slots) - 1)
                    for i in range(count):
                        p = np.int64(hashes[i] & mask)
                        while slots[p] >= 0:
                            p = np.int64(np.uint64(p + 1) & mask)
                        slots[p] = i
                    place = np.int64(key & mask)
                    while slots[place] >= 0:
                        place = np.int64(np.uint64(place + 1) & mask)
                found = count
                bits[count] = fresh
                hashes[count] = key
                slots[place] = count
                count += 1
            if used == edges:
                edges *= 2
                ranks = np.zeros(edges, dtype=np.int64)
                ranks[:used] = cover_rank
                cover_rank = ranks
                targets = np.zeros(edges, dtype=np.int64)
                targets[:used] = cover_ideal
                cover_ideal = targets
            cover_rank[used] = v
            cover_ideal[used] = found
            used += 1
        current += 1
    cover_start[count] = used
    return count, cover_start[: count + 1], cover_rank[:used], cover_ideal[:used]
