"""A tensor that goes from one device to many nodes: how late it comes to others, and what that leaves for them.

In a layer of a transformer the heads read the same tensor.  It takes one transfer for each further device, one after
the other where they share a port, so that work there begins late; or the tensor stays, and what the heads make of it
crosses instead.  A linear relaxation sends a fraction of everything everywhere at once.

The cases are the devices that receive the tensor, in the order of its arrival.  What reads it at the i-th of them, and
all that follows from that, on whatever device, is of level i or higher, and begins after the i-th arrival.  In each
case, for every device and level, the arrival, the work there of this level and higher, and the least that follows it
take at most the latency; for ports and links the same holds of transfers.  With weights of these rows that add up to 1
the latency is at least the least weighted sum over all placements.  Reads among nodes with several devices are counted
where they form a forest, and a tensor with several readers as a share for each, so that dynamic programming over the
forest finds the least sum.  The bound is the least over the cases of the largest over the weights that are tried.
"""

from __future__ import annotations

import itertools

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.broadcast_kernel import Case, Reads, raised
from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import heads, paths_only, single_device, tails
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, floats, integers
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.tolerances import LIMIT_SLACK

#: Fewer readers are left to other bounds; with more devices there are too many orders (5: 65).
_FEWEST_READERS, _MOST_DEVICES = 3, 5
#: Steps of the case with the least bound, at first and each further time, and of all cases together; the length of the
#: first.  So many turns of a case in a row that gain less than this share are the end.
_FIRST, _TURN, _STEPS, _LENGTH, _IDLE, _LEAST_GAIN = 10, 20, 1500, 3.0, 2, 1e-3


def broadcast_bound(instance: SchedulingInstance, known: float, enough: float) -> float:
    """A lower bound on the latency in seconds of an instance in which a node with a single device sends a tensor to
    many; ``known`` where there is none.

    ``known``: what is proven; ``enough``: a bound that need not be exceeded.
    """
    if not instance.sequential or not 1 < instance.devices <= _MOST_DEVICES:
        return known
    if not (np.isfinite(instance.time) & (instance.time > 0.0)).any():
        return known
    only, move = np.asarray(single_device(instance)), _moves(instance)
    broadcast = _broadcast(instance, only, move)
    if broadcast < 0:
        return known
    home = int(only[instance.producer[broadcast]])
    reads = _counted(instance, only, move, broadcast)
    transfers = _around_transfers(instance, reads.uses)
    cases: list[Case] = []
    bounds: list[float] = []
    for count in range(instance.devices):
        for receivers in itertools.permutations([d for d in range(instance.devices) if d != home], count):
            case, least = _case(instance, reads, broadcast, (home, *receivers), transfers)
            if least < enough:
                cases.append(case)
                bounds.append(max(least, known))
    used = [np.isfinite(case.around) for case in cases]
    weights = [floats(some / some.sum()) for some in used]
    made, idle, left = [0] * len(cases), [0] * len(cases), _STEPS
    while cases and left > 0:
        i = int(np.argmin(bounds))
        before, steps = bounds[i], _TURN if made[i] else _FIRST
        bounds[i] = raised(cases[i], reads, weights[i], before, enough, made[i], steps, _LENGTH)
        idle[i] = idle[i] + 1 if made[i] and bounds[i] < before * (1.0 + _LEAST_GAIN) else 0
        if min(bounds) >= enough or idle[i] == _IDLE:
            break
        made[i] += steps
        left -= steps
    return max(known, min(min(bounds, default=np.inf), enough) * (1.0 - LIMIT_SLACK))


def _moves(instance: SchedulingInstance) -> Floats:
    """t x D x D seconds of the transfer of each tensor."""
    if len(instance.given):
        return instance.given
    return floats(instance.fixed[None] + instance.per_size[None] * instance.size[:, None, None])


def _broadcast(instance: SchedulingInstance, only: Integers, move: Floats) -> int:
    """The tensor of a node with a single device that takes longest for all its readers, -1 if there is none."""
    readers = np.diff(instance.reader_start)
    longest = np.where(np.isfinite(move), move, 0.0).max(axis=(1, 2), initial=0.0) * readers
    longest[(only[instance.producer] < 0) | (readers < _FEWEST_READERS)] = 0.0
    return int(longest.argmax()) if longest.max(initial=0.0) > 0.0 else -1


def _counted(instance: SchedulingInstance, only: Integers, move: Floats, broadcast: int) -> Reads:
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
    kept = np.concatenate([aside, of[of >= 0]])
    count = np.bincount(tensor[kept], minlength=len(instance.producer))
    share = np.zeros(len(tensor))
    share[kept] = 1.0 / count[tensor[kept]]
    order = order[:0:-1]
    return Reads(
        integers(tensor), integers(source), integers(target), share, move, _uses(instance), only,
        integers(order[only[order] < 0]), of, integers(aside),
    )  # fmt: skip


def _uses(instance: SchedulingInstance) -> Booleans:
    """resources x D x D flags: what a transfer between two devices occupies."""
    devices = instance.devices
    out = np.zeros((instance.resources, devices * devices), dtype=bool)
    out[instance.resource, np.repeat(np.arange(devices * devices), np.diff(instance.resource_start))] = True
    return np.ascontiguousarray(out.reshape(instance.resources, devices, devices))


def _around_transfers(instance: SchedulingInstance, uses: Booleans) -> Floats:
    """2 x resources seconds before and after all transfers that occupy each."""
    source, target = instance.producer, instance.reader
    head, tail = _heads_and_tails(instance)
    end, left = (head + instance.time)[source].min(axis=0), (instance.time + tail)[target].min(axis=0)
    before = np.where(uses, end[None, :, None], np.inf).min(axis=(1, 2), initial=np.inf)
    after = np.where(uses, left[None, None, :], np.inf).min(axis=(1, 2), initial=np.inf)
    return np.stack([before, after])


def _heads_and_tails(instance: SchedulingInstance) -> tuple[Floats, Floats]:
    """n x D seconds before the start and after the end of each node, by paths."""
    every, paths = np.full(instance.nodes, -1, dtype=np.int64), paths_only(instance)
    return heads(instance, every, paths), tails(instance, every, paths, np.zeros(instance.time.shape))


def _case(
    instance: SchedulingInstance, reads: Reads, broadcast: int, devices: tuple[int, ...], transfers: Floats
) -> tuple[Case, float]:  # fmt: skip
    """A case, and the latency that it has at least by paths (inf: there is none).

    ``devices``: that of the producer and those that the tensor reaches, in that order; on no other one a node reads it.
    """
    home, receivers = devices[0], list(devices[1:])
    read = instance.reader[instance.reader_start[broadcast] : instance.reader_start[broadcast + 1]]
    barred = np.ones(instance.devices, dtype=bool)
    barred[list(devices)] = False
    time = instance.time.copy()
    time[np.ix_(read, barred)] = np.inf
    head, tail = _heads_and_tails(instance._replace(time=time))
    least = float((head + time + tail).min(axis=1).max(initial=0.0))
    floor = np.zeros(time.shape, dtype=np.int64)
    taken, arrival = np.zeros(instance.resources), np.zeros(len(devices))
    producer = int(instance.producer[broadcast])
    begins = float(head[producer, home] + time[producer, home])
    for i, d in enumerate(receivers, 1):
        floor[read, d] = i
        here = reads.uses[:, home, d]
        waits = [arrival[k] for k, e in enumerate(receivers[: i - 1], 1) if (here & reads.uses[:, home, e]).any()]
        arrival[i] = max(arrival[i - 1], max([begins, *waits]) + reads.move[broadcast, home, d])
        taken[here] += reads.move[broadcast, home, d]
        least = max(least, float(arrival[i] + (time + tail)[read, d].min()))
    runs = np.isfinite(time) & (time > 0.0)
    before = np.concatenate([np.where(runs, head, np.inf).min(axis=0), transfers[0]])
    after = np.concatenate([np.where(runs, tail, np.inf).min(axis=0), transfers[1]])
    around = np.maximum(before[:, None], arrival[None, :]) + after[:, None]
    return Case(time, floor, around, taken), least
