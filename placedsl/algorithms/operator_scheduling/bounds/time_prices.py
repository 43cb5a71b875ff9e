"""Work beside the blocks of a chain: what the time of devices, ports and links is worth, in seconds per second.

Nodes beside the blocks run between two nodes of the chain.  On each device they and all that is between these two take
no longer than from the end of the one to the start of the other, and so do the transfers of each port and link: those
of what the nodes beside read from the first of the two, of what they read from one another, and those within blocks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.beside import Beside
from placedsl.algorithms.operator_scheduling.bounds.broadcast import fits
from placedsl.algorithms.operator_scheduling.bounds.priced_chain import Uses
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Chain
from placedsl.algorithms.operator_scheduling.decomposition.cuts import beside_blocks
from placedsl.algorithms.operator_scheduling.instance import floats

#: Parts of a chain with a smaller share of all work beside them have no prices.
_LEAST = 0.005


def time_uses(chain: Chain) -> Iterator[Uses]:
    """Parts of the chain that have work beside them, none of them overlapping, those with most of it first."""
    instance = chain.instance
    if chain.whole or not fits(instance):
        return
    beside, last, first = beside_blocks(instance, chain.nodes)
    time = floats(np.where(np.isfinite(instance.time), instance.time, 0.0))
    work = np.where(np.isfinite(instance.time), instance.time, np.inf).min(axis=1)
    parts = []
    for i in np.unique(last[beside]).tolist():
        j = int(first[beside & (last == i)].max())
        within = beside & (last >= i) & (first <= j)
        parts.append((float(work[within].sum()), i, j, within))
    taken = np.zeros(len(chain.blocks), dtype=bool)
    for amount, i, j, within in sorted(parts, key=lambda part: (-part[0], part[1])):
        if amount < _LEAST * work.sum() or taken[i + 1 : j + 1].any():
            continue
        taken[i + 1 : j + 1] = True
        nodes = instance.topological[within[instance.topological]]
        before = int(chain.nodes[i]) if i >= 0 else -1
        of = Beside(instance, nodes, time[nodes], before)
        yield Uses(time, np.zeros(instance.devices), range(i + 1, j + 1), True, of)
