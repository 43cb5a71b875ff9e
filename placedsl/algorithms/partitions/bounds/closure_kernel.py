"""Compiled: the work of all that comes before each unit."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel


@kernel(allocates=True)
def work_before(order, start, earlier, work):  # type: ignore[no-untyped-def]
    """The work of each unit and of all units before it, by whatever path; for each row of ``work`` (a x u seconds).

    ``order``: the units, none before what comes before it;  ``start``, ``earlier``: the direct predecessors of each.
    64 units at a time are followed through the graph, a bit each, so that memory is that of a few arrays.
    """
    accounts, units = work.shape
    out = np.zeros((accounts, units))
    seen = np.zeros(units, dtype=np.uint64)
    # The work of each subset of eight units.
    part = np.zeros((8, 256, accounts))
    one, none, byte = np.uint64(1), np.uint64(0), np.uint64(255)
    for first in range(0, units, 64):
        last = min(units, first + 64)
        for i in range(8):
            for mask in range(1, 256):
                low = 0
                while not (mask >> low) & 1:
                    low += 1
                k = first + 8 * i + low
                for a in range(accounts):
                    part[i, mask, a] = part[i, mask & (mask - 1), a] + (work[a, order[k]] if k < last else 0.0)
        for k in range(max(0, first - 64), first):
            seen[order[k]] = none
        for k in range(first, units):
            u = order[k]
            bits = none
            if k < last:
                bits |= one << np.uint64(k - first)
            for j in range(start[u], start[u + 1]):
                bits |= seen[earlier[j]]
            seen[u] = bits
            if bits != none:
                for i in range(8):
                    chosen = np.int64((bits >> np.uint64(8 * i)) & byte)
                    for a in range(accounts):
                        out[a, u] += part[i, chosen, a]
    return out
