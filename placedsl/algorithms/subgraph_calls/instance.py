"""One sample through uninterrupted subgraph calls, as arrays for the kernels.   Tarnawski et al. 2020, section 4.

A node's *place* is ``device * slots + slot - 1``, slot 1 on hosts.  The nodes of one place on an accelerator form one
call; on a host each node runs by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.subgraph_calls.latency_kernel import CallInstance, evaluate, new_scratch
from placedsl.algorithms.supports import PLACING, Supports
from placedsl.algorithms.units import with_rounding
from placedsl.arrays import Floats, Integers
from placedsl.graph.order import csr, joined_partitions, renumbered, topological
from placedsl.problem.execution import Execution
from placedsl.problem.problem import Problem

SUPPORTS = Supports(
    objectives=("latency",), executions=(Execution(run="subgraph_calls"),), constraints=PLACING, clusters=False
)  # fmt: skip


def call_instance(problem: Problem) -> CallInstance:
    """The arrays of a problem; constraints other than memory and colocation are left out."""
    return build(
        time=problem.time.T, transfer=problem.transfer.T, memory=problem.graph.memory,
        capacity=problem.memory_limits, host=~problem.accelerators,
        slots=problem.execution.slots, groups=problem.colocation_groups(),
        producer=problem.graph.tensor_producer, read_tensor=problem.graph.edge_tensor,
        reader=problem.graph.edge_target,
    )  # fmt: skip


def build(
    *,
    time: Floats,
    transfer: Floats,
    memory: Floats,
    capacity: Floats,
    host: np.ndarray,
    slots: int,
    groups: list[Integers],
    producer: Integers,
    read_tensor: Integers,
    reader: Integers,
) -> CallInstance:
    """The arrays from plain ones: ``time`` D x n, ``transfer`` D x t, ``read_tensor`` and ``reader`` one per edge.

    ``groups``: arrays of n labels; nodes with equal labels share a device.
    """
    nodes, tensors = time.shape[1], len(producer)
    unit = joined_partitions(nodes, groups) if groups else np.arange(nodes)
    unit = renumbered(unit)
    units = int(unit.max(initial=-1)) + 1
    pairs = np.unique(np.stack((read_tensor, reader), axis=1).reshape(-1, 2), axis=0)
    order = topological(nodes, producer[pairs[:, 0]], pairs[:, 1])
    assert order is not None  # a graph is acyclic once it is read
    rank = np.empty(nodes, dtype=np.int64)
    rank[order] = np.arange(nodes)
    unit_start, unit_node = csr(unit, np.arange(nodes), units)
    read_start, reader_of = csr(pairs[:, 0], pairs[:, 1], tensors)
    made_start, made = csr(producer, np.arange(tensors), nodes)
    taken_start, taken = csr(pairs[:, 1], pairs[:, 0], nodes)
    return CallInstance(
        time=np.ascontiguousarray(time, dtype=float), transfer=np.ascontiguousarray(transfer, dtype=float),
        memory=np.ascontiguousarray(memory, dtype=float), capacity=with_rounding(capacity, memory),
        host=np.ascontiguousarray(host, dtype=bool), slots=slots, unit=unit,
        unit_start=unit_start, unit_node=unit_node, producer=producer.astype(np.int64), read_start=read_start,
        reader=reader_of.astype(np.int64), made_start=made_start, made=made, taken_start=taken_start,
        taken=taken.astype(np.int64), order=order.astype(np.int64), rank=rank,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class CallPlacement:
    """A device and a slot (from 1) for each of n nodes, and the latency in seconds."""

    placement: Integers
    slot: Integers
    latency: float

    @property
    def values(self) -> Mapping[str, Mapping[tuple[int, ...], int]]:
        """The slots as values of an answer: ``piece[v]``."""
        return {"piece": {(v,): int(p) for v, p in enumerate(self.slot.tolist())}}


def call_placement(instance: CallInstance, place: Integers) -> CallPlacement:
    """The placement that places (n) stand for."""
    return CallPlacement(place // instance.slots, place % instance.slots + 1, latency_of(instance, place))


def places_of(instance: CallInstance, placement: Integers, slot: Integers | None = None) -> Integers:
    """The places (n) of a device and a slot for each node; without slots all are 1."""
    chosen = np.zeros(len(placement), dtype=np.int64) if slot is None else slot - 1
    return np.asarray(placement, dtype=np.int64) * instance.slots + np.where(instance.host[placement], 0, chosen)


def latency_of(instance: CallInstance, place: Integers) -> float:
    """The latency of places (n) in seconds; inf if memory, support or colocation is violated or calls wait in a
    cycle.
    """
    device = place // instance.slots
    nodes = np.arange(len(place))
    if (np.bincount(device, weights=instance.memory, minlength=len(instance.capacity)) > instance.capacity).any():
        return np.inf
    first = instance.unit_node[instance.unit_start[:-1]]
    if (device != device[first][instance.unit]).any() or not np.isfinite(instance.time[device, nodes]).all():
        return np.inf
    return float(evaluate(instance, place, new_scratch(instance)))
