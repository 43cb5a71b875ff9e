"""Sequences to start a search from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placedsl.algorithms.fill_devices import filled
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, supported, unit_memory
from placedsl.algorithms.operator_scheduling.list_scheduling import etf, heft, m_topo
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, mean_times, ranks, sequence_of
from placedsl.arrays import Floats, Integers


def initial_orders(instance: SchedulingInstance, placement: Integers | None = None) -> Iterator[OperatorSequence]:
    """The given placement, list schedules within the memory limits, and devices filled one after the other."""
    if placement is not None and is_feasible(instance, placement):
        yield by_longest_path(instance, placement)
    limit = instance.memory_limit
    for _, sequence in (heft.best(instance, limit), etf.best(instance, limit), m_topo.best(instance)):
        if sequence is not None:
            yield sequence
    for device in by_filling_devices(instance):
        yield sequence_of(instance, device, _places(instance))
        yield by_longest_path(instance, device)


def is_feasible(instance: SchedulingInstance, device: Integers) -> bool:
    """Whether a placement (n) satisfies memory limits, support and colocation."""
    held = np.bincount(device, weights=instance.memory, minlength=instance.devices)
    first = instance.member[instance.member_start[:-1]]
    return bool(
        np.isfinite(instance.time[np.arange(instance.nodes), device]).all()
        and (held <= instance.memory_limit).all()
        and (device == device[first][instance.unit]).all()
    )


def by_longest_path(instance: SchedulingInstance, device: Integers) -> OperatorSequence:
    """A placement with its nodes by decreasing longest path to the end."""
    work = instance.time[np.arange(instance.nodes), device]
    _, moving = mean_times(instance)
    place = _places(instance)
    order = np.lexsort((place, -ranks(instance, work, moving)))
    begun = np.empty(instance.nodes)
    begun[order] = np.arange(instance.nodes)
    return sequence_of(instance, device, begun)


def by_filling_devices(instance: SchedulingInstance) -> Iterator[Integers]:
    """Placements (n) that fill the devices one after the other in topological order."""
    work = np.zeros((len(instance.member_start) - 1, instance.devices))
    np.add.at(work, instance.unit, instance.time)
    _, first = np.unique(instance.unit[instance.topological], return_index=True)
    sequence = np.argsort(first, kind="stable").tolist()
    for device in filled(sequence, work, unit_memory(instance), instance.memory_limit):
        yield device[instance.unit]


def pack_by_memory(instance: SchedulingInstance) -> Integers | None:
    """A placement (n) within the memory limits: largest units first, each where most memory is left; None if that
    fails.
    """
    size, able = unit_memory(instance), supported(instance)
    device = np.full(len(size), -1, dtype=np.int64)
    left = instance.memory_limit.copy()
    for u in np.argsort(-size, kind="stable").tolist():
        fitting = able[u] & (size[u] <= left)
        if not fitting.any():
            return None
        device[u] = int(np.where(fitting, left, -np.inf).argmax())
        left[device[u]] -= size[u]
    return device[instance.unit]


def _places(instance: SchedulingInstance) -> Floats:
    """n: the position of each node in the topological order."""
    out = np.empty(instance.nodes)
    out[instance.topological] = np.arange(instance.nodes)
    return out
