"""Random problems of plans as plain data, and what their stages cost, in fractions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans.instance import Exchange, Options, PlanInstance, PlanLimits

EXCHANGES: tuple[Exchange, ...] = ("sample", "round", "batch")


@dataclass(frozen=True)
class Option:
    """One way to run a unit: seconds, seconds to send its weights, bytes in flight, bytes once, and bytes that copies
    divide among them."""

    degree: int
    time: int
    weights: int
    stash: int
    memory: int
    sharded: int = 0


@dataclass(frozen=True)
class Data:
    """A problem as plain data: options per kind, kinds of units, edges with seconds to read and to write by degree."""

    options: list[list[Option]]
    kind: list[int]
    edges: list[tuple[int, int]]
    reading: dict[tuple[int, int], int]
    writing: dict[tuple[int, int], int]
    degrees: tuple[int, ...]
    copies: tuple[int, ...]
    devices: int
    capacity: int
    microbatches: int
    exchange: Exchange
    traffic: int
    limits: PlanLimits | None = None
    held: int = 0

    def in_flight(self, copies: int, together: int) -> int:
        """Samples that each copy of a stage holds; ``together``: copies of it and of all later ones."""
        return -(-(self.held or together) // copies)

    def instance(self) -> PlanInstance:
        """The same as arrays."""
        rows = [(k, option) for k, options in enumerate(self.options) for option in options]
        columns = ("time", "weights", "stash", "memory", "sharded")
        options = Options(
            np.array([option.degree for _, option in rows], dtype=np.int64),
            np.array([k for k, _ in rows], dtype=np.int64),
            *(np.array([getattr(option, name) for _, option in rows], dtype=float) for name in columns),
        )  # fmt: skip
        source, target = np.array(self.edges, dtype=np.int64).reshape(-1, 2).T
        costs = [
            np.array([[known[t, e] for e in range(len(self.edges))] for t in self.degrees], dtype=float)
            for known in (self.reading, self.writing)
        ]
        shape = (len(self.degrees), len(self.edges))
        return PlanInstance(
            np.array(self.kind), np.arange(len(self.kind)), options, source, (np.arange(len(source)), target),
            costs[0].reshape(shape), costs[1].reshape(shape), source, target, self.degrees, self.copies, self.devices,
            float(self.capacity), self.microbatches, self.exchange, float(self.traffic), self.limits, self.held,
        )  # fmt: skip


def drawn(seed: int) -> Data:
    """A random problem: awkward where it may be (missing degrees, free options, unlike weights, full memory)."""
    rng = random.Random(seed)
    degrees = tuple(sorted(rng.sample((1, 2, 3, 4), rng.randint(1, 3))))
    kinds = rng.randint(1, 3)
    alike = rng.random() < 0.5
    options = []
    for _ in range(kinds):
        own = []
        for degree in degrees:
            weights, sharded = rng.randint(0, 3), rng.choice((0, 0, 0, rng.randint(1, 9)))
            for _ in range(rng.choice((0, 1, 1, 2, 2, 3)) if degree > degrees[0] else rng.randint(1, 3)):
                sent = weights if alike else rng.randint(0, 3)
                own.append(Option(degree, rng.randint(0, 12), sent, rng.randint(0, 6), rng.randint(0, 9), sharded))
                if len(own) > 1 and rng.random() < 0.3:  # as quick as the one before, or as large with one sample
                    known, last = own[-2], own[-1]
                    same_size = replace(last, memory=max(0, known.stash + known.memory - last.stash))
                    own[-1] = rng.choice((replace(last, time=known.time), same_size))
        options.append(own)
    units = rng.randint(1, 5)
    edges = [(u, v) for v in range(units) for u in range(v) if rng.random() < 0.45]
    microbatches = rng.randint(1, 6)
    exchange = rng.choice(EXCHANGES)
    allowed = range(1, microbatches + 1) if exchange != "batch" else [
        r for r in range(1, microbatches + 1) if microbatches % r == 0]  # fmt: skip
    table = {(t, e): rng.randint(0, 4) for t in degrees for e in range(len(edges))}
    other = table if rng.random() < 0.5 else {key: rng.randint(0, 4) for key in table}
    return Data(
        options, [rng.randrange(kinds) for _ in range(units)], edges, table, other, degrees, tuple(allowed),
        rng.randint(1, 6), rng.randint(4, 45), microbatches, exchange, rng.choice((1, 4)),
    )  # fmt: skip


def load(data: Data, stage: frozenset[int], degree: int, copies: int, chosen: dict[int, Option]) -> Fraction:
    """The load of each device of a stage."""
    time = Fraction(sum(option.time for option in chosen.values()))
    for e, (u, v) in enumerate(data.edges):
        if v in stage and u not in stage:
            time += data.reading[degree, e]
        if u in stage and v not in stage:
            time += data.writing[degree, e]
    sent = Fraction(data.traffic * (copies - 1) * sum(option.weights for option in chosen.values()), copies)
    period = {"sample": 1, "round": copies, "batch": data.microbatches}[data.exchange]
    return time / copies + sent / period


def occupied(options: Iterable[Option], in_flight: int, copies: int) -> Fraction:
    """Bytes on each device of a stage."""
    return sum((o.stash * in_flight + o.memory + Fraction(o.sharded, copies) for o in options), Fraction(0))


def stages_before(data: Data, behind: frozenset[int]) -> Iterator[frozenset[int]]:
    """What may come right before the units of later stages: sets of units whose readers are in it or behind it."""
    free = [u for u in range(len(data.kind)) if u not in behind]
    for chosen in product((False, True), repeat=len(free)):
        stage = frozenset(u for u, taken in zip(free, chosen, strict=True) if taken)
        if stage and all(v in stage or v in behind for u, v in data.edges if u in stage):
            yield stage
