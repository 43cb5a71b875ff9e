"""Compiled: the least priced placement of a block in which a tensor goes to given devices, and prices that raise it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Booleans, Floats, Integers


class Reads(NamedTuple):
    """The reads that are counted: of each tensor by each node, less those of the tensor that is broadcast, and less
    those that would close a cycle among nodes with several devices.

    ``tensor``, ``source``, ``target``, ``share``   r: the share of the tensor's transfer that counts for the read
    ``move``     t x D x D seconds of the transfer of each tensor (inf: impossible)
    ``uses``     resources x D x D flags: what a transfer between two devices occupies
    ``only``     n: the device of a node that has no other, else -1
    ``order``    the nodes that have others, each before the one that it is attached to
    ``attached`` n: the read that attaches a node to another of them, -1 where there is none
    ``aside``    the reads of which one end has a single device
    """

    tensor: Integers
    source: Integers
    target: Integers
    share: Floats
    move: Floats
    uses: Booleans
    only: Integers
    order: Integers
    attached: Integers
    aside: Integers


class Case(NamedTuple):
    """In which order devices receive the tensor.

    ``time``     n x D seconds (inf: not there)
    ``floor``    n x D: the level of a reader of the tensor; that of what reads from it is at least the same
    ``around``   (D + resources + 1) x levels seconds: before and after the work or the transfers of that level and
                 higher; the last row, which nothing uses, is what is proven for the latency (any large number)
    ``taken``    D + resources: seconds of nodes with a single device, and those that the tensor itself takes
    ``price``    n x D seconds: what a node costs on a device beside its work
    ``ways``     D x D: what a second of a transfer between two devices costs beside its work;  ``paid``: t flags, the
                 tensors for which it does;  ``sent``: what the tensor itself costs, seconds
    """

    time: Floats
    floor: Integers
    around: Floats
    taken: Floats
    price: Floats
    ways: Floats
    paid: Booleans
    sent: float


@kernel()
def _crossing(case: Case, reads: Reads, k: int, a: int, b: int, i: int, transfer: Floats) -> float:
    """The price of a read from device ``a`` by ``b``, sent at level ``i`` (inf: impossible)."""
    if a == b:
        return 0.0
    seconds = float(reads.move[reads.tensor[k], a, b])
    if seconds == np.inf:
        return seconds
    beside = case.ways[a, b] if case.paid[reads.tensor[k]] else 0.0
    return float(reads.share[k] * seconds * (transfer[a, b, i] + beside))


@kernel()
def _attach(
    case: Case, reads: Reads, v: int, k: int, transfer: Floats, price: Floats, chosen: Integers, room: Integers
) -> None:  # fmt: skip
    """Add the least price of a node and all that is attached to it to that of the node at the other end of read ``k``,
    and keep where it is least.

    ``room``: D x levels, written.  The prices of the node are no longer needed, and are changed.
    """
    devices, levels = price.shape[1], price.shape[2]
    sends = reads.source[k] == v
    w = reads.target[k] if sends else reads.source[k]
    for e in range(devices):
        for i in range(levels):
            room[e, i] = e * levels + i
        if not sends:  # a reader has at least the level of what it reads: the least from each level on
            for i in range(levels - 2, -1, -1):
                if price[v, e, i + 1] < price[v, e, i]:
                    price[v, e, i], room[e, i] = price[v, e, i + 1], room[e, i + 1]
    for d in range(devices):
        if case.time[w, d] == np.inf:
            continue
        least, at = np.inf, 0
        for i in range(levels):  # what the node reads may have any level up to its own
            if not sends:
                least = np.inf
            for e in range(devices):
                if price[v, e, i] < least:
                    a, b = (e, d) if sends else (d, e)
                    moved = _crossing(case, reads, k, a, b, i, transfer)
                    if price[v, e, i] + moved < least:
                        least, at = price[v, e, i] + moved, room[e, i]
            price[w, d, i] += least
            chosen[v, d, i] = at


@kernel(allocates=True)
def least_priced(
    case: Case, reads: Reads, work: Floats, transfer: Floats, device: Integers, level: Integers
) -> float:  # fmt: skip
    """The least price of a placement (inf: there is none); ``device`` and ``level`` n are filled in.

    ``work``: D x levels, the price of a second of work on a device at a level; ``transfer``: D x D x levels, that of a
    second of a transfer that is sent at a level.
    """
    nodes, devices = case.time.shape
    levels = work.shape[1]
    price, chosen = np.empty((nodes, devices, levels)), np.zeros((nodes, devices, levels), np.int64)
    room = np.empty((devices, levels), np.int64)
    for v in reads.order:
        for d in range(devices):
            for i in range(levels):
                able = case.time[v, d] < np.inf and i >= case.floor[v, d]
                price[v, d, i] = case.time[v, d] * work[d, i] + case.price[v, d] if able else np.inf
    for k in reads.aside:
        u, v = reads.source[k], reads.target[k]
        for d in range(devices):
            for i in range(levels):
                if reads.only[v] >= 0:
                    price[u, d, i] += _crossing(case, reads, k, d, reads.only[v], i, transfer)
                else:
                    price[v, d, i] += _crossing(case, reads, k, reads.only[u], d, 0, transfer)
    total = 0.0
    for v in reads.order:
        k = reads.attached[v]
        if k >= 0:
            _attach(case, reads, v, k, transfer, price, chosen, room)
        else:
            least = np.inf
            for d in range(devices):
                for i in range(levels):
                    if price[v, d, i] < least:
                        least, device[v], level[v] = price[v, d, i], d, i
            total += least
    for j in range(len(reads.order) - 1, -1, -1):
        v = reads.order[j]
        k = reads.attached[v]
        if k >= 0:
            w = reads.target[k] if reads.source[k] == v else reads.source[k]
            at = chosen[v, device[w], level[w]]
            device[v], level[v] = at // levels, at % levels
    return total


@kernel()
def _use(case: Case, reads: Reads, device: Integers, level: Integers, used: Floats) -> None:
    """(D + resources + 1) x levels seconds: what a placement uses at each level and above."""
    devices, resources = case.time.shape[1], reads.uses.shape[0]
    rows, levels = used.shape
    for r in range(rows):
        for i in range(levels):
            used[r, i] = 0.0
    for v in reads.order:
        used[device[v], level[v]] += case.time[v, device[v]]
    for k in range(len(reads.tensor)):
        a, b = device[reads.source[k]], device[reads.target[k]]
        if reads.share[k] > 0.0 and a != b:
            for x in range(resources):
                if reads.uses[x, a, b]:
                    used[devices + x, level[reads.source[k]]] += reads.share[k] * reads.move[reads.tensor[k], a, b]
    for r in range(devices + resources):
        for i in range(levels - 2, -1, -1):
            used[r, i] += used[r, i + 1]
    for r in range(devices + resources):
        used[r, 0] += case.taken[r]


@kernel()
def _prices(reads: Reads, weight: Floats, work: Floats, transfer: Floats) -> None:
    """Prices from weights: a second at a level counts for this level and all below it."""
    devices, levels = work.shape
    for i in range(levels):
        for d in range(devices):
            work[d, i] = weight[d, i] + (work[d, i - 1] if i else 0.0)
        for a in range(devices):
            for b in range(devices):
                transfer[a, b, i] = transfer[a, b, i - 1] if i else 0.0
                for x in range(reads.uses.shape[0]):
                    if reads.uses[x, a, b]:
                        transfer[a, b, i] += weight[devices + x, i]


@kernel()
def _sent(case: Case, reads: Reads, k: int, a: int, b: int) -> float:
    """What a read from device ``a`` by ``b`` costs beside its work."""
    if a == b or reads.share[k] <= 0.0 or not case.paid[reads.tensor[k]]:
        return 0.0
    return float(reads.share[k] * reads.move[reads.tensor[k], a, b] * case.ways[a, b])


@kernel()
def _dearest(case: Case, reads: Reads) -> float:
    """The most that nodes and transfers may cost beside their work."""
    devices, out = case.time.shape[1], case.sent
    for v in range(len(case.time)):
        most = 0.0
        for d in range(devices):
            if case.time[v, d] < np.inf:
                most = max(most, case.price[v, d])
        out += most
    for k in range(len(reads.tensor)):
        most = 0.0
        for a in range(devices):
            for b in range(devices):
                if reads.move[reads.tensor[k], a, b] < np.inf:
                    most = max(most, _sent(case, reads, k, a, b))
        out += most
    return float(out)


@kernel(allocates=True)
def raised(
    case: Case, reads: Reads, weight: Floats, known: float, latency: float, enough: float, before: int, steps: int,
    length: float, device: Integers,
) -> float:  # fmt: skip
    """A lower bound on the latency of a case and the prices of its nodes, at least ``known``, after so many steps that
    change ``weight``, which adds up to 1.

    ``latency``: proven for the latency alone; ``before``: steps that were made already.  It ends early with a bound of
    ``enough``.  ``device`` n: where nodes are in the placement of the best bound.
    """
    nodes, devices = case.time.shape
    rows, levels = weight.shape
    work, transfer = np.empty((devices, levels)), np.empty((devices, devices, levels))
    used, at, level = np.empty((rows, levels)), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    priced, dearest, best = case.sent, _dearest(case, reads), known
    for v in range(nodes):
        at[v] = max(reads.only[v], 0)
        if reads.only[v] >= 0:
            priced += case.price[v, at[v]]
    for step in range(before, before + steps):
        if best >= enough:
            break
        latency = max(latency, best - dearest)
        _prices(reads, weight, work, transfer)
        if least_priced(case, reads, work, transfer, at, level) == np.inf:
            return np.inf
        _use(case, reads, at, level, used)
        bound, most = priced, 0.0
        for v in reads.order:
            bound += case.price[v, at[v]]
        for k in range(len(reads.tensor)):
            bound += _sent(case, reads, k, at[reads.source[k]], at[reads.target[k]])
        for r in range(rows):
            for i in range(levels):
                used[r, i] += min(case.around[r, i], latency)  # what is around nothing counts no more than is proven
                bound += weight[r, i] * used[r, i]
                most = max(most, used[r, i])
        if bound > best:
            best = bound
            for v in range(nodes):
                device[v] = at[v]
        if most <= 0.0:
            break
        total = 0.0
        for r in range(rows):
            for i in range(levels):
                weight[r, i] *= np.exp(length / np.sqrt(1.0 + step) * (used[r, i] / most - 1.0))
                total += weight[r, i]
        for r in range(rows):
            for i in range(levels):
                weight[r, i] /= total
    return float(best)
