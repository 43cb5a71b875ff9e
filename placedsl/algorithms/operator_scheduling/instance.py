"""An instance of operator scheduling as arrays for the kernels: nodes, tensors, devices, and shared resources.

A *resource* is exclusive to one transfer at a time: a port of a device under ``congestion by port``, a directed link
under ``congestion by link``.  Which resources a transfer occupies depends only on its two devices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers
from placedsl.graph.order import csr, joined_partitions, topological
from placedsl.machine.routes import TransferTimes
from placedsl.problem.problem import Problem


class SchedulingInstance(NamedTuple):
    """n nodes, t tensors, D devices, u units of nodes that share a device.

    ``time``      n x D seconds (inf: not supported)
    ``memory``    n bytes; ``memory_limit``: D bytes (inf: no limit)
    ``producer``  t nodes; ``input``, ``output``, ``reader``: the tensors that a node reads and writes, and the nodes
                  that read a tensor, each once, from ``…_start[i]`` to ``…_start[i + 1]``
    ``fixed``, ``per_size``, ``size``, ``given``   latency, inverse bandwidth, size and explicit times of
    :class:`placedsl.machine.routes.TransferTimes`
    ``resource``  of a transfer from a to b: from ``resource_start[a * D + b]``; numbers below ``resources``
    ``unit``      n units; ``member``: the nodes of each, from ``member_start``
    ``sequential``  whether a device runs one node at a time
    ``topological``  n: all nodes, each after those it reads from
    """

    time: Floats
    memory: Floats
    memory_limit: Floats
    producer: Integers
    input_start: Integers
    input: Integers
    output_start: Integers
    output: Integers
    reader_start: Integers
    reader: Integers
    fixed: Floats
    per_size: Floats
    size: Floats
    given: Floats
    resource_start: Integers
    resource: Integers
    resources: int
    unit: Integers
    member_start: Integers
    member: Integers
    sequential: bool
    topological: Integers

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self.time)

    @property
    def devices(self) -> int:
        """The number of devices."""
        return int(self.time.shape[1])


def scheduling_instance(problem: Problem) -> SchedulingInstance:
    """The arrays of a problem, with its constraints ``memory``, ``sequential``, ``congestion`` and ``colocated``."""
    graph, moves = problem.graph, problem.device_to_device
    assert moves is not None  # fits() has looked
    return build(
        time=problem.time,
        memory=graph.memory,
        memory_limit=problem.memory_limits,
        producer=graph.tensor_producer,
        edge_tensor=graph.edge_tensor,
        edge_target=graph.edge_target,
        moves=moves,
        congestion={rule.by or "port" for rule in problem.constraints if rule.built_in == "congestion"},
        sequential=problem.constraint("sequential") is not None,
        groups=problem.colocation_groups(),
    )


def build(
    *, time: Floats, memory: Floats, memory_limit: Floats, producer: Integers, edge_tensor: Integers,
    edge_target: Integers, moves: TransferTimes, congestion: set[str], sequential: bool, groups: list[Integers],
) -> SchedulingInstance:  # fmt: skip
    """The arrays from those of graph and machine; ``congestion`` holds "port", "link" or both."""
    nodes, devices = time.shape
    tensors = len(producer)
    pairs = np.unique(np.stack([edge_tensor, edge_target]), axis=1) if len(edge_tensor) else np.zeros((2, 0), int)
    reader_start, reader = csr(pairs[0], pairs[1], tensors)
    input_start, inputs = csr(pairs[1], pairs[0], nodes)
    output_start, outputs = csr(producer, np.arange(tensors), nodes)
    sequence = topological(nodes, producer[pairs[0]], pairs[1])
    assert sequence is not None  # graphs are acyclic
    unit = joined_partitions(nodes, groups)
    member_start, member = csr(unit, np.arange(nodes), int(unit.max(initial=-1)) + 1)
    resource_start, resource, resources = _resources(moves, devices, congestion)
    return SchedulingInstance(
        np.ascontiguousarray(time, dtype=np.float64), floats(memory), floats(memory_limit), integers(producer),
        input_start, inputs, output_start, outputs, reader_start, reader,
        floats(moves.latency), floats(moves.inverse_bandwidth), floats(moves.size), floats(moves.explicit),
        resource_start, resource, resources, unit, member_start, member, bool(sequential), integers(sequence),
    )  # fmt: skip


def supported(instance: SchedulingInstance) -> Booleans:
    """u x D flags: the devices that support all nodes of a unit."""
    out = np.ones((len(instance.member_start) - 1, instance.devices), dtype=bool)
    np.logical_and.at(out, instance.unit, np.isfinite(instance.time))
    return out


def options(instance: SchedulingInstance) -> Booleans:
    """n x D flags: the devices that support a node's whole unit."""
    return np.asarray(supported(instance)[instance.unit])


def moves(instance: SchedulingInstance) -> Floats:
    """t x D x D seconds of the transfer of each tensor."""
    if len(instance.given):
        return instance.given
    return floats(instance.fixed[None] + instance.per_size[None] * instance.size[:, None, None])


def no_longer_than(instance: SchedulingInstance) -> float:
    """An upper bound in seconds on the best latency of any placement: all times one after the other."""
    time = np.where(np.isfinite(instance.time), instance.time, 0.0).max(axis=1).sum()
    if len(instance.given):
        given = np.where(np.isfinite(instance.given), instance.given, 0.0)
        return float(time + given.max(axis=1).sum())  # once to each device
    reached = np.isfinite(instance.fixed)
    fixed, per_size = np.where(reached, instance.fixed, 0.0), np.where(reached, instance.per_size, 0.0)
    return float(time + instance.devices * (fixed.max() * len(instance.size) + per_size.max() * instance.size.sum()))


def unit_memory(instance: SchedulingInstance) -> Floats:
    """u bytes: the memory of each unit."""
    return floats(np.bincount(instance.unit, weights=instance.memory, minlength=len(instance.member_start) - 1))


def _resources(moves: TransferTimes, devices: int, congestion: set[str]) -> tuple[Integers, Integers, int]:
    """What each pair of devices occupies, and how many things there are to occupy."""
    start, hop, links = moves.hop_start, moves.hop, len(moves.hop_ends)
    out: list[list[int]] = []
    for a in range(devices):
        for b in range(devices):
            here = hop[start[a * devices + b] : start[a * devices + b + 1]].tolist() if "link" in congestion else []
            ports = [links + a, links + devices + b] if "port" in congestion and a != b else []
            out.append([*here, *ports])
    used = sorted({resource for here in out for resource in here})
    number = {resource: i for i, resource in enumerate(used)}
    flat = [number[resource] for here in out for resource in here]
    return integers(np.cumsum([0, *map(len, out)])), np.array(flat, dtype=np.int64), len(used)


def integers(values: Integers) -> Integers:
    """An array in the layout that the kernels are compiled for."""
    return np.ascontiguousarray(values, dtype=np.int64)


def floats(values: Floats | Integers) -> Floats:
    """An array in the layout that the kernels are compiled for."""
    return np.ascontiguousarray(values, dtype=np.float64)
