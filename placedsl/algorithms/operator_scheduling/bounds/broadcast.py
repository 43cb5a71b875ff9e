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

Where no node with a single device sends a tensor to many, the cases are the devices of the node with most reads, if
there are few: all its reads are counted then.

Cases that begin alike are a branch, in which the tensor may reach other devices after the next arrival; the branch with
the least bound is divided.  Of devices that may change places one is the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.broadcast_kernel import Case, Reads, raised
from placedsl.algorithms.operator_scheduling.bounds.counted_reads import counted_reads, seconds_sent, unreachable
from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import heads, paths_only, single_device, tails
from placedsl.algorithms.operator_scheduling.decomposition.symmetry import alike_devices
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, floats, integers, moves
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.tolerances import LIMIT_SLACK

#: Fewer readers are left to other bounds.
_FEWEST_READERS = 3
#: The cases are the devices of a node with several if it has no more of them.
_MOST_HOMES = 8
#: Steps of the branch with the least bound, at first and each further time, and of all together; the length of the
#: first.  So many turns of a case in a row that gain less than this share are the end.
_FIRST, _TURN, _STEPS, _LENGTH, _IDLE, _LEAST_GAIN = 10, 20, 1500, 3.0, 2, 1e-3
#: Weights taken from another case count as those of so many steps; the share of equal weights that is mixed in.
_LATER, _MIXED = 10, 0.3
#: More seconds than any schedule takes; the share of the weights that what is proven of the latency has at first, where
#: nodes cost something beside it.
_ANY, _PROVEN = 1e300, 0.3


@dataclass
class _Branch:
    """Cases that begin alike: the tensor reaches the devices after the first, its producer's, in this order.

    ``more``: others may receive it later, on a level of their own.  ``device`` n: where nodes are in the placement
    behind the bound.  ``idle``: turns in a row that gained next to nothing.
    """

    devices: tuple[int, ...]
    more: bool
    reads: Reads
    case: Case
    bound: float
    weights: Floats
    device: Integers
    steps: int
    turns: int = 0
    idle: int = 0


class Learned:
    """What blocks of as many nodes, such as the layers of a model, have to tell one another: the weights of their
    cases, and the branches that were divided.
    """

    def __init__(self) -> None:
        self.weights: dict[tuple[tuple[int, ...], bool], Floats] = {}
        self.divided: set[tuple[int, ...]] = set()


def broadcast_bound(instance: SchedulingInstance, known: float, enough: float, learned: Learned | None = None) -> float:
    """A lower bound on the latency in seconds of an instance in which a node with a single device sends a tensor to
    many; ``known`` where there is none.

    ``known``: what is proven; ``enough``: a bound that need not be exceeded.
    """
    if not fits(instance):
        return known
    cases = Cases(instance, known, enough, learned)
    cases.improve(known, _STEPS)
    return max(known, min(cases.bound, enough) * (1.0 - LIMIT_SLACK))


def fits(instance: SchedulingInstance) -> bool:
    """Whether work takes time, and devices do one thing at a time."""
    return bool(instance.sequential and (np.isfinite(instance.time) & (instance.time > 0.0)).any())


class Cases:
    """Orders in which a tensor reaches devices, those that begin alike as one branch: all that a schedule may have.

    ``broadcast``: the tensor, -1 if no node with a single device sends one to many; then there is a case for each
    device of the node with most reads.
    ``enough``: a case with this bound or a higher one is of no interest.  ``among``: D, the least of the devices that
    are alike elsewhere; only such devices have the same prices.
    ``paid``: flags of the tensors whose transfers may cost something (None: none).
    """

    def __init__(
        self, instance: SchedulingInstance, known: float, enough: float = np.inf, learned: Learned | None = None,
        among: Integers | None = None, paid: Booleans | None = None,
    ) -> None:  # fmt: skip
        self.instance, self.enough = instance, enough
        self.learned = learned or Learned()
        only, move = np.asarray(single_device(instance)), moves(instance)
        self.broadcast = _broadcast(instance, only, move)
        alike = alike_devices(instance)
        self._alike = alike if among is None else _both(alike, among)
        self._hub, homes = (-1, []) if self.broadcast >= 0 else _hub(instance, only, self._alike)
        if self._hub >= 0:
            only = only.copy()
            only[self._hub] = homes[0]
        self.reads = counted_reads(instance, only, move, self.broadcast)
        self._transfers = _around_transfers(instance, self.reads.uses)
        self._price, self._ways = np.zeros(instance.time.shape), np.zeros((instance.devices, instance.devices))
        self._paid = np.zeros(len(instance.producer), dtype=np.bool_) if paid is None else paid
        self._branches: list[_Branch] = []
        if self.broadcast >= 0:
            self._begin((int(only[instance.producer[self.broadcast]]),), instance.devices > 1, known)
        else:
            for home in homes:
                self._begin((home,), False, known)
            if not homes:
                self._begin((), False, known)

    @property
    def bound(self) -> float:
        """What is proven for all cases (inf: there is none below ``enough``)."""
        return min((branch.bound for branch in self._branches), default=np.inf)

    @property
    def device(self) -> Integers:
        """n: where nodes are in the case with the least bound."""
        return min(self._branches, key=lambda branch: branch.bound).device

    @property
    def sent(self) -> Floats:
        """Seconds that tensors with a price occupy each resource in the placement of :attr:`device`."""
        branch = min(self._branches, key=lambda branch: branch.bound)
        reads = branch.reads
        out = seconds_sent(reads, branch.device, self._paid)
        if self.broadcast >= 0 and self._paid[self.broadcast]:
            for d in branch.devices[1:]:
                out[reads.uses[:, branch.devices[0], d]] += reads.move[self.broadcast, branch.devices[0], d]
        return out

    def price(self, price: Floats, latency: float, ways: Floats | None = None) -> None:
        """Have nodes cost something on devices (n x D) beside the latency, of which ``latency`` is proven, and each
        second of a transfer between two devices as much as ``ways`` (D x D) says, None: nothing.
        """
        self._price = price
        if ways is not None:
            self._ways = ways
        for branch in self._branches:
            branch.case, branch.idle, branch.bound = self._with_prices(branch.case, branch.devices), 0, 0.0
            if branch.weights[-1, 0] == 0.0:
                branch.weights *= 1.0 - _PROVEN
                branch.weights[-1, 0] = _PROVEN
            self._raise(branch, latency, 1)

    def improve(self, latency: float, steps: int, divide: bool = True) -> None:
        """Raise the bound in about so many steps; ``latency``: what is proven without prices."""
        while steps > 0:
            now = min(self._branches, key=lambda branch: branch.bound, default=None)
            if now is None or now.bound >= self.enough or (now.idle == _IDLE and not (now.more and divide)):
                return
            if now.more and divide and now.turns:
                self._branches.remove(now)
                self._divide(now.devices, now.bound, now.weights)
                continue
            before, some = now.bound, _TURN if now.turns else _FIRST
            self._raise(now, latency, some)
            now.idle = now.idle + 1 if now.turns and now.bound < before * (1.0 + _LEAST_GAIN) else 0
            now.turns += 1
            self.learned.weights[now.devices, now.more] = now.weights
            steps -= some

    def _divide(self, devices: tuple[int, ...], bound: float, weights: Floats | None) -> None:
        self.learned.divided.add(devices)
        for further, more in _divided(devices, self._alike):
            self._begin(further, more, bound, weights)

    def _begin(self, devices: tuple[int, ...], more: bool, bound: float, before: Floats | None = None) -> None:
        """``before``: the weights of the branch that was divided."""
        if more and devices in self.learned.divided:
            self._divide(devices, bound, before)
            return
        instance, reads = self.instance, self.reads
        if self._hub >= 0:
            instance, reads = _with_hub(instance, reads, self._hub, devices[0])
        case, least = _case(instance, reads, self.broadcast, devices, more, self._transfers)
        if max(least, bound) < self.enough:
            weights = self.learned.weights.get((devices, more), before)
            start, steps = _start(case, weights), 0 if weights is None else _LATER
            branch = _Branch(
                devices,
                more,
                reads,
                self._with_prices(case, devices),
                max(least, bound),
                start,
                integers(np.maximum(reads.only, 0)),
                steps,
            )
            self._branches.append(branch)

    def _with_prices(self, case: Case, devices: tuple[int, ...]) -> Case:
        sent = 0.0
        if self.broadcast >= 0 and self._paid[self.broadcast]:
            there = list(devices[1:])
            sent = float((self.reads.move[self.broadcast, devices[0], there] * self._ways[devices[0], there]).sum())
        return case._replace(price=self._price, ways=self._ways, paid=self._paid, sent=sent)

    def _raise(self, branch: _Branch, latency: float, steps: int) -> None:
        branch.bound = raised(
            branch.case, branch.reads, branch.weights, branch.bound, latency, self.enough, branch.steps, steps, _LENGTH,
            branch.device,
        )  # fmt: skip
        branch.steps += steps


def _both(alike: Integers, also: Integers) -> Integers:
    """D: the least number of the devices that each is like in both ways."""
    _, first, place = np.unique(alike * len(alike) + also, return_index=True, return_inverse=True)
    return integers(first[place])


def _divided(devices: tuple[int, ...], alike: Integers) -> list[tuple[tuple[int, ...], bool]]:
    """What follows after the devices that a tensor has reached: nothing, or one of each kind of the others."""
    rest = [d for d in range(len(alike)) if d not in devices]
    first = {int(alike[d]): d for d in reversed(rest)}
    return [(devices, False), *(((*devices, d), len(rest) > 1) for d in first.values())]


def _broadcast(instance: SchedulingInstance, only: Integers, move: Floats) -> int:
    """The tensor of a node with a single device that takes longest for all its readers, -1 if there is none."""
    readers = np.diff(instance.reader_start)
    longest = np.where(np.isfinite(move), move, 0.0).max(axis=(1, 2), initial=0.0) * readers
    longest[(only[instance.producer] < 0) | (readers < _FEWEST_READERS)] = 0.0
    return int(longest.argmax()) if longest.max(initial=0.0) > 0.0 else -1


def _hub(instance: SchedulingInstance, only: Integers, alike: Integers) -> tuple[int, list[int]]:
    """The node with several devices that has most reads, and these devices, one of each kind; -1 if there is none."""
    tensor = np.repeat(np.arange(len(instance.producer)), np.diff(instance.reader_start))
    ends = np.concatenate([instance.producer[tensor], instance.reader])
    reads = np.where(only < 0, np.bincount(ends, minlength=instance.nodes), 0)
    hub = int(reads.argmax())
    homes = np.unique(alike[np.isfinite(instance.time[hub])]).tolist()
    return (hub, homes) if reads[hub] >= _FEWEST_READERS and len(homes) <= _MOST_HOMES else (-1, [])


def _with_hub(
    instance: SchedulingInstance, reads: Reads, hub: int, device: int
) -> tuple[SchedulingInstance, Reads]:  # fmt: skip
    """The instance with a node on one device, and its reads."""
    time, only = instance.time.copy(), reads.only.copy()
    time[hub] = np.inf
    time[hub, device], only[hub] = instance.time[hub, device], device
    return instance._replace(time=time), reads._replace(only=only)


def _around_transfers(instance: SchedulingInstance, uses: Booleans) -> Floats:
    """2 x resources seconds before and after all transfers that occupy each."""
    source, target = instance.producer, instance.reader
    head, tail = _heads_and_tails(instance)
    end = (head + instance.time)[source].min(axis=0, initial=np.inf)
    left = (instance.time + tail)[target].min(axis=0, initial=np.inf)
    before = np.where(uses, end[None, :, None], np.inf).min(axis=(1, 2), initial=np.inf)
    after = np.where(uses, left[None, None, :], np.inf).min(axis=(1, 2), initial=np.inf)
    return np.stack([before, after])


def _heads_and_tails(instance: SchedulingInstance) -> tuple[Floats, Floats]:
    """n x D seconds before the start and after the end of each node, by paths."""
    every, paths = np.full(instance.nodes, -1, dtype=np.int64), paths_only(instance)
    return heads(instance, every, paths), tails(instance, every, paths, np.zeros(instance.time.shape))


def _case(
    instance: SchedulingInstance, reads: Reads, broadcast: int, devices: tuple[int, ...], more: bool, transfers: Floats
) -> tuple[Case, float]:  # fmt: skip
    """A case, and the latency that it has at least by paths (inf: there is none).

    ``devices``: that of the producer and those that the tensor reaches, in that order; on other ones nodes read it only
    with ``more``, after its arrival at the next.  Without a tensor (-1) there are none, and one level.
    """
    time = instance.time.copy()
    floor, taken = np.zeros(time.shape, dtype=np.int64), np.zeros(instance.devices + instance.resources)
    if unreachable(reads):
        least = np.inf
    alone = np.flatnonzero(reads.only >= 0)
    np.add.at(taken, reads.only[alone], time[alone, reads.only[alone]])
    read = _readers(instance, broadcast)
    rest = np.array([d for d in range(instance.devices) if d not in devices], dtype=np.int64)
    if not more:
        time[np.ix_(read, rest)] = np.inf
    head, tail = _heads_and_tails(instance._replace(time=time))
    least = float((head + time + tail).min(axis=1).max(initial=0.0))
    arrival = np.zeros(1)
    if broadcast >= 0:
        producer = int(instance.producer[broadcast])
        begins = float((head + time)[producer, devices[0]])
        arrival = _arrivals(reads, broadcast, devices, rest if more else rest[:0], begins)
    for i, d in enumerate(devices[1:], 1):
        floor[read, d] = i
        taken[instance.devices :][reads.uses[:, devices[0], d]] += reads.move[broadcast, devices[0], d]
        least = max(least, float(arrival[i] + (time + tail)[read, d].min()))
    floor[np.ix_(read, rest)] = len(devices)
    runs = np.isfinite(time) & (time > 0.0)
    before = np.concatenate([np.where(runs, head, np.inf).min(axis=0), transfers[0]])
    after = np.concatenate([np.where(runs, tail, np.inf).min(axis=0), transfers[1]])
    around = np.maximum(before[:, None], arrival[None, :]) + after[:, None]
    proven = np.full((1, len(arrival)), np.inf)
    proven[0, 0] = _ANY
    around = np.concatenate([around, proven])
    return without_prices(time, floor, around, taken, len(instance.producer)), least


def without_prices(time: Floats, floor: Integers, around: Floats, taken: Floats, tensors: int) -> Case:
    """A case in which nothing costs anything beside its work."""
    devices = time.shape[1]
    paid = np.zeros(tensors, dtype=np.bool_)
    return Case(time, floor, around, taken, np.zeros(time.shape), np.zeros((devices, devices)), paid, 0.0)


def _start(case: Case, weights: Floats | None) -> Floats:
    """Weights for a case from those of one with as many levels or one less: what waited for the last arrival waits for
    the last two.
    """
    used = np.isfinite(case.around)
    used[-1] &= weights is not None and weights[-1, 0] > 0.0  # not before nodes cost something beside their time
    out = used / max(used.sum(), 1)
    if weights is not None:
        levels = min(used.shape[1], weights.shape[1])
        out *= _MIXED
        out[:, :levels] += weights[:, :levels]
        if used.shape[1] > levels:
            out[:, levels - 1] -= weights[:, levels - 1] / 2.0
            out[:, levels:] += weights[:, levels - 1 :] / 2.0
        out = np.where(used, out, 0.0)
    if not out.any():  # nothing takes time on any device, nor is anything sent
        out[-1, 0] = 1.0
    return floats(out / out.sum())


def _readers(instance: SchedulingInstance, tensor: int) -> Integers:
    """The nodes that read a tensor; none of -1."""
    start = instance.reader_start
    return instance.reader[start[tensor] : start[tensor + 1]] if tensor >= 0 else instance.reader[:0]


def _arrivals(reads: Reads, broadcast: int, devices: tuple[int, ...], later: Integers, begins: float) -> Floats:
    """The earliest arrivals at devices in this order, and at the next of ``later`` if there are any; ``begins``: the
    end of the producer.
    """
    home, receivers = devices[0], devices[1:]
    arrival = np.zeros(len(devices) + (len(later) > 0))

    def arrives(d: int, i: int) -> float:
        """The earliest arrival at a device as the i-th."""
        here = reads.uses[:, home, d]
        waits = [arrival[k] for k, e in enumerate(receivers[: i - 1], 1) if (here & reads.uses[:, home, e]).any()]
        return float(max(arrival[i - 1], max([begins, *waits]) + reads.move[broadcast, home, d]))

    for i, d in enumerate(receivers, 1):
        arrival[i] = arrives(d, i)
    if len(later):
        arrival[-1] = min(arrives(d, len(devices)) for d in later.tolist())
    return arrival
