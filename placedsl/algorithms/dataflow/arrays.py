"""A problem under ``schedule dataflow`` as arrays that compiled code takes: nodes, tensors, devices, and what is
shared.

A *resource* is what one transfer has to itself while it lasts: a port of a device under ``congestion by port``, a
directed link under ``congestion by link``.  Which resources a transfer occupies depends on its two devices alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from placedsl.graph.graph import Booleans, Floats, Integers
from placedsl.graph.order import topological
from placedsl.machine.moves import Moves
from placedsl.problem import Problem


class Flow(NamedTuple):
    """n nodes, t tensors, D devices, u units of nodes that share a device.

    ``time``      n x D running times (inf: not supported)
    ``memory``    n sizes; ``room`` D (inf: no limit)
    ``producer``  t nodes; ``input``, ``output``, ``reader``: the tensors that a node reads and writes and the nodes
                  that
                  read a tensor, each once, from ``…_start[i]`` to ``…_start[i + 1]``
    ``fixed``, ``per_size``, ``size``, ``given``   as in :class:`placedsl.machine.moves.Moves`
    ``resource``  of a transfer from a to b: from ``resource_start[a * D + b]``; numbers 0..``resources`` - 1
    ``unit``      n unit numbers; ``member`` the nodes of each, from ``member_start``
    ``sequential``  a device runs one node at a time
    ``topological``  all nodes, each after what it reads
    """

    time: Floats
    memory: Floats
    room: Floats
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
        """How many nodes there are."""
        return len(self.time)

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return int(self.time.shape[1])


def flow_of(problem: Problem) -> Flow:
    """The arrays of a problem; its rules ``memory``, ``sequential``, ``congestion`` and ``colocated`` are in them."""
    graph, moves = problem.graph, problem.moves
    assert moves is not None  # fits() has looked
    limited = problem.rule("memory") is not None
    return build(
        time=problem.time,
        memory=graph.memory,
        room=problem.device_memory if limited else np.full(len(problem.machine.devices), np.inf),
        producer=graph.tensor_producer,
        edge_tensor=graph.edge_tensor,
        edge_target=graph.edge_target,
        moves=moves,
        congestion={rule.by or "port" for rule in problem.rules if rule.built_in == "congestion"},
        sequential=problem.rule("sequential") is not None,
        groups=problem.colocation_groups(),
    )


def build(
    *, time: Floats, memory: Floats, room: Floats, producer: Integers, edge_tensor: Integers, edge_target: Integers,
    moves: Moves, congestion: set[str], sequential: bool, groups: list[Integers],
) -> Flow:  # fmt: skip
    """The arrays from those of graph and machine; ``congestion`` holds "port", "link" or both."""
    nodes, devices = time.shape
    tensors = len(producer)
    pairs = np.unique(np.stack([edge_tensor, edge_target]), axis=1) if len(edge_tensor) else np.zeros((2, 0), int)
    reader_start, reader = grouped(pairs[0], pairs[1], tensors)
    input_start, inputs = grouped(pairs[1], pairs[0], nodes)
    output_start, outputs = grouped(producer, np.arange(tensors), nodes)
    order = topological(nodes, producer[pairs[0]], pairs[1])
    assert order is not None  # graphs are acyclic
    unit = _units(nodes, groups)
    member_start, member = grouped(unit, np.arange(nodes), int(unit.max(initial=-1)) + 1)
    resource_start, resource, resources = _resources(moves, devices, congestion)
    return Flow(
        np.ascontiguousarray(time, dtype=np.float64), floats(memory), floats(room), integers(producer),
        input_start, inputs, output_start, outputs, reader_start, reader,
        floats(moves.fixed), floats(moves.per_size), floats(moves.size), floats(moves.given),
        resource_start, resource, resources, unit, member_start, member, bool(sequential), integers(order),
    )  # fmt: skip


def supported(flow: Flow) -> Booleans:
    """u x D: which devices support all nodes of a unit."""
    out = np.ones((len(flow.member_start) - 1, flow.devices), dtype=bool)
    np.logical_and.at(out, flow.unit, np.isfinite(flow.time))
    return out


def options(flow: Flow) -> Booleans:
    """n x D: where each node may go, with all that must share its device."""
    return np.asarray(supported(flow)[flow.unit])


def unit_memory(flow: Flow) -> Floats:
    """What each unit occupies."""
    return floats(np.bincount(flow.unit, weights=flow.memory, minlength=len(flow.member_start) - 1))


def _resources(moves: Moves, devices: int, congestion: set[str]) -> tuple[Integers, Integers, int]:
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


def _units(nodes: int, groups: list[Integers]) -> Integers:
    """Numbers from 0 in the order of the first node of each; nodes of one label in any group share theirs."""
    rows, columns = [np.arange(nodes)], [np.arange(nodes)]
    for labels in groups:
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        rows.append(np.arange(nodes))
        columns.append(first[inverse])
    row, column = np.concatenate(rows), np.concatenate(columns)
    _, label = connected_components(coo_array((np.ones(len(row)), (row, column)), shape=(nodes, nodes)), directed=False)
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    return integers(np.argsort(np.argsort(first))[inverse])


def grouped(key: Integers, value: Integers, keys: int) -> tuple[Integers, Integers]:
    """Values by their keys: those of key k are from ``start[k]`` to ``start[k + 1]``; ``start`` and the values."""
    start = np.zeros(keys + 1, dtype=np.int64)
    np.cumsum(np.bincount(key, minlength=keys), out=start[1:])
    return start, integers(value[np.argsort(key, kind="stable")])


def integers(values: Integers) -> Integers:
    """As compiled code takes them."""
    return np.ascontiguousarray(values, dtype=np.int64)


def floats(values: Floats | Integers) -> Floats:
    """As compiled code takes them."""
    return np.ascontiguousarray(values, dtype=np.float64)
