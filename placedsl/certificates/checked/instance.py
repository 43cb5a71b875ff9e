"""The problem of a certificate: classes of devices, units, and tensors by the units that touch them.

A set of units on a device of a class takes the time of its nodes there, that of moving each tensor of which it has some
of the units and not all, and that of streaming what does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from placedsl.certificates.checked.numbers import SAME, RefusedError, amount, number, position
from placedsl.certificates.checked.orders import acyclic, components


@dataclass(frozen=True)
class Instance:
    """n nodes, c classes of devices, u units.

    ``class_of``  of each device by name;  ``counts``: c numbers of devices
    ``limit``     c bytes that a device may hold (None: any number)
    ``streams``   c pairs of the bytes that fit and the seconds of a byte that does not (None: nothing is streamed)
    ``node``      the position of each node by its id
    ``time``      n x c seconds (None: not there);  ``memory``: n bytes;  ``unit``: n units
    ``tensors``   of each the nodes that touch it, and c seconds of moving it
    ``pairs``     of nodes along which devices go forward (None: any placement is allowed)
    """

    class_of: Mapping[str, int]
    counts: tuple[int, ...]
    limit: tuple[Fraction | None, ...]
    streams: tuple[tuple[Fraction, Fraction] | None, ...]
    node: Mapping[str, int]
    time: tuple[tuple[Fraction | None, ...], ...]
    memory: tuple[Fraction, ...]
    unit: tuple[int, ...]
    tensors: tuple[tuple[tuple[int, ...], tuple[Fraction, ...]], ...]
    pairs: tuple[tuple[int, int], ...] | None

    @property
    def classes(self) -> int:
        """How many classes of devices there are."""
        return len(self.counts)

    @cached_property
    def units(self) -> int:
        """How many units there are."""
        return max(self.unit, default=-1) + 1

    @cached_property
    def held(self) -> tuple[Fraction, ...]:
        """The bytes of each unit."""
        out = [Fraction(0)] * self.units
        for v, u in enumerate(self.unit):
            out[u] += self.memory[v]
        return tuple(out)

    @cached_property
    def room(self) -> tuple[Fraction | None, ...]:
        """The limits, with what the evaluator tolerates."""
        return tuple(None if limit is None else limit * (1 + SAME) for limit in self.limit)

    @cached_property
    def work(self) -> tuple[tuple[Fraction | None, ...], ...]:
        """c x u seconds; None: not there, for want of support or memory."""
        out: list[list[Fraction | None]] = [[Fraction(0)] * self.units for _ in self.counts]
        for v, u in enumerate(self.unit):
            for c, row in enumerate(out):
                own, before = self.time[v][c], row[u]
                row[u] = None if own is None or before is None else before + own
        for row, room in zip(out, self.room, strict=True):
            for u, held in enumerate(self.held):
                if room is not None and held > room:
                    row[u] = None
        return tuple(map(tuple, out))

    @cached_property
    def moving(self) -> tuple[Mapping[frozenset[int], Fraction], ...]:
        """By class: what a device pays that has some of these units and not all."""
        out: list[dict[frozenset[int], Fraction]] = [{} for _ in self.counts]
        for touching, costs in self.tensors:
            units = frozenset(self.unit[v] for v in touching)
            for c, cost in enumerate(costs):
                if len(units) > 1 and cost:
                    out[c][units] = out[c].get(units, Fraction(0)) + cost
        return tuple(out)

    @cached_property
    def order(self) -> tuple[tuple[int, int], ...]:
        """Pairs of different units along which devices go forward."""
        found = {(self.unit[v], self.unit[w]) for v, w in self.pairs or ()}
        return tuple(sorted(pair for pair in found if pair[0] != pair[1]))

    def contracted(self) -> Instance:
        """Units on a cycle of the order as one: they are in one stage."""
        joined = components(self.units, self.order)
        return replace(self, unit=tuple(joined[u] for u in self.unit))

    def halved(self) -> Instance:
        """Half as many devices, which have any memory and stream nothing; RefusedError where they are not alike."""
        if self.classes != 1:
            raise RefusedError("devices that are not alike cannot be halved")
        return replace(self, counts=(-(-self.counts[0] // 2),), limit=(None,), streams=(None,))

    def load(self, nodes: Iterable[int], c: int) -> Fraction:
        """Of a set of nodes on a device of a class; RefusedError where one of them is not supported."""
        inside, out = frozenset(nodes), Fraction(0)
        for v in inside:
            own = self.time[v][c]
            if own is None:
                raise RefusedError("a node is on a device that does not run it")
            out += own
        for touching, costs in self.tensors:
            if costs[c] and 0 < sum(v in inside for v in touching) < len(touching):
                out += costs[c]
        return out + (self.streamed(sum((self.memory[v] for v in inside), Fraction(0)), c) if inside else 0)

    def streamed(self, held: Fraction, c: int) -> Fraction:
        """The seconds that a device of a class streams which holds something, so many bytes."""
        streams = self.streams[c]
        return Fraction(0) if streams is None else max(Fraction(0), held - streams[0]) * streams[1]

    def largest_load(self, placement: Mapping[str, str]) -> Fraction:
        """Of the devices, for a device of each node; RefusedError where the placement is none."""
        if set(placement) != set(self.node):
            raise RefusedError("the answer does not place the nodes of the certificate")
        if not set(placement.values()) <= set(self.class_of):
            raise RefusedError("a node is on a device that there is not")
        device = [""] * len(self.node)
        for name, v in self.node.items():
            device[v] = placement[name]
        own: dict[str, list[int]] = {}
        of_unit: dict[int, str] = {}
        for v, name in enumerate(device):
            own.setdefault(name, []).append(v)
            if of_unit.setdefault(self.unit[v], name) != name:
                raise RefusedError("nodes of one unit are on two devices")
        names = {name: k for k, name in enumerate(own)}
        apart = [(names[device[v]], names[device[w]]) for v, w in self.pairs or () if device[v] != device[w]]
        if not acyclic(len(names), apart):
            raise RefusedError("the devices form no pipeline")
        for name, nodes in own.items():
            room = self.room[self.class_of[name]]
            if room is not None and sum(self.memory[v] for v in nodes) > room:
                raise RefusedError("a device holds more than it has room for")
        return max((self.load(nodes, self.class_of[name]) for name, nodes in own.items()), default=Fraction(0))


def instance(document: Mapping[str, Any]) -> Instance:
    """From the data of a certificate; RefusedError where they do not fit."""
    nodes, devices, classes = document["nodes"], document["devices"], len(document["memory"])
    class_of = {device["name"]: position(device["class"], classes, "a class") for device in devices}
    counts = tuple(sum(kind == c for kind in class_of.values()) for c in range(classes))
    if len(class_of) != len(devices) or not all(counts) or len(document["streams"]) != classes:
        raise RefusedError("devices of one name, or a class without devices")
    named = {node["id"]: v for v, node in enumerate(nodes)}
    if len(named) != len(nodes):
        raise RefusedError("nodes of one id")
    times = tuple(tuple(None if t is None else amount(t, "a time") for t in node["time"]) for node in nodes)
    if any(len(own) != classes for own in times):
        raise RefusedError("times that do not fit the classes of devices")
    unit = tuple(position(node["unit"], len(nodes), "a unit") for node in nodes)
    if set(unit) != set(range(max(unit, default=-1) + 1)):
        raise RefusedError("units are not numbered one after another")
    tensors = []
    for tensor in document["tensors"]:
        touching = {position(v, len(nodes), "a node of a tensor") for v in (tensor["maker"], *tensor["readers"])}
        costs = tuple(amount(cost, "a cost") for cost in tensor["moving"])
        if len(costs) != classes:
            raise RefusedError("costs of moving that do not fit the classes of devices")
        tensors.append((tuple(sorted(touching)), costs))
    pairs = document["order"]
    return Instance(
        class_of=class_of, counts=counts,
        limit=tuple(None if m is None else amount(m, "a memory") for m in document["memory"]),
        streams=tuple(
            None if one is None else (number(one["room"], "a room"), amount(one["per_byte"], "a time of streaming"))
            for one in document["streams"]
        ),
        node=named, time=times, memory=tuple(amount(node["memory"], "a memory") for node in nodes), unit=unit,
        tensors=tuple(tensors),
        pairs=None if pairs is None else tuple(
            (position(v, len(nodes), "a node"), position(w, len(nodes), "a node")) for v, w in pairs
        ),
    )  # fmt: skip
