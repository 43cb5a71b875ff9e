"""Schedules to start a search from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from placedsl.algorithms.dataflow import etf, heft, m_topo
from placedsl.algorithms.dataflow.arrays import Flow, supported, unit_memory
from placedsl.algorithms.dataflow.kernel import Order, mean_times, order_of, ranks
from placedsl.graph.graph import Floats, Integers

#: Up to so many devices, all sequences of them are tried for filling one after the other.
_ALL_SEQUENCES = 4


def starts(flow: Flow, placement: Integers | None = None) -> Iterator[Order]:
    """The given placement, list schedules that heed memory, and devices filled one after the other."""
    if placement is not None and heeds(flow, placement):
        yield ordered(flow, placement)
    for _, order in (heft.best(flow, flow.room), etf.best(flow, flow.room), m_topo.best(flow)):
        if order is not None:
            yield order
    for device in filled(flow):
        yield order_of(flow, device, _places(flow))
        yield ordered(flow, device)


def heeds(flow: Flow, device: Integers) -> bool:
    """Whether a placement is one that memory, support and colocation allow."""
    held = np.bincount(device, weights=flow.memory, minlength=flow.devices)
    first = flow.member[flow.member_start[:-1]]
    return bool(
        np.isfinite(flow.time[np.arange(flow.nodes), device]).all()
        and (held <= flow.room).all()
        and (device == device[first][flow.unit]).all()
    )


def ordered(flow: Flow, device: Integers) -> Order:
    """A placement with its nodes by the longest way to the end on it."""
    work = flow.time[np.arange(flow.nodes), device]
    _, moving = mean_times(flow)
    place = _places(flow)
    sequence = np.lexsort((place, -ranks(flow, work, moving)))
    begun = np.empty(flow.nodes)
    begun[sequence] = np.arange(flow.nodes)
    return order_of(flow, device, begun)


def filled(flow: Flow) -> Iterator[Integers]:
    """Devices filled one after the other in topological order, in several sequences of the devices; a node that the
    current one does not support goes to the next that does."""
    size, able = unit_memory(flow), supported(flow)
    time = np.where(np.isfinite(flow.time), flow.time, 0.0)
    total = np.zeros((len(size), flow.devices))
    np.add.at(total, flow.unit, time)
    fast = np.argsort(total.sum(axis=0) / np.maximum(able.sum(axis=0), 1), kind="stable").tolist()
    sequences = list(itertools.permutations(fast)) if flow.devices <= _ALL_SEQUENCES else [tuple(fast)]
    _, first = np.unique(flow.unit[flow.topological], return_index=True)
    units = np.argsort(first, kind="stable")
    seen = set()
    for sequence in sequences:
        device = _fill(units, size, able, flow.room, sequence)
        if device is not None and device.tobytes() not in seen:
            seen.add(device.tobytes())
            yield device[flow.unit]


def _fill(units: Integers, size: Floats, able: np.ndarray, room: Floats, sequence: tuple[int, ...]) -> Integers | None:
    device = np.full(len(size), -1, dtype=np.int64)
    left = room.copy()
    sizes, rows = size.tolist(), able.tolist()
    for u in units.tolist():
        d = next((d for d in sequence if rows[u][d] and sizes[u] <= left[d]), -1)
        if d < 0:
            return None
        device[u] = d
        left[d] -= sizes[u]
    return device


def packed(flow: Flow) -> Integers | None:
    """Some placement that heeds memory: largest units first, each where most room is left; None where that fails."""
    size, able = unit_memory(flow), supported(flow)
    device = np.full(len(size), -1, dtype=np.int64)
    left = flow.room.copy()
    for u in np.argsort(-size, kind="stable").tolist():
        fitting = able[u] & (size[u] <= left)
        if not fitting.any():
            return None
        device[u] = int(np.where(fitting, left, -np.inf).argmax())
        left[device[u]] -= size[u]
    return device[flow.unit]


def _places(flow: Flow) -> Floats:
    out = np.empty(flow.nodes)
    out[flow.topological] = np.arange(flow.nodes)
    return out
