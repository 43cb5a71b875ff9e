"""The problem: graph, machine, execution model, objectives and constraints, with all data in arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers, repeated
from placedsl.diagnostics import Span
from placedsl.graph.graph import Graph
from placedsl.machine.machine import Machine
from placedsl.machine.routes import TransferTimes, alike
from placedsl.problem.execution import Execution
from placedsl.problem.expressions import Binder, Expression, SetExpression, Sort
from placedsl.problem.streaming import Streaming, streaming_of
from placedsl.records import dataclass
from placedsl.units import NUMBER, Dimension, whole

#: Constraints known by name: their meaning is a formula in ``models/constraints.place``.  In a problem, ``boundaries``
#: is ``colocated``, by the sections of its attribute.
BUILT_IN = ("memory", "contiguous", "convex", "colocated", "boundaries", "sequential", "congestion")
#: What a constraint amounts to that every placement satisfies on devices which support its nodes.
SUPPORTED = "supported"


@dataclass(frozen=True)
class Constraint:
    """A constraint of the spec.

    ``built_in`` is the name of a built-in constraint, or empty for one that the user wrote; ``by``
    is the node attribute of ``colocated by``.  ``body`` is the formula in either case, ``label`` the
    number of its equation.  ``groups`` names the groups of nodes that must share a device, where a formula
    of the user says just that (empty: it does not); ``excludes``: its formula only says that some devices hold
    nothing, and the times of the problem are infinite there.
    """

    name: str
    built_in: str
    by: str
    body: Expression
    span: Span
    label: str = ""
    groups: str = ""
    excludes: bool = False

    @property
    def equivalent(self) -> str:
        """The built-in constraint that it is, or that its formula is equivalent to; ``supported``: it only says that
        devices hold nothing, which the running times say as well."""
        return "colocated" if self.groups else SUPPORTED if self.excludes else self.built_in


@dataclass(frozen=True)
class Variable:
    """``var name[binders]``: one decision for each combination that passes the binders' conditions.

    ``low`` and ``high`` are in SI units of ``dimension``.
    """

    name: str
    binders: tuple[Binder, ...]
    integer: bool
    low: float
    high: float
    span: Span
    dimension: Dimension = NUMBER

    @property
    def sorts(self) -> tuple[Sort, ...]:
        """The sorts of its indices."""
        return tuple(sort for binder in self.binders for sort in binder.sorts)


@dataclass(frozen=True)
class SoftConstraint:
    """A constraint that may be broken at a price: ``cost`` is what its breaking adds to the first objective."""

    name: str
    cost: Expression
    span: Span


@dataclass(frozen=True)
class Table:
    """The values of an indexed parameter (SI) by the positions of its indices."""

    sorts: tuple[Sort, ...]
    values: Mapping[tuple[int, ...], float | bool | str]


@dataclass(frozen=True)
class Objective:
    """Something to minimise; ``name`` is how answers call it, ``dimension`` that of its value."""

    name: str
    body: Expression
    dimension: Dimension
    span: Span


class Labels:
    """How messages and files call the elements of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._known: dict[Sort, dict[str, int]] = {}

    def of(self, sort: Sort, position: int) -> str:
        """The word for one element: a node's id (of a tensor its maker's, and its readers' where it makes several), a
        device's name, a number."""
        graph = self.problem.graph
        if sort == "node":
            return str(graph.ids[position])
        if sort == "device":
            return self.problem.machine.devices[position].name
        if sort == "tensor":
            return graph.tensor_ids[position]
        if sort == "cluster":
            return self.problem.machine.clusters[position].name
        if sort == "part":
            return ("forward", "backward")[position]
        return str(position)

    def position(self, sort: Sort, word: str) -> int | None:
        """The element that a word calls; None where there is none."""
        if sort not in self._known:
            sizes = {"node": self.problem.graph.nodes, "device": len(self.problem.machine.devices),
                     "tensor": self.problem.graph.tensors, "part": 2,
                     "cluster": len(self.problem.machine.clusters)}  # fmt: skip
            group = self.problem.groups.get(sort.partition(":")[2])
            count = sizes.get(sort, 0 if group is None else int(group.max(initial=-1)) + 1)
            self._known[sort] = {self.of(sort, position): position for position in range(count)}
        if sort == "integer":
            return whole(word)
        return self._known[sort].get(word)


@dataclass(frozen=True)
class Settings:
    """What the ``solve`` block pins; None is "not said".  ``places``: where its names stand."""

    time_limit: float | None = None
    gap: float | None = None
    solver: str | None = None
    method: str | None = None
    workers: int | None = None
    seed: int | None = None
    places: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a path to a placement needs.  n nodes, t tensors, D devices.

    ``time``      n x D running times; inf = not supported
    ``transfer``  t x D times to move a tensor between RAM and the device (0 on hosts)
    ``size``      t sizes: bytes where the graph gives them, else its transfer times
    ``precedence_source``, ``precedence_target``   node pairs along which a contiguous placement may only go forward
    ``orientation`` ``"against"``: the backward pass runs through the devices in the reverse order,
                  ``"along"``: in the same order, ``""``: there is no backward part
    ``sets``      the user's sets by name
    ``variables`` the spec's own decisions, beside the placement
    ``tables``    indexed parameters
    ``soft_constraints``  constraints with a price; their costs are in the first objective
    ``notes``     what is worth knowing about the data, in sentences
    ``has_user_formulations``  the spec writes or extends formulations, whose rows may rule out placements
    ``cluster_surcharge``  C x t: what a device pays on top of ``transfer`` for a tensor that it exchanges with the
                  outside of its cluster, for each of its clusters
    ``measured``  n x D: the time is given, by the graph or a profile, and not estimated; empty: all are
    ``groups``    per attribute that is partitioned by: n labels from 0
    ``device_to_device``  where tensors go from device to device: how long they take.  ``transfer`` and
                  ``cluster_surcharge`` are then what a device pays at least
    ``own_shares_exact``  what a device pays for a transfer is just that, whichever device is the other one
    """

    name: str
    graph: Graph
    machine: Machine
    execution: Execution
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]
    sets: Mapping[str, SetExpression]
    settings: Settings
    time: Floats
    transfer: Floats
    size: Floats
    precedence_source: Integers
    precedence_target: Integers
    orientation: str
    groups: Mapping[str, Integers] = field(default_factory=dict)
    time_unit: str = ""
    variables: Mapping[str, Variable] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    soft_constraints: tuple[SoftConstraint, ...] = ()
    notes: tuple[str, ...] = ()
    has_user_formulations: bool = False
    cluster_surcharge: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    device_to_device: TransferTimes | None = None
    measured: Booleans = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))
    own_shares_exact: bool = True

    def __post_init__(self) -> None:
        if not self.measured.size:
            object.__setattr__(self, "measured", np.isfinite(self.time))

    @property
    def accelerators(self) -> Booleans:
        """Which devices are accelerators."""
        return np.array([d.kind == "accelerator" for d in self.machine.devices], dtype=bool)

    @property
    def device_memory(self) -> Floats:
        """Memory of each device in bytes (inf: unlimited)."""
        return np.array([d.memory for d in self.machine.devices])

    @property
    def memory_limits(self) -> Floats:
        """Bytes that the nodes of each device may occupy (inf where the spec asks for no memory limit)."""
        limited = self.constraint("memory") is not None
        return self.device_memory if limited else np.full(len(self.machine.devices), np.inf)

    @cached_property
    def streaming(self) -> Streaming:
        """What each device streams for a sample of what does not fit."""
        return streaming_of(self.machine)

    def constraint(self, built_in: str) -> Constraint | None:
        """The built-in constraint by that name, if the spec asks for it."""
        return next((r for r in self.constraints if r.built_in == built_in), None)

    def colocation_groups(self) -> list[Integers]:
        """One label array a ``colocated by`` of the spec, or a constraint that is equivalent to one."""
        return [self.groups[r.groups or r.by] for r in self.constraints if r.equivalent == "colocated"]

    def interchangeable(self, clustered: bool = True) -> Integers:
        """A class number a device: devices of one class have the same kind, memory, times, transfers and clusters.

        ``clustered`` is false for whoever does not look at clusters.

        Custom constraints may still tell them apart; whoever breaks symmetry must look at those.
        """
        known = self._classes
        if clustered not in known:
            known[clustered] = self._interchangeable(clustered)
        return known[clustered]

    @cached_property
    def _classes(self) -> dict[bool, Integers]:
        return {}

    def _interchangeable(self, clustered: bool) -> Integers:
        keys: dict[tuple[object, ...], int] = {}
        key: tuple[object, ...]
        sharing = self.execution.data_parallelism
        between = None if self.execution.one_sample else self.device_to_device
        routes = None if between is None else alike(between)
        columns, streaming = [self.time, self.transfer], self.streaming
        if sharing is not None:
            columns.append(sharing.synchronisation)
            if sharing.options is not None:
                columns += [sharing.options.time, sharing.options.per_byte[None]]
        costs = np.stack([_equal_columns(one) for one in columns], axis=1).tolist()
        out = np.empty(len(self.machine.devices), dtype=np.int64)
        for i, device in enumerate(self.machine.devices):
            key = (device.kind, device.memory, *costs[i])
            if streaming.per_byte[i] > 0.0:
                key = (*key, streaming.per_byte[i], streaming.room[i], streaming.peaks[i])
            if clustered and self.machine.clusters:
                inside = self.machine.innermost(i)
                key = (*key, inside if inside >= 0 else device.name)
            if routes is not None:
                key = (*key, int(routes[i]))
            if sharing is not None:
                # What is said of a family, its price say, must hold for all that share a stage.
                key = (*key, device.family)
            out[i] = keys.setdefault(key, len(keys))
        out.setflags(write=False)
        return out


def _equal_columns(values: Floats) -> Integers:
    """A number per column, the same for columns that are equal bit by bit."""
    if not values.shape[0] or repeated(values):
        return np.zeros(values.shape[1], dtype=np.int64)
    bits = np.ascontiguousarray(values.T, dtype=float).view(np.int64)
    begins = np.concatenate(([True], (bits[1:] != bits[:-1]).any(axis=1)))  # most are like the one before
    known: dict[bytes, int] = {}
    runs = [known.setdefault(row.tobytes(), len(known)) for row in bits[begins]]
    numbers: Integers = np.array(runs, dtype=np.int64)[np.cumsum(begins) - 1]
    return numbers
