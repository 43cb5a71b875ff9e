"""How long tensors take from device to device, over direct links or several hops."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers
from placedsl.machine.machine import Link, Machine
from placedsl.records import dataclass


@dataclass(frozen=True, eq=False)
class TransferTimes:
    """Transfer times between devices.  t tensors, D devices, h directed links.

    ``latency``    D x D seconds: the latencies along the route, which every tensor takes; inf where there is no route, 0
                   on the diagonal
    ``inverse_bandwidth``   D x D seconds per unit of ``size``, by the slowest link of the route
    ``size``       t: bytes, or the graph's transfer times
    ``explicit``   t x D x D seconds where times are known without links; else of shape (0, D, D)
    ``hop_start``, ``hop``   the directed links of the route from a to b: ``hop[hop_start[a * D + b]:hop_start[a * D + b + 1]]``
    ``hop_ends``   h x 2: the devices that a directed link leads from and to
    """  # noqa: E501 - one line an array

    latency: Floats
    inverse_bandwidth: Floats
    size: Floats
    explicit: Floats
    hop_start: Integers
    hop: Integers
    hop_ends: Integers

    @property
    def devices(self) -> int:
        """D."""
        return len(self.latency)

    def time(self, tensor: Integers | int, source: Integers | int, target: Integers | int) -> Floats:
        """Seconds that a tensor takes between two devices; the arguments are broadcast."""
        if len(self.explicit):
            out: Floats = self.explicit[tensor, source, target]
            return out
        size = self.size[tensor]
        with np.errstate(invalid="ignore"):
            along = np.where(size > 0.0, size * self.inverse_bandwidth[source, target], 0.0)
        return np.asarray(self.latency[source, target] + along)

    def hops(self, source: int, target: int) -> Integers:
        """The directed links of a route; empty within a device."""
        pair = source * self.devices + target
        return self.hop[self.hop_start[pair] : self.hop_start[pair + 1]]


def transfer_times(machine: Machine, size: Floats, explicit: Floats | None = None) -> TransferTimes:
    """Routes by the widest way: the largest slowest bandwidth, then the fewest hops, then the least latency.

    ``explicit``: t x D x D times that need no links; each pair then has a link of its own.
    """
    devices = len(machine.devices)
    if explicit is not None:
        bandwidth, delay = np.full((devices, devices), np.inf), np.zeros((devices, devices))
    else:
        bandwidth, delay = direct_links(machine)
    np.fill_diagonal(bandwidth, 0.0)
    ends = np.argwhere(bandwidth > 0.0)
    number = np.full((devices, devices), -1)
    number[ends[:, 0], ends[:, 1]] = np.arange(len(ends))
    latency, inverse_bandwidth = np.full((devices, devices), np.inf), np.zeros((devices, devices))
    np.fill_diagonal(latency, 0.0)
    direct = number >= 0
    latency[direct], inverse_bandwidth[direct] = delay[direct], 1.0 / bandwidth[direct]
    length, further = direct.astype(np.int64), dict[tuple[int, int], list[int]]()
    for source in np.flatnonzero(direct.sum(axis=1) < devices - 1).tolist():
        ways, width, along = _routes(source, bandwidth, delay)
        for target, way in ways.items():
            further[source, target] = way
            length[source, target] = len(way) - 1
            latency[source, target], inverse_bandwidth[source, target] = along[target], 1.0 / width[target]
    start = np.concatenate(([0], np.cumsum(length)))
    hop = np.empty(start[-1], dtype=np.int64)
    hop[start[:-1][direct.ravel()]] = number[direct]
    for (source, target), way in further.items():
        first = start[source * devices + target]
        hop[first : first + len(way) - 1] = [number[a, b] for a, b in itertools.pairwise(way)]
    if explicit is None:
        explicit = np.zeros((0, devices, devices))
    return TransferTimes(
        latency, inverse_bandwidth, size, explicit, start, hop, ends.astype(np.int64).reshape(-1, 2)
    )  # fmt: skip


def direct_links(machine: Machine) -> tuple[Floats, Floats]:
    """D x D bandwidths (0: no direct way) and latencies: a link that is declared, else the interconnect.

    Of several links the one that names single devices counts more than one of families, then the later one.  Over
    clusters the slowest of the interconnects on the way counts.
    """
    bandwidth, latency = _interconnects(machine)
    named = {d.name for d in machine.devices}
    families = {d.family for d in machine.devices if d.family != d.name}
    for link in sorted(machine.links, key=lambda one: sum(end in named - families for end in (one.source, one.target))):
        sources, targets = _members(machine, link.source), _members(machine, link.target)
        for a, b in [(a, b) for a in sources for b in targets if a != b]:
            for x, y in ((a, b), (b, a)) if link.both else ((a, b),):
                bandwidth[x, y], latency[x, y] = link.bandwidth, link.latency
    return bandwidth, latency


def between_accelerators(machine: Machine) -> bool:
    """Whether a link is declared from one accelerator to another one."""
    kind = [device.kind for device in machine.devices]
    ends = [(_members(machine, link.source), _members(machine, link.target)) for link in machine.links]
    return any(a != b and kind[a] == kind[b] == "accelerator" for some, others in ends for a in some for b in others)


def alike(times: TransferTimes) -> Integers:
    """D labels from 0: devices of one label may change places without changing a time between two devices.

    Whether two devices may change places is an equivalence, so each is compared with the first of a label.
    """
    devices = times.devices
    out, firsts = np.empty(devices, dtype=np.int64), list[int]()
    for d in range(devices):
        found = next((k for k, first in enumerate(firsts) if _may_change_places(times, first, d)), None)
        if found is None:
            found = len(firsts)
            firsts.append(d)
        out[d] = found
    return out


def _may_change_places(times: TransferTimes, a: int, b: int) -> bool:
    swapped = np.arange(times.devices)
    swapped[[a, b]] = b, a
    tables = (times.explicit,) if len(times.explicit) else (times.latency, times.inverse_bandwidth)
    return all(
        np.array_equal(table[..., swapped[a], swapped], table[..., a, :])
        and np.array_equal(table[..., swapped, swapped[a]], table[..., :, a])
        for table in tables
    )


def _members(machine: Machine, end: str) -> list[int]:
    """The devices that one end of a link names."""
    return [i for i, d in enumerate(machine.devices) if end in (d.name, d.family)]


def _interconnects(machine: Machine) -> tuple[Floats, Floats]:
    """D x D bandwidths (0: none) and latencies of the slowest interconnect that a transfer crosses without links of its
    own; of equally slow ones, the first on the way."""
    devices, clusters = len(machine.devices), machine.clusters
    inside = np.full((machine.levels, devices), -1)
    for position, cluster in enumerate(clusters):
        if not cluster.alone:
            inside[cluster.level - 1, list(cluster.devices)] = position
    # Of each cluster, the machine last: its own interconnect, and what it reaches others by; infinite: it has none.
    own = _of_links([*(cluster.interconnect for cluster in clusters), None])
    around = _of_links([machine.around(position) for position in (*range(len(clusters)), -1)])
    bandwidth, latency = np.full((devices, devices), np.inf), np.zeros((devices, devices))
    outer = np.full((devices, devices), -1)
    for held in inside:
        outer = np.where((held[:, None] == held) & (held >= 0), held, outer)
    for sending in (True, False):
        for held in inside[::-1]:
            at = held[:, None] if sending else held[None, :]
            slower = (held[:, None] != held) & (own[0][at] < bandwidth)
            bandwidth, latency = np.where(slower, own[0][at], bandwidth), np.where(slower, own[1][at], latency)
    slower = around[0][outer] < bandwidth
    bandwidth, latency = np.where(slower, around[0][outer], bandwidth), np.where(slower, around[1][outer], latency)
    none = np.isinf(around[0][outer]) | np.eye(devices, dtype=bool)
    return np.where(none, 0.0, bandwidth), np.where(none, 0.0, latency)


def _of_links(links: Sequence[Link | None]) -> tuple[Floats, Floats]:
    """Bandwidths (infinite where there is no link) and latencies."""
    return (
        np.array([np.inf if link is None else link.bandwidth for link in links]),
        np.array([0.0 if link is None else link.latency for link in links]),
    )


def _widths(source: int, bandwidth: Floats) -> Floats:
    """The largest bandwidth that a route to each device can have all along (0: there is none)."""
    width = np.array(bandwidth[source])
    width[source] = np.inf
    open_ = np.ones(len(bandwidth), dtype=bool)
    while open_.any():
        at = int(np.argmax(np.where(open_, width, -1.0)))
        open_[at] = False
        width = np.where(open_, np.maximum(width, np.minimum(width[at], bandwidth[at])), width)
    return width


def _shortest(source: int, links: Booleans, latency: Floats) -> tuple[list[int], list[tuple[float, float]]]:
    """Fewest hops, then least latency, over these links: where each device is reached from, and what it takes."""
    devices = len(links)
    via = [-1] * devices
    best = [(np.inf, np.inf)] * devices
    best[source] = (0.0, 0.0)
    open_ = set(range(devices))
    while open_:
        at = min(open_, key=lambda d: (best[d], d))
        open_.remove(at)
        for b in open_:
            way = (best[at][0] + 1.0, best[at][1] + float(latency[at, b]))
            if links[at, b] and way < best[b]:
                best[b], via[b] = way, at
    return via, best


def _routes(source: int, bandwidth: Floats, latency: Floats) -> tuple[dict[int, list[int]], Floats, Floats]:
    """The devices on the way to each other device, how wide the way is, and its latency."""
    width = np.where(bandwidth[source] > 0.0, bandwidth[source], _widths(source, bandwidth))
    delay = np.array(latency[source])
    ways = {int(b): [source, int(b)] for b in np.flatnonzero(bandwidth[source] > 0.0)}
    far = [b for b in np.flatnonzero(width > 0.0).tolist() if b not in ways and b != source]
    for least in sorted({float(width[b]) for b in far}):
        via, best = _shortest(source, bandwidth >= least, latency)
        for b in far:
            if width[b] == least:
                way = [b]
                while way[-1] != source:
                    way.append(via[way[-1]])
                ways[b], delay[b] = way[::-1], best[b][1]
    return ways, width, delay
