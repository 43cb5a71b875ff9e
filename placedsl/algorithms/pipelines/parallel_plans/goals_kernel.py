"""Compiled: the ideals that a stage may lead to from one, before anything is known of its options and transfers.

Where ideals are many a unit, most pairs of them are no stage: which ideals contain another is then read from bits,
those of the ideals that reach as far on every chain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.pipelines.parallel_plans.least_transfers import LeastTransfers
from placedsl.algorithms.stages.cut_edges_kernel import contained

#: What the rounding of sums over ideals may make of a comparison.
_ROUNDING = 1e-12


def reaching(transfers: LeastTransfers) -> NDArray[np.uint64]:
    """r x w words of bits: for each row of a chain, the ideals that reach at least as far on it."""
    ideals, chains = transfers.row.shape
    words = np.zeros((int(transfers.first[-1]), -(-ideals // 64)), dtype=np.uint64)
    octets = words.view(np.uint8)
    for c in range(chains):
        for row in range(transfers.first[c], transfers.first[c + 1]):
            packed = np.packbits(transfers.row[:, c] >= row, bitorder="little")
            octets[row, : len(packed)] = packed
    return words


@kernel(nogil=True, no_cpython_wrapper=True, inline="always")
def has_room(terms, base, goal, g):  # type: ignore[no-untyped-def]
    """Whether the smallest options of a stage can fit, with one sample in flight, or two where stages lie behind."""
    sums = terms.fewest[1 if base and not terms.bounds.held else 0, g]
    return sums[goal] - sums[base] <= terms.capacity + _ROUNDING * sums[goal]


@kernel(nogil=True, no_cpython_wrapper=True, inline="always")
def _may_matter(terms, scratch, base, goal, fewest, reach):  # type: ignore[no-untyped-def]
    """Whether devices and memory may suffice for a stage by sums over its units."""
    left = terms.devices - scratch.rest[goal] - fewest
    if left < 1 or terms.weight[goal] - terms.weight[base] > left * reach:
        return False
    roomy = False
    for g in range(len(terms.degree)):
        roomy = roomy or has_room(terms, base, goal, g)
    return roomy


@kernel(nogil=True, no_cpython_wrapper=True)
def goals_of(pairs, terms, stages, those, scratch, base, fewest, reach):  # type: ignore[no-untyped-def]
    """Write the ideals that a stage from ``base`` may lead to into ``scratch.goals``; how many there are.

    ``stages``, ``those``: what is kept or listed of stages, if anything;  ``fewest``: devices of what lies behind.
    """
    found, goals, ideals = 0, scratch.goals, len(pairs.weight)
    if len(stages.inside):
        for goal in range(base + 1, ideals):
            if stages.inside[base, goal] and _may_matter(terms, scratch, base, goal, fewest, reach):
                goals[found] = goal
                found += 1
    elif those.number[0] >= 0:
        for n in range(those.start[base], those.start[base + 1]):
            if _may_matter(terms, scratch, base, np.int64(those.goal[n]), fewest, reach):
                goals[found] = those.goal[n]
                found += 1
    elif len(terms.reaching):
        row = terms.transfers.row[base]
        for w in range((base + 1) // 64, terms.reaching.shape[1]):
            word = terms.reaching[row[0], w]
            for c in range(1, len(row)):
                word &= terms.reaching[row[c], w]
            goal = 64 * w
            while word:
                if word & np.uint64(1) and goal > base and _may_matter(terms, scratch, base, goal, fewest, reach):
                    goals[found] = goal
                    found += 1
                word >>= np.uint64(1)
                goal += 1
    else:
        for goal in range(base + 1, ideals):
            if _may_matter(terms, scratch, base, goal, fewest, reach) and contained(pairs, base, goal):
                goals[found] = goal
                found += 1
    return found
