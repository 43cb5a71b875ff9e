"""A partial order as chains: an ideal is how far it reaches on each of them.

Units are dealt out to chains greedily in topological order, in two ways, of which the one with fewer chains is kept.
What an ideal has of a chain is a prefix, so that an ideal is one small number a chain, and containment is a comparison
of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Integers, Integers32
from placedsl.graph.order import csr, topological
from placedsl.records import dataclass

#: A relation that takes more chains than this is too wide for anything that walks over its ideals.
MOST_CHAINS = 256
#: So many chains are few enough not to look for fewer.
_FEW = 2


@dataclass(frozen=True, eq=False)
class ChainCover:
    """A chain cover of a partial order over u units, the longest chain last.

    ``order``     a topological order of the units
    ``chain``, ``position``   u: which chain, and where on it
    ``start``, ``unit``   the units of chain c in order: ``unit[start[c]:start[c + 1]]``
    ``row_start``  row ``row_start[c] + p`` of the tables below is "an ideal has exactly p units of chain c";
                  then it has of chain d at least ``need[row, d]`` and at most ``block[row, d]`` units
    """

    order: Integers
    chain: Integers
    position: Integers
    start: Integers
    unit: Integers
    row_start: Integers
    need: np.ndarray
    block: np.ndarray

    @classmethod
    def of_order(cls, order: Integers) -> ChainCover:
        """One chain: the ideals are the prefixes of the order."""
        units = len(order)
        position = np.empty(units, dtype=np.int64)
        position[order] = np.arange(units)
        all_of = np.arange(units + 1, dtype=np.int32)[:, None]
        start, rows = np.array([0, units]), np.array([0, units + 1])
        return cls(order, np.zeros(units, dtype=np.int64), position, start, order, rows, all_of, all_of)

    @property
    def count(self) -> int:
        """How many chains there are."""
        return len(self.start) - 1

    @property
    def dtype(self) -> type[np.unsignedinteger[Any]]:
        """The smallest type that holds a position."""
        return np.uint16 if int(np.diff(self.start).max(initial=0)) < 2**16 else np.uint32

    def prefix_sums(self, values: np.ndarray) -> np.ndarray:
        """Per row the sum of ``values`` (an entry a unit, in the last axis) over the first p units of its chain."""
        rows = int(self.row_start[-1])
        out = np.zeros((*values.shape[:-1], rows), dtype=values.dtype)
        for c in range(self.count):
            own = self.unit[self.start[c] : self.start[c + 1]]
            np.cumsum(values[..., own], axis=-1, out=out[..., self.row_start[c] + 1 : self.row_start[c + 1]])
        return out

    def prefixes(self, order: Integers) -> np.ndarray:
        """The prefixes of a topological order as positions: (u + 1) x chains."""
        steps = np.zeros((len(order) + 1, self.count), dtype=self.dtype)
        steps[np.arange(1, len(order) + 1), self.chain[order]] = 1
        return np.cumsum(steps, axis=0, dtype=self.dtype)


def chain_cover(units: int, before: Integers, after: Integers) -> ChainCover | None:
    """The chains of an acyclic relation given by pairs; None where it takes more than ``MOST_CHAINS``."""
    order = topological(units, before, after)
    if order is None:
        raise ValueError("the relation has a cycle")
    start, known = csr(after, before, units)
    most = min(MOST_CHAINS, max(1, units))
    count, chain, position, need = _deal(units, order, start, known, most, 1)
    if count < 0 or count > _FEW:
        other = _deal(units, order, start, known, most if count < 0 else count - 1, -1)
        if other[0] >= 0:
            count, chain, position, need = other
    if count < 0:
        return None
    length = np.bincount(chain, minlength=count)
    by_length = np.argsort(length, kind="stable")
    number = np.empty(count, dtype=np.int64)
    number[by_length] = np.arange(count)
    chain, length, need = number[chain], length[by_length], need[:, by_length]
    block = _blocks(order, *csr(before, after, units), length, chain, position)
    row_start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(length + 1)))
    needs, blocks = (np.zeros((int(row_start[-1]), count), dtype=np.int32) for _ in range(2))
    needs[row_start[chain] + position + 1] = need
    blocks[row_start[1:] - 1] = length
    blocks[row_start[chain] + position] = block
    unit_start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(length)))
    unit = np.empty(units, dtype=np.int64)
    unit[unit_start[chain] + position] = np.arange(units)
    return ChainCover(order, chain, position, unit_start, unit, row_start, needs, blocks)


@kernel(allocates=True)
def _deal(
    units: int, order: Integers, start: Integers, known: Integers, most: int, sign: int
) -> tuple[int, Integers, Integers, Integers32]:  # fmt: skip
    """A chain and a place on it for each unit; per unit how much of each chain comes before it, itself included.

    Of several chains that can take a unit, it goes to the one that ended last; with ``sign`` -1, first.
    """
    need = np.zeros((units, most), dtype=np.int32)
    chain = np.full(units, -1, dtype=np.int64)
    position = np.zeros(units, dtype=np.int64)
    length = np.zeros(most, dtype=np.int32)
    ended = np.full(most, -1, dtype=np.int64)
    count = 0
    for i in range(units):
        u = order[i]
        for j in range(start[u], start[u + 1]):
            v = known[j]
            for c in range(count):
                need[u, c] = max(need[u, c], need[v, c])
        best = -1  # a chain whose end comes before this unit can take it
        for c in range(count):
            if need[u, c] == length[c] and (best < 0 or sign * (ended[c] - ended[best]) > 0):
                best = c
        if best < 0:
            if count == most:
                return -1, chain, position, need
            best = count
            count += 1
        chain[u] = best
        position[u] = length[best]
        length[best] += 1
        need[u, best] = length[best]
        ended[best] = i
    return count, chain, position, need[:, :count].copy()


@kernel(allocates=True)
def _blocks(
    order: Integers, start: Integers, later: Integers, length: Integers, chain: Integers, position: Integers
) -> Integers32:  # fmt: skip
    """Per unit how much of each chain an ideal can have that lacks the unit."""
    count = len(length)
    block = np.empty((len(order), count), dtype=np.int32)
    for i in range(len(order) - 1, -1, -1):
        u = order[i]
        for c in range(count):
            block[u, c] = length[c]
        for j in range(start[u], start[u + 1]):
            v = later[j]
            for c in range(count):
                block[u, c] = min(block[u, c], block[v, c])
        block[u, chain[u]] = position[u]
    return block
