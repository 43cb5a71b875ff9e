"""The flow bound: a unit is on some device, whose load is at least the cheapest set that it can be part of.

    value  >=  max over units v of  min over device classes c, sets S with v in S  of  load(c, S)

The load of a set on one class, its work and the tensors that it cuts, is a cut of a graph: from the set to the sink go
the work of its units, and for each tensor that has units on both sides an arc of its cost.  So the inner minimum is a
maximum flow.  It settles large numbers of devices, where one unit with many tensors decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.relaxation import DeviceClass, Relaxation
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.graph.order import csr, rows_of
from placedsl.tolerances import BOUND_ROUNDING

#: The whole number that stands for the largest capacity: flows are in whole numbers of 31 bits.
_WHOLE = 2**29
#: Units of more than this are looked at with so many units around them; the tensors of others count less then.
_MOST_UNITS = 4_000


def flow_bounds(
    relaxed: Relaxation, name: Callable[[int], str], best: float, upper: Callable[[], float], over: Callable[[], bool],
    seconds: float,
) -> Iterator[Bound]:  # fmt: skip
    """Increasing bounds above ``best``, by the unit that has the cheapest sets that cost most; ``seconds`` at most.

    ``name``: of a unit, in words.
    """
    began = time.monotonic()
    networks = [
        _Network(number, device, relaxed.units)
        for number, device in enumerate(relaxed.classes)
        if np.isfinite(device.work).any()
    ]
    if not networks:
        return
    alone = np.min([network.alone for network in networks], axis=0)
    # What a set costs that some unit was found in, is enough for every unit of it.
    known = [np.full(relaxed.units, np.inf) for _ in networks]
    for v in np.argsort(-alone, kind="stable").tolist():
        top = min(float(alone[v]), upper())
        if top <= max(0.0, best * (1.0 + 1e-9)) or over() or time.monotonic() - began > seconds:
            return
        if not np.isfinite(top) or min(float(own[v]) for own in known) <= best:
            continue
        value, flows = np.inf, []
        for network, own in zip(networks, known, strict=True):
            if not np.isfinite(network.work[v]):
                continue
            flow, members, found = network.cheapest(v, top)
            own[members] = np.minimum(own[members], network.load(members))
            value = min(value, flow)
            if value <= best:
                break
            flows.append({"class": network.number, **found})
        if best < value < np.inf:
            best = value
            proof = {"kind": "flow", "unit": v, "flows": flows}
            yield Bound(value, f"the cheapest set of operators around {name(v)} (a minimum cut)", proof)


class _Network:
    """The graph of one device class: nodes 0 … u - 1 are units, then two for each tensor, then source and sink."""

    def __init__(self, number: int, device: DeviceClass, units: int) -> None:
        self.number, self.units, self.work = number, units, device.work
        lengths = np.array([len(pins) for pins in device.edges.pins], dtype=np.int64)
        self.pin = np.array([u for pins in device.edges.pins for u in pins], dtype=np.int64)
        self.edge = np.repeat(np.arange(len(lengths)), lengths)
        self.cost: Floats = device.edges.cost
        touched = np.bincount(self.pin, weights=self.cost[self.edge], minlength=units)
        self.start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
        self.of_unit = csr(self.pin, self.edge, units)
        #: What each unit costs by itself.
        self.alone: Floats = np.where(np.isfinite(device.work), device.work, np.inf) + touched

    def load(self, members: Integers) -> float:
        """The load of a set of units."""
        inside = np.zeros(self.units, dtype=bool)
        inside[members] = True
        within = np.bincount(self.edge[inside[self.pin]], minlength=len(self.cost))
        cut = (within > 0) & (within < np.bincount(self.edge, minlength=len(self.cost)))
        return float(self.work[members].sum() + self.cost[cut].sum())

    def cheapest(self, v: int, most: float) -> tuple[float, Integers, dict[str, Any]]:
        """A lower bound on the load of every set with unit ``v``, up to ``most``, the set that it is of, and the flow:
        whole numbers, of which there are ``scale`` to a second."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        near = self._near(v)
        number = np.full(self.units, -1, dtype=np.int64)
        number[near] = np.arange(len(near))
        held = number[self.pin] >= 0
        edges, edge = np.unique(self.edge[held], return_inverse=True)
        pin = number[self.pin[held]]
        units, count = len(near), len(edges)
        source, sink = units + 2 * count, units + 2 * count + 1
        scale = _WHOLE / most

        def whole(seconds: Floats) -> Integers:
            # Less than the sums of doubles are off: the flow is checked in fractions.
            return np.floor(np.minimum(seconds * scale * (1.0 - BOUND_ROUNDING), _WHOLE)).astype(np.int64)

        into, out = units + edge, units + count + edge
        tail = np.concatenate((np.arange(units), pin, units + np.arange(count), out, [source]))
        head = np.concatenate((np.full(units, sink), into, units + count + np.arange(count), pin, [number[v]]))
        large = np.full(len(pin), _WHOLE, dtype=np.int64)
        room = np.concatenate((whole(self.work[near]), large, whole(self.cost[edges]), large, [_WHOLE]))
        kept = room > 0
        graph: Any = csr_array(
            (room[kept].astype(np.int32), (tail[kept].astype(np.int32), head[kept].astype(np.int32))),
            shape=(sink + 1, sink + 1),
        )
        found = maximum_flow(graph, source, sink)
        left = graph - found.flow
        left.data[left.data < 0] = 0
        left.eliminate_zeros()
        side: Booleans = np.zeros(sink + 1, dtype=bool)
        side[breadth_first_order(left, source, return_predecessors=False)] = True
        members = near[side[:units]]
        flow = {"scale": scale, **self._arcs(found.flow.tocoo(), near, edges)}
        return found.flow_value / scale, members if len(members) else np.array([v]), flow

    def _arcs(self, flow: Any, near: Integers, edges: Integers) -> dict[str, Any]:
        """What leaves each unit for the sink, and what goes from units to units through each tensor."""
        units, count = len(near), len(edges)
        sink: list[list[int]] = []
        tensors: dict[int, dict[str, Any]] = {}
        for tail, head, amount in zip(flow.row.tolist(), flow.col.tolist(), flow.data.tolist(), strict=True):
            if amount <= 0:
                continue
            if tail < units and head == units + 2 * count + 1:
                sink.append([int(near[tail]), amount])
            elif tail < units <= head < units + count:
                entry = tensors.setdefault(head - units, {"out": [], "into": []})
                entry["out"].append([int(near[tail]), amount])
            elif head < units and units + count <= tail < units + 2 * count:
                entry = tensors.setdefault(tail - units - count, {"out": [], "into": []})
                entry["into"].append([int(near[head]), amount])
        start = self.start
        return {
            "sink": sink,
            "tensors": [
                {"units": self.pin[start[edges[e]] : start[edges[e] + 1]].tolist(), **entry}
                for e, entry in sorted(tensors.items())
            ],
        }

    def _near(self, v: int) -> Integers:
        """The units that are looked at together with one: all of them, or the nearest."""
        if self.units <= _MOST_UNITS:
            return np.arange(self.units)
        seen = np.zeros(self.units, dtype=bool)
        seen[v] = True
        new = np.array([v])
        while len(new) and seen.sum() < _MOST_UNITS:
            touched = np.unique(self.of_unit[1][rows_of(self.of_unit[0], new)[1]])
            reached = np.unique(self.pin[rows_of(self.start, touched)[1]])
            new = reached[~seen[reached]][: _MOST_UNITS - int(seen.sum())]
            seen[new] = True
        return np.flatnonzero(seen)
