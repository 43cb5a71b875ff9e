"""The reads that are counted in least sums over placements: so many that dynamic programming finds these."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.broadcast_kernel import Reads
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, floats, integers
from placedsl.arrays import Booleans, Floats, Integers


def counted_reads(instance: SchedulingInstance, only: Integers, move: Floats, broadcast: int) -> Reads:
    """The reads that are counted: all that have an end with a single device, and among the others a spanning forest of
    those that take longest.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

    nodes = instance.nodes
    tensor = np.repeat(np.arange(len(instance.producer)), np.diff(instance.reader_start))
    source, target = instance.producer[tensor], instance.reader
    single = (only[source] >= 0).astype(np.int64) + (only[target] >= 0)
    aside = np.flatnonzero((single == 1) & (tensor != broadcast))
    free = np.flatnonzero((single == 0) & (tensor != broadcast))
    longest = np.where(np.isfinite(move), move, 0.0).max(axis=(1, 2), initial=0.0)[tensor]
    # The longest read of each pair of nodes; ranks from 1 are weights, the least for the longest.
    free = free[np.argsort(-longest[free], kind="stable")]
    low, high = np.minimum(source, target)[free], np.maximum(source, target)[free]
    _, first = np.unique(low * nodes + high, return_index=True)
    read, low, high = free[first], low[first], high[first]
    forest = minimum_spanning_tree(coo_array((first + 1.0, (low, high)), shape=(nodes, nodes)).tocsr()).tocoo()
    of = np.full((nodes,), -1, dtype=np.int64)
    by_pair = dict(zip(zip(low.tolist(), high.tolist(), strict=True), read.tolist(), strict=True))
    _, component = connected_components(forest, directed=False)
    roots = np.unique(component, return_index=True)[1]
    # A further node joins the trees, so that one walk orders all of them.
    rows = np.concatenate([forest.row, np.full(len(roots), nodes)])
    columns = np.concatenate([forest.col, roots])
    joined = coo_array((np.ones(len(rows)), (rows, columns)), shape=(nodes + 1, nodes + 1)).tocsr()
    order, before = breadth_first_order(joined, nodes, directed=False)
    for v in order[1:].tolist():
        if before[v] < nodes:
            of[v] = by_pair[min(v, int(before[v])), max(v, int(before[v]))]
    kept = np.concatenate([aside, np.flatnonzero((single == 2) & (tensor != broadcast)), of[of >= 0]])
    count = np.bincount(tensor[kept], minlength=len(instance.producer))
    share = np.zeros(len(tensor))
    share[kept] = 1.0 / count[tensor[kept]]
    order = order[:0:-1]
    return Reads(
        integers(tensor), integers(source), integers(target), share, move, occupied(instance), only,
        integers(order[only[order] < 0]), of, integers(aside),
    )  # fmt: skip


def occupied(instance: SchedulingInstance) -> Booleans:
    """resources x D x D flags: what a transfer between two devices occupies."""
    devices = instance.devices
    out = np.zeros((instance.resources, devices * devices), dtype=bool)
    out[instance.resource, np.repeat(np.arange(devices * devices), np.diff(instance.resource_start))] = True
    return np.ascontiguousarray(out.reshape(instance.resources, devices, devices))


def seconds_sent(reads: Reads, device: Integers, among: Booleans) -> Floats:
    """Seconds that the tensors ``among`` all (flags) occupy each resource with nodes on these devices (n)."""
    source, target = device[reads.source], device[reads.target]
    crossing = np.flatnonzero((source != target) & (reads.share > 0.0) & among[reads.tensor])
    source, target = source[crossing], target[crossing]
    moved = reads.share[crossing] * reads.move[reads.tensor[crossing], source, target]
    return floats(reads.uses[:, source, target] @ moved)


def unreachable(reads: Reads) -> bool:
    """Whether a node with a single device has to read what cannot come there from another."""
    a, b = reads.only[reads.source], reads.only[reads.target]
    both = np.flatnonzero((a >= 0) & (b >= 0) & (reads.share > 0.0) & (a != b))
    return bool(np.isinf(reads.move[reads.tensor[both], a[both], b[both]]).any())
