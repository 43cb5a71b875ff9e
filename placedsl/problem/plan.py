"""A plan: what a placement means for a runtime.  Ordered stages, their devices and nodes, and what they exchange.

A *stage* is what a device, or a group of devices, runs without a break; :attr:`Plan.kind` says in which sense:

``pipeline``        schedules of many samples, and every device holds one stage: the stages follow one another as the
                    forward part runs through them; the backward part runs in the reverse order (or in the same, where
                    the graph's edges say so)
``virtual_stages``  schedules of many samples where some device holds several stages: the maximal pieces of
                    :mod:`placedsl.problem.virtual_stages`, in a topological order
``calls``           ``schedule calls``: an uninterrupted call of an accelerator, or nodes of a host; topological
``devices``         ``schedule dataflow``: all that one device runs, by start times; stages stand by their first
                    start, and two may send to each other
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import isfinite, prod
from typing import Literal

from placedsl.graph.order import ranks
from placedsl.machine.link_names import along_route, through_memory
from placedsl.problem.execution import Communication, DataParallelism, Order, Run, Transfers
from placedsl.problem.placed import Placed
from placedsl.problem.problem import Problem
from placedsl.problem.virtual_stages import cut
from placedsl.records import dataclass

Kind = Literal["pipeline", "virtual_stages", "calls", "devices"]
#: Attributes of the graph's nodes that runtimes ask for: the layer and module of a node, its type, bytes of
#: weights, and the module whose weights it has as well.
ATTRIBUTES = ("layer", "module", "type", "parameters", "tied")


@dataclass(frozen=True)
class PlannedDevice:
    """A device of the machine, used or not.

    ``family``, ``number``  its declared name, and its place in it from 1 (``gpu[2]``: ``gpu``, 2)
    ``cluster``             the innermost cluster that it is in; empty: none
    """

    name: str
    kind: Literal["accelerator", "host"]
    family: str
    number: int
    cluster: str = ""


@dataclass(frozen=True)
class PlannedNode:
    """A node of the graph as written.

    ``operator``       the id of the fused operator that it is a member of; None: it runs by itself
    ``memory``         bytes that it occupies on an accelerator
    ``attributes``     those of :data:`ATTRIBUTES` that the graph gives it
    ``start``, ``finish``  of its operator, under a schedule of one sample; else None
    ``option``         the name of the option that it takes, where operators have options
    ``position``       its place, from 1, in a topological order of all nodes, the file's where it has one (0: unknown)
    """

    id: int | str
    name: str
    backward: bool = False
    operator: int | str | None = None
    memory: float = 0.0
    attributes: Mapping[str, float | str] | None = None
    start: float | None = None
    finish: float | None = None
    option: str | None = None
    position: int = 0

    def attribute(self, name: str) -> float | str | None:
        """The value of an attribute; None where the graph does not give it."""
        return (self.attributes or {}).get(name)


@dataclass(frozen=True)
class Transfer:
    """A tensor that one stage makes and another reads, for one sample.

    ``tensor``  its name: the id of the node that makes it, with its readers where that makes several
    ``source``, ``target``  numbers of stages
    ``size``    bytes; None where the graph does not say
    ``links``   the links on its way, by name; empty within a device, and where the spec declares none
    """

    tensor: str
    source: int
    target: int
    size: float | None
    links: tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """What a device, or several that share its samples, runs without a break.

    ``number``       from 1, in the order of the plan
    ``devices``      names, all that hold a copy, the leader first
    ``nodes``        nodes of the graph as written, in a topological order; by start times where there are any
    ``parallelism``  the degree of each kind of parallelism; ``data``: how many copies share the samples, ``tensor``:
                     how many devices each copy has, where the spec asks for a plan
    ``slot``         under schedule ``calls``, the number of an accelerator's call; else None
    ``start``, ``finish``  under schedules of one sample: when its first node starts and its last ends, with transfers
                     in and out of a call; else None
    ``in_flight``, ``load``, ``memory``  where the spec asks for a plan: samples that each copy holds at once, and
                     seconds per sample and bytes of each device
    ``across``       where copies of clusters share samples: by family, in how many clusters the same runs
    """

    number: int
    devices: tuple[str, ...]
    nodes: tuple[PlannedNode, ...]
    parallelism: Mapping[str, int]
    slot: int | None = None
    start: float | None = None
    finish: float | None = None
    in_flight: int | None = None
    load: float | None = None
    memory: float | None = None
    across: Mapping[str, int] | None = None
    chunk: int | None = None


@dataclass(frozen=True)
class Plan:
    """Stages in order, what they exchange, and how they are run.  Readable from the JSON of an answer alone.

    ``spec``           the name of the spec
    ``kind``           what a stage is, see the module
    ``run``, ``order``, ``communication``, ``routing``  the execution model, see
                       :class:`placedsl.problem.execution.Execution` (there ``transfers``; None: not a pipeline)
    ``devices``        all devices of the machine, in the order of declaration
    ``transfers``      between stages, by source, target and tensor
    ``microbatches``   samples of a batch, where the spec says how many
    """

    spec: str
    kind: Kind
    run: Run
    order: Order
    communication: Communication
    devices: tuple[PlannedDevice, ...]
    stages: tuple[Stage, ...]
    transfers: tuple[Transfer, ...]
    routing: Transfers | None = None
    microbatches: int | None = None

    def device(self, name: str) -> PlannedDevice:
        """The device of that name; KeyError when there is none."""
        return self._devices[name]

    @cached_property
    def _devices(self) -> Mapping[str, PlannedDevice]:
        return {device.name: device for device in self.devices}

    def receives(self, stage: int) -> tuple[Transfer, ...]:
        """The transfers into a stage, by number."""
        return self._by_stage[1].get(stage, ())

    def sends(self, stage: int) -> tuple[Transfer, ...]:
        """The transfers out of a stage, by number."""
        return self._by_stage[0].get(stage, ())

    @cached_property
    def _by_stage(self) -> tuple[Mapping[int, tuple[Transfer, ...]], Mapping[int, tuple[Transfer, ...]]]:
        """The transfers by source, and by target."""
        sent: dict[int, list[Transfer]] = {}
        received: dict[int, list[Transfer]] = {}
        for transfer in self.transfers:
            sent.setdefault(transfer.source, []).append(transfer)
            received.setdefault(transfer.target, []).append(transfer)
        source, target = ({stage: tuple(own) for stage, own in side.items()} for side in (sent, received))
        return source, target

    @classmethod
    def of(cls, problem: Problem, placed: Placed) -> Plan:
        """The plan of an evaluated placement; nodes that are on no device are in no stage."""
        placement = [-1] * problem.graph.nodes
        for device, nodes in enumerate(placed.nodes):
            for v in nodes:
                placement[v] = device
        sets = _sets(problem, placement, placed)
        devices = [placement[nodes[0]] for nodes in sets]
        kind: Kind = {"subgraph_calls": "calls", "operators": "devices"}.get(problem.execution.run, "pipeline")  # type: ignore[assignment]
        if kind == "pipeline" and len(set(devices)) < len(devices):
            kind = "virtual_stages"
        execution = problem.execution
        return cls(
            problem.name.strip("<>"), kind, execution.run, execution.order, execution.communication,
            devices_of(problem), tuple(_stages(problem, placed, sets, devices)),
            tuple(_transfers(problem, sets, devices)), None if execution.one_sample else execution.transfers,
            None if execution.data_parallelism is None else execution.data_parallelism.microbatches,
        )  # fmt: skip


def sharing(problem: Problem, placed: Placed) -> dict[int, int]:
    """The first device of its group for each device that holds a copy of another's nodes, by positions.

    The evaluation says how many devices share a stage; devices of a class are alike, so the next free ones do.
    """
    if problem.execution.data_parallelism is None:
        return {}
    tensor = placed.values.get("copy_size", {})
    levels, kinds = problem.execution.cluster_levels, problem.interchangeable().tolist()
    if levels is not None:
        clusters, held = placed.values.get("cluster_copies", {}), dict[int, int]()
        for (leader,), given in placed.values.get("copies", {}).items():
            if given >= 1:
                runs = prod(clusters.get((c,), 1.0) for c in levels.around[leader])
                held[leader] = round(given / max(1.0, runs) * tensor.get((leader,), 1.0))
        return levels.followers(held, clusters, kinds)
    free: dict[int, deque[int]] = {}
    for device, kind in enumerate(kinds):
        if not placed.nodes[device]:
            free.setdefault(kind, deque()).append(device)
    out: dict[int, int] = {}
    for (leader,), given in placed.values.get("copies", {}).items():
        number = given * tensor.get((leader,), 1.0)
        while number >= 2 and free.get(kinds[leader]):
            out[free[kinds[leader]].popleft()] = leader
            number -= 1
    return out


def _sets(problem: Problem, placement: Sequence[int], placed: Placed) -> list[list[int]]:
    """The nodes of each stage, stages in order."""
    graph, run = problem.graph, problem.execution.run
    if run == "operators":
        times = placed.times
        start = times.start if times is not None and len(times.start) == graph.nodes else [0.0] * graph.nodes
        own = [sorted(nodes, key=lambda v: (start[v], v)) for nodes in placed.nodes if nodes]
        return sorted(own, key=lambda nodes: start[nodes[0]])
    if run == "subgraph_calls":
        piece, accelerator = placed.values.get("piece", {}), problem.accelerators.tolist()
        owners: list[Hashable] = [(d, round(piece.get((v,), 1.0)) if d >= 0 and accelerator[d] else 0)
                                  for v, d in enumerate(placement)]  # fmt: skip
        pairs = zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)
    elif problem.execution.chunks > 1:
        return _in_turn(placement, placed)
    else:
        owners = list(placement)
        pairs = zip(problem.precedence_source.tolist(), problem.precedence_target.tolist(), strict=True)
    placed_sets = [nodes for nodes in cut(list(pairs), owners) if placement[nodes[0]] >= 0]
    number = placed.values.get("order", {})
    return sorted(placed_sets, key=lambda nodes: number.get((placement[nodes[0]],), 0.0))


def _in_turn(placement: Sequence[int], placed: Placed) -> list[list[int]]:
    """The nodes of each chunk of each stage: all first chunks, then all second ones."""
    chunk, number = placed.values["chunk"], placed.values["order"]
    held: dict[tuple[float, float, int], list[int]] = {}
    for v, d in enumerate(placement):
        if d >= 0:
            held.setdefault((chunk[v,], number.get((d,), 0.0), d), []).append(v)
    return [held[key] for key in sorted(held)]


def _stages(problem: Problem, placed: Placed, sets: Sequence[Sequence[int]], devices: Sequence[int]) -> list[Stage]:
    machine, graph = problem.machine, problem.graph
    group: dict[int, list[str]] = {}
    for follower, leader in sharing(problem, placed).items():
        group.setdefault(leader, []).append(machine.devices[follower].name)
    describe = _Nodes(problem, placed)
    calls = problem.execution.run == "subgraph_calls"
    piece = placed.values.get("piece", {}) if calls else {}
    out = []
    for number, (nodes, device) in enumerate(zip(sets, devices, strict=True), 1):
        held = (machine.devices[device].name, *group.get(device, ()))
        members = [
            describe.node(v) for v in sorted(graph.members(nodes), key=lambda v: (describe.start(v), describe.rank[v]))
        ]
        slot = round(piece.get((nodes[0],), 1.0)) if calls and machine.devices[device].kind == "accelerator" else None
        begins = [node.start for node in members if node.start is not None]
        ends = [node.finish for node in members if node.finish is not None]
        start, finish = (min(begins), max(ends)) if begins and ends else (None, None)
        if slot is not None and placed.times is not None:
            start, finish = placed.times.calls.get((device, slot), (start, finish))
        out.append(Stage(number, held, tuple(members), {"data": len(held)}, slot, start, finish))
    asked = problem.execution.data_parallelism
    if asked is None or asked.options is None:
        return out
    if asked.chunks > 1:
        return _chunked(asked, placed, out, devices, [round(placed.values["chunk"][nodes[0],]) for nodes in sets])
    planned = _planned(asked, placed, out, devices)
    if asked.across is None:
        return planned
    copies, families = placed.values["cluster_copies"], asked.across.families
    return [
        replace(stage, across={family: round(copies[cluster,])
                for family, cluster in zip(families, asked.across.around[device], strict=True)})
        for stage, device in zip(planned, devices, strict=True)
    ]  # fmt: skip


def _planned(sharing: DataParallelism, placed: Placed, stages: Sequence[Stage], devices: Sequence[int]) -> list[Stage]:
    """The stages of a plan, the input's first, with what each device of them does and holds."""
    copies = [round(placed.values["copies"][d,]) for d in devices]
    out, behind = [], sum(copies)
    for stage, device, own in zip(stages, devices, copies, strict=True):
        degrees = {"data": own, "tensor": round(placed.values["copy_size"][device,])}
        in_flight, behind = sharing.in_flight(max(1, own), behind), behind - own
        out.append(replace(stage, parallelism=degrees, in_flight=in_flight, load=placed.loads[device],
                           memory=placed.memory[device]))  # fmt: skip
    return out


def _chunked(
    sharing: DataParallelism, placed: Placed, stages: Sequence[Stage], devices: Sequence[int], chunks: Sequence[int]
) -> list[Stage]:
    """The chunks of a plan, the input's first; load and memory are those of a device with all its chunks."""
    order = list(dict.fromkeys(devices))
    out = []
    for stage, device, chunk in zip(stages, devices, chunks, strict=True):
        copies, tensor = (round(placed.values[name][device,]) for name in ("copies", "copy_size"))
        moments = sharing.held_at_once(max(1, copies), len(order), order.index(device))
        in_flight = max((held[chunk - 1] for held in moments if chunk <= len(held)), default=0)
        out.append(replace(stage, parallelism={"data": copies, "tensor": tensor}, in_flight=in_flight, chunk=chunk,
                           load=placed.loads[device], memory=placed.memory[device]))  # fmt: skip
    return out


class _Nodes:
    """Nodes of the graph as written, as a plan describes them."""

    def __init__(self, problem: Problem, placed: Placed) -> None:
        self.graph = problem.graph
        written, fusion = self.graph.written, self.graph.fusion
        self.node_of = list(range(written.nodes)) if fusion is None else fusion.node_of.tolist()
        self.fused = self.graph.fused()
        times = placed.times
        self.times = times if times is not None and len(times.start) == self.graph.nodes else None
        options, taken = problem.execution.options, placed.values.get("option", {})
        self.option = {} if options is None else {v: options.name[round(o)] for (v,), o in taken.items()}
        self.rank = ranks(written.nodes, written.edge_source, written.edge_target)
        self.columns = {name: written.attributes[name].tolist() for name in ATTRIBUTES if name in written.attributes}

    def start(self, v: int) -> float:
        """When the operator of a node starts; 0 without times."""
        return 0.0 if self.times is None else self.times.start[self.node_of[v]]

    def node(self, v: int) -> PlannedNode:
        """One of them, by its position in the graph as written."""
        written, operator = self.graph.written, self.graph.ids[self.node_of[v]]
        known = {name: column[v] for name, column in self.columns.items()}
        given = {name: x for name, x in known.items() if isinstance(x, str) or (x is not None and isfinite(x))}
        return PlannedNode(
            written.ids[v], str(written.names[v]), bool(written.backward[v]),
            operator if str(operator) in self.fused else None, float(written.memory[v]),
            given,
            None if self.times is None else float(self.times.start[self.node_of[v]]),
            None if self.times is None else float(self.times.finish[self.node_of[v]]),
            self.option.get(self.node_of[v]),
            self.rank[v] + 1,
        )  # fmt: skip


def _transfers(problem: Problem, sets: Sequence[Sequence[int]], devices: Sequence[int]) -> list[Transfer]:
    """Each tensor once for every stage that reads it and does not make it."""
    graph, machine, between = problem.graph, problem.machine, problem.device_to_device
    stage_of = {v: number for number, nodes in enumerate(sets) for v in nodes}
    reading: dict[tuple[int, int, int], None] = {}
    for tensor, reader in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
        source, target = stage_of.get(int(graph.tensor_producer[tensor])), stage_of.get(reader)
        if source is not None and target is not None and source != target:
            reading[source, target, tensor] = None
    sizes, ways = graph.tensor_bytes.tolist(), dict[tuple[int, int], tuple[str, ...]]()
    out = []
    for source, target, tensor in sorted(reading):
        ends = devices[source], devices[target]
        if ends not in ways:
            apart = ends[0] != ends[1]
            routed = along_route(machine, between, *ends) if between is not None else through_memory(machine, *ends)
            ways[ends] = routed if apart else ()
        size = sizes[tensor] if isfinite(sizes[tensor]) else None
        out.append(Transfer(graph.tensor_ids[tensor], source + 1, target + 1, size, ways[ends]))
    return out


def devices_of(problem: Problem) -> tuple[PlannedDevice, ...]:
    """All devices of the machine, in the order of declaration."""
    machine, seen = problem.machine, dict[str, int]()
    out = []
    for position, device in enumerate(machine.devices):
        seen[device.family] = seen.get(device.family, 0) + 1
        inside = machine.innermost(position)
        cluster = machine.clusters[inside].name if inside >= 0 else ""
        out.append(PlannedDevice(device.name, device.kind, device.family, seen[device.family], cluster))
    return tuple(out)
