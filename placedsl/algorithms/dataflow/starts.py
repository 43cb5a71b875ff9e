"""Schedules to start a search from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placedsl.algorithms.dataflow import etf, heft, m_topo
from placedsl.algorithms.dataflow.arrays import Flow, supported, unit_memory
from placedsl.algorithms.dataflow.kernel import Order, mean_times, order_of, ranks
from placedsl.algorithms.first import filled
from placedsl.graph.graph import Floats, Integers


def starts(flow: Flow, placement: Integers | None = None) -> Iterator[Order]:
    """The given placement, list schedules that heed memory, and devices filled one after the other."""
    if placement is not None and heeds(flow, placement):
        yield ordered(flow, placement)
    for _, order in (heft.best(flow, flow.room), etf.best(flow, flow.room), m_topo.best(flow)):
        if order is not None:
            yield order
    for device in by_filling(flow):
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


def by_filling(flow: Flow) -> Iterator[Integers]:
    """The device of each node where devices are filled one after the other in topological order."""
    work = np.zeros((len(flow.member_start) - 1, flow.devices))
    np.add.at(work, flow.unit, flow.time)
    _, first = np.unique(flow.unit[flow.topological], return_index=True)
    order = np.argsort(first, kind="stable").tolist()
    for device in filled(order, work, unit_memory(flow), flow.room):
        yield device[flow.unit]


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
