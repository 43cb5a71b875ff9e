"""One sample through uninterrupted calls, as arrays for the search's kernels.   Tarnawski et al. 2020, section 4.

A node's *place* is ``device * pieces + piece - 1``, piece 1 on hosts.  The nodes of one place on an accelerator are one
call; on a host each node runs by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.calls_kernel import Calls, evaluate, scratch
from placedsl.expressions import Provided
from placedsl.graph.graph import Floats, Integers
from placedsl.graph.order import renumbered, together, topological
from placedsl.problem import Problem

#: What the evaluator allows memory to be exceeded by, relatively.
TOLERANCE = 1e-9
#: The rules that the search keeps to; a circle of calls is never feasible.
_KNOWN = ("memory", "colocated")


def fits(problem: Problem) -> list[str]:
    """Why the search does not know all that the problem asks for, in the user's words; empty: it does."""
    against = structure(problem)
    against += [f"it does not know the constraint {r.name}" for r in problem.rules if r.built_in not in _KNOWN]
    if problem.soft or problem.variables:
        against.append("it does not know soft constraints, nor variables of the spec's own")
    if problem.own_formulations:
        against.append("it does not look at formulations, and the spec has its own")
    return against


def structure(problem: Problem) -> list[str]:
    """Why the problem is not that of the least latency by calls: then no bound holds either."""
    against = []
    goal = problem.objectives[0].body
    if not (isinstance(goal, Provided) and goal.name == "latency"):
        against.append(f"it minimises latency, not {problem.objectives[0].name}")
    if problem.schedule != "calls":
        against.append(f"it does not know schedule {problem.schedule}")
    if problem.machine.clusters:
        against.append("it does not know clusters")
    if problem.replication is not None:
        against.append("it does not know devices that share a stage")
    return against


def calls_of(problem: Problem) -> Calls:
    """The arrays of a problem; constraints other than memory and colocation are left out."""
    limited = problem.rule("memory") is not None
    devices = len(problem.machine.devices)
    return arrays(
        time=problem.time.T, transfer=problem.transfer.T, memory=problem.graph.memory,
        capacity=problem.device_memory if limited else np.full(devices, np.inf), host=~problem.accelerators,
        pieces=int(getattr(problem, "pieces", 1)), groups=problem.colocation_groups(),
        producer=problem.graph.tensor_producer, read_tensor=problem.graph.edge_tensor,
        reader=problem.graph.edge_target,
    )  # fmt: skip


def arrays(
    *,
    time: Floats,
    transfer: Floats,
    memory: Floats,
    capacity: Floats,
    host: np.ndarray,
    pieces: int,
    groups: list[Integers],
    producer: Integers,
    read_tensor: Integers,
    reader: Integers,
) -> Calls:
    """The arrays from plain ones: ``time`` D x n, ``transfer`` D x t, one ``read_tensor`` and ``reader`` an edge.

    ``groups``: label arrays, nodes of one label share a device.
    """
    nodes, tensors = time.shape[1], len(producer)
    unit = together(nodes, groups) if groups else np.arange(nodes)
    unit = renumbered(unit)
    units = int(unit.max(initial=-1)) + 1
    pairs = np.unique(np.stack((read_tensor, reader), axis=1).reshape(-1, 2), axis=0)
    order = topological(nodes, producer[pairs[:, 0]], pairs[:, 1])
    assert order is not None  # a graph is acyclic once it is read
    rank = np.empty(nodes, dtype=np.int64)
    rank[order] = np.arange(nodes)
    by_unit, by_maker = np.argsort(unit, kind="stable"), np.argsort(producer, kind="stable")
    by_reader = np.argsort(pairs[:, 1], kind="stable")
    return Calls(
        time=np.ascontiguousarray(time, dtype=float), transfer=np.ascontiguousarray(transfer, dtype=float),
        memory=np.ascontiguousarray(memory, dtype=float), capacity=capacity * (1.0 + TOLERANCE),
        host=np.ascontiguousarray(host, dtype=bool), pieces=pieces, unit=unit,
        unit_start=np.searchsorted(unit[by_unit], np.arange(units + 1)), unit_node=by_unit,
        producer=producer.astype(np.int64),
        read_start=np.searchsorted(pairs[:, 0], np.arange(tensors + 1)), reader=pairs[:, 1].astype(np.int64),
        made_start=np.searchsorted(producer[by_maker], np.arange(nodes + 1)), made=by_maker,
        taken_start=np.searchsorted(pairs[by_reader, 1], np.arange(nodes + 1)),
        taken=pairs[by_reader, 0].astype(np.int64), order=order.astype(np.int64), rank=rank,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Answer:
    """A device and a piece (from 1) for each node, and the latency."""

    placement: Integers
    piece: Integers
    latency: float

    @property
    def values(self) -> Mapping[str, Mapping[tuple[int, ...], int]]:
        """The piece of each node, as answers have it."""
        return {"piece": {(v,): int(p) for v, p in enumerate(self.piece.tolist())}}


def answer_of(calls: Calls, place: Integers) -> Answer:
    """What places say."""
    return Answer(place // calls.pieces, place % calls.pieces + 1, latency_of(calls, place))


def places_of(calls: Calls, placement: Integers, piece: Integers | None = None) -> Integers:
    """The places of a device and a piece (1 where nothing is said) for each node."""
    chosen = np.zeros(len(placement), dtype=np.int64) if piece is None else piece - 1
    return np.asarray(placement, dtype=np.int64) * calls.pieces + np.where(calls.host[placement], 0, chosen)


def latency_of(calls: Calls, place: Integers) -> float:
    """The latency of places; inf where memory, support or colocation is violated, or calls wait in a circle."""
    device = place // calls.pieces
    nodes = np.arange(len(place))
    if (np.bincount(device, weights=calls.memory, minlength=len(calls.capacity)) > calls.capacity).any():
        return np.inf
    first = calls.unit_node[calls.unit_start[:-1]]
    if (device != device[first][calls.unit]).any() or not np.isfinite(calls.time[device, nodes]).all():
        return np.inf
    return float(evaluate(calls, place, scratch(calls)))
