"""Small problems of schedule dataflow, and what is true of them, by definition and by brute force."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, build
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, schedule_of, values_of
from placedsl.machine.routes import TransferTimes

#: The readings of congestion, alone and together.
READINGS: list[set[str]] = [set(), {"port"}, {"link"}, {"port", "link"}]


@dataclass
class Sample:
    """A problem in plain terms: ``reads`` pairs of a tensor and its reader, ``way`` the links from device to device."""

    time: np.ndarray
    memory: np.ndarray
    room: np.ndarray
    producer: list[int]
    reads: list[tuple[int, int]]
    moves: TransferTimes
    way: dict[tuple[int, int], list[int]]
    congestion: set[str]
    sequential: bool
    groups: list[np.ndarray] = field(default_factory=list)

    @property
    def instance(self) -> SchedulingInstance:
        return build(
            time=self.time, memory=self.memory, memory_limit=self.room,
            producer=np.array(self.producer, dtype=np.int64),
            edge_tensor=np.array([t for t, _ in self.reads], dtype=np.int64),
            edge_target=np.array([v for _, v in self.reads], dtype=np.int64),
            moves=self.moves, congestion=self.congestion, sequential=self.sequential, groups=self.groups,
        )  # fmt: skip

    def moved(self, tensor: int, a: int, b: int) -> float:
        return float(self.moves.time(tensor, a, b))

    def shared(self, a: int, b: int) -> set[tuple[str, int]]:
        """What a transfer from a to b has to itself."""
        ports = {("out", a), ("in", b)} if "port" in self.congestion else set()
        return ports | ({("link", k) for k in self.way[a, b]} if "link" in self.congestion else set())

    def transfers(self, device: list[int]) -> list[tuple[int, int]]:
        pairs = {(t, device[v]) for t, v in self.reads if device[v] != device[self.producer[t]]}
        return sorted(pairs)

    def allowed(self, device: list[int]) -> bool:
        nodes = range(len(device))
        if not all(np.isfinite(self.time[v, device[v]]) for v in nodes):
            return False
        held = np.bincount(device, weights=self.memory, minlength=len(self.room))
        alike = all(len({device[v] for v in nodes if g[v] == label}) == 1 for g in self.groups for label in set(g))
        return bool((held <= self.room).all()) and alike


def sample(seed: int, nodes: int = 5, devices: int = 2, **fixed: object) -> Sample:
    """A random problem; ``fixed`` says what is not left to chance."""
    rng = np.random.default_rng(seed)
    producer: list[int] = []
    reads: list[tuple[int, int]] = []
    for u in range(nodes - 1):
        for _ in range(int(rng.integers(1, 3))):
            later = np.flatnonzero(rng.random(nodes - u - 1) < 1.6 / (nodes - u)) + u + 1
            if len(later):
                reads += [(len(producer), int(v)) for v in later]
                producer.append(u)
    time = rng.integers(0, 6, (nodes, devices)).astype(float)
    if rng.random() < 0.3:
        v = int(rng.integers(nodes))
        time[v, int(rng.integers(devices))] = np.inf
    memory = rng.integers(0, 4, nodes).astype(float)
    room = np.full(devices, np.inf)
    if rng.random() < 0.5:
        room = np.floor(memory.sum() / devices + rng.integers(1, 4, devices))
    way: dict[tuple[int, int], list[int]] = {}
    ends = [(a, b) for a in range(devices) for b in range(devices) if a != b]
    if devices > 2 and rng.random() < 0.5:  # a chain of devices: several hops
        ends = [(a, b) for a, b in ends if abs(a - b) == 1]
    for a, b in itertools.product(range(devices), repeat=2):
        step = 1 if b > a else -1
        chain = [(c, c + step) for c in range(a, b, step)] if a != b else []
        way[a, b] = [ends.index((a, b))] if (a, b) in ends else [ends.index(hop) for hop in chain]
    hops = [way[a, b] for a, b in itertools.product(range(devices), repeat=2)]
    apart = 1.0 - np.eye(devices)
    given = np.zeros((0, devices, devices))
    if rng.random() < 0.3:
        given = rng.integers(0, 5, (len(producer), devices, devices)) * apart
    moves = TransferTimes(
        rng.integers(0, 2, (devices, devices)) * apart, rng.integers(0, 3, (devices, devices)) * apart,
        rng.integers(0, 4, len(producer)).astype(float), given,
        np.cumsum([0, *map(len, hops)]), np.array([k for hop in hops for k in hop], dtype=np.int64), np.array(ends),
    )  # fmt: skip
    groups = [rng.integers(0, nodes, nodes)] if rng.random() < 0.3 else []
    readings = [set(), {"port"}, {"link"}, {"port", "link"}]
    congestion = fixed.get("congestion", readings[int(rng.integers(4))])
    sequential = bool(fixed.get("sequential", rng.random() < 0.7))
    return Sample(time, memory, room, producer, reads, moves, way, congestion, sequential, groups)


def wrong(sample: Sample, device: list[int], start: list[float], sent: dict[tuple[int, int], float]) -> list[str]:
    """What a schedule violates, rule by rule."""
    out = [] if sample.allowed(device) else ["the placement"]
    end = [s + sample.time[v, device[v]] for v, s in enumerate(start)]
    for t, v in sample.reads:
        u, d = sample.producer[t], device[v]
        there = end[u] if device[u] == d else sent[t, d] + sample.moved(t, device[u], d)
        if start[v] < there - 1e-9:
            out.append(f"{v} does not wait for tensor {t}")
    for (t, d), leaves in sent.items():
        if leaves < end[sample.producer[t]] - 1e-9:
            out.append(f"tensor {t} leaves for {d} before it is made")
    busy = [({("device", device[v])}, start[v], end[v]) for v in range(len(start)) if sample.sequential]
    for (t, d), leaves in sent.items():
        a = device[sample.producer[t]]
        busy.append((sample.shared(a, d), leaves, leaves + sample.moved(t, a, d)))
    for (one, s, e), (other, r, f) in itertools.combinations(busy, 2):
        if one & other and min(e - s, f - r) > 0.0 and min(e, f) - max(s, r) > 1e-9:
            out.append(f"{one} and {other} overlap from {max(s, r)}")
    return out


def replayed(
    sample: Sample, device: list[int], start: list[float], sent: dict[tuple[int, int], float]
) -> tuple[list[float], dict[tuple[int, int], float]]:
    """The earliest times of a schedule whose sequences on devices and links are those of the given times.

    Time goes on from event to event; at each, whatever is first in all its queues and has what it needs begins.
    """
    items: list[tuple[str, object]] = [("node", v) for v in range(len(start))] + [("sent", p) for p in sent]

    def length(item: tuple[str, object]) -> float:
        if item[0] == "node":
            return float(sample.time[item[1], device[item[1]]])
        t, d = item[1]
        return sample.moved(t, device[sample.producer[t]], d)

    def held(item: tuple[str, object]) -> set[tuple[str, int]]:
        if length(item) == 0.0:
            return set()
        if item[0] == "node":
            return {("device", device[item[1]])} if sample.sequential else set()
        t, d = item[1]
        return sample.shared(device[sample.producer[t]], d)

    def given(item: tuple[str, object]) -> float:
        return start[item[1]] if item[0] == "node" else sent[item[1]]

    queues: dict[tuple[str, int], list[tuple[str, object]]] = {}
    for item in sorted(items, key=given):
        for resource in held(item):
            queues.setdefault(resource, []).append(item)

    def needs(item: tuple[str, object]) -> list[tuple[str, object]]:
        if item[0] == "sent":
            return [("node", sample.producer[item[1][0]])]
        v = item[1]
        here = [t for t, w in sample.reads if w == v]
        return [
            ("node", sample.producer[t]) if device[sample.producer[t]] == device[v] else ("sent", (t, device[v]))
            for t in here
        ]

    begun: dict[tuple[str, object], float] = {}
    now = 0.0
    while len(begun) < len(items):
        again = True
        while again:
            again = False
            for item in items:
                if item in begun:
                    continue
                before = [q[: q.index(item)] for q in (queues[r] for r in held(item))]
                waits = needs(item) + [other for others in before for other in others]
                if all(w in begun and begun[w] + length(w) <= now + 1e-12 for w in waits):
                    begun[item] = now
                    again = True
        ends = [begun[i] + length(i) for i in begun if begun[i] + length(i) > now + 1e-12]
        if len(begun) < len(items):
            now = min(ends)
    return [begun["node", v] for v in range(len(start))], {p: begun["sent", p] for p in sent}


def optimum(sample: Sample) -> float:
    """The least latency over all placements and all orders of nodes and transfers (inf: no placement)."""
    nodes, devices = sample.time.shape
    best = np.inf
    for device in itertools.product(range(devices), repeat=nodes):
        if sample.allowed(list(device)):
            best = min(best, _least(sample, list(device), best))
    return best


def _least(sample: Sample, device: list[int], best: float) -> float:
    nodes = len(device)
    transfers = sample.transfers(device)
    here = [[t for t, w in sample.reads if w == v] for v in range(nodes)]
    rest = [0.0] * nodes  # what follows each node at least
    for u in reversed(range(nodes)):
        for t, v in sample.reads:
            if sample.producer[t] == u:
                moving = 0.0 if device[u] == device[v] else sample.moved(t, device[u], device[v])
                rest[u] = max(rest[u], moving + sample.time[v, device[v]] + rest[v])
    seen: set[object] = set()

    def go(end: dict[int, float], there: dict[tuple[int, int], float], free: dict[tuple[str, int], float]) -> None:
        nonlocal best
        late = max([e + rest[v] for v, e in end.items()], default=0.0)
        state = (tuple(sorted(end.items())), tuple(sorted(there.items())), tuple(sorted(free.items())))
        if late >= best or state in seen:
            return
        seen.add(state)
        if len(end) == nodes:
            best = late
            return
        for v in range(nodes):
            if v in end:
                continue
            keys = [(t, device[v]) if device[sample.producer[t]] != device[v] else sample.producer[t] for t in here[v]]
            if not all((k in there) if isinstance(k, tuple) else (k in end) for k in keys):
                continue
            ready = max([there[k] if isinstance(k, tuple) else end[k] for k in keys], default=0.0)
            span, spot = sample.time[v, device[v]], ("device", device[v])
            more = dict(free)
            if sample.sequential and span > 0.0:
                ready = max(ready, free.get(spot, 0.0))
                more[spot] = ready + span
            go(end | {v: ready + span}, there, more)
            if span == 0.0 or not sample.sequential:
                return  # it takes nothing from others
        for t, d in transfers:
            u = sample.producer[t]
            if (t, d) in there or u not in end:
                continue
            span, ready, more = sample.moved(t, device[u], d), end[u], dict(free)
            if span > 0.0:
                shared = sample.shared(device[u], d)
                ready = max([ready, *(free.get(r, 0.0) for r in shared)])
                more |= dict.fromkeys(shared, ready + span)
            go(end, there | {(t, d): ready + span}, more)
            if span == 0.0 or not sample.shared(device[u], d):
                return

    go({}, {}, {})
    return best


def valid(case: Sample, sequence: OperatorSequence) -> float:
    """The latency of an order that breaks no rule."""
    latency, times = schedule_of(case.instance, sequence)
    values = values_of(times)
    start = [values["start"][v,] for v in range(len(times.begun))]
    assert wrong(case, sequence.device.tolist(), start, values["sent"]) == []
    return latency
