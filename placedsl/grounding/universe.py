"""What the sets, relations and attributes of an expression are, as arrays.

There are two universes: the problem as the user wrote it, and its quotient, in which nodes that must
share a device are one and tensors with the same ends are one.  A formulation is grounded over the
quotient, the constraints of a spec over the problem; ``to_quotient`` carries elements across.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.graph.contraction import Quotient, contract
from placedsl.graph.order import csr
from placedsl.graph.order import turns as turns_of_nodes
from placedsl.grounding.likeness import Likeness
from placedsl.grounding.plan_universe import of_plans
from placedsl.problem.expressions import Sort
from placedsl.problem.problem import Problem
from placedsl.problem.streaming import RESERVE, STREAMS
from placedsl.records import dataclass

Column = np.ndarray


@dataclass(frozen=True, eq=False)
class Relation:
    """Members of each owner, by rows: owner i has ``member[start[i]:start[i+1]]``."""

    start: Integers
    member: Integers


@dataclass(frozen=True, eq=False)
class Universe:
    """Sizes and labels by sort, set members, relations by owner sort, attribute columns.

    ``attributes`` maps (sort, name) to one value an element, or elements x devices.
    """

    sizes: Mapping[Sort, int]
    labels: Mapping[Sort, tuple[str, ...]]
    sets: Mapping[str, tuple[Integers, ...]]
    relations: Mapping[Sort, Relation]
    attributes: Mapping[tuple[Sort, str], Column]

    def label(self, sort: Sort, position: int) -> str:
        """The user's word for an element."""
        return str(position) if sort == "integer" else self.labels[sort][position]


def relation(owner: Integers, member: Integers, owners: int) -> Relation:
    """A relation from its pairs."""
    return Relation(*csr(owner, member, owners))


def quotient_of(problem: Problem, contracted: bool, merge: bool = True) -> Quotient:
    """Contract what must share a device; without ``contracted``, every node stays one of its own.

    Without ``merge`` every tensor does.
    """
    graph = problem.graph
    contiguous = contracted and problem.constraint("contiguous") is not None
    return contract(
        memory=graph.memory,
        work=problem.time.T,
        groups=problem.colocation_groups() if contracted else [],
        before=problem.precedence_source if contiguous else None,
        after=problem.precedence_target if contiguous else None,
        tensor_producer=graph.tensor_producer,
        read_tensor=graph.edge_tensor,
        read_node=graph.edge_target,
        transfer=problem.transfer.T,
        merge=merge,
    )


def _options(problem: Problem) -> tuple[str, ...]:
    """The names of options, where there is a choice."""
    costs = problem.execution.options
    return () if costs is None else costs.labels


def _members(problem: Problem) -> Relation:
    """The devices of each cluster."""
    clusters = problem.machine.clusters
    pairs = np.array([(i, d) for i, c in enumerate(clusters) for d in c.devices], dtype=np.int64).reshape(-1, 2)
    return relation(pairs[:, 0], pairs[:, 1], len(clusters))


def _machine(problem: Problem) -> tuple[dict[str, tuple[Integers, ...]], dict[tuple[Sort, str], Column]]:
    devices = problem.machine.devices
    everyone = np.arange(len(devices))
    sets: dict[str, tuple[Integers, ...]] = {
        "devices": (everyone,),
        "accelerators": (everyone[problem.accelerators],),
        "hosts": (everyone[~problem.accelerators],),
    }
    for family in {d.family for d in devices}:
        sets[family] = (np.array([i for i, d in enumerate(devices) if d.family == family]),)
    attributes: dict[tuple[Sort, str], Column] = {("device", "memory"): problem.device_memory}
    count: dict[str, int] = {}
    number = [count.setdefault(d.family, 0) for d in devices]
    for i, device in enumerate(devices):
        count[device.family] += 1
        number[i] = count[device.family]
    clusters = problem.machine.clusters
    pairs = np.array(problem.machine.memberships(), dtype=np.int64).reshape(-1, 2)
    sets |= {
        "clusters": (np.arange(len(clusters)),), "memberships": (pairs[:, 0], pairs[:, 1]),
        "cluster_levels": (np.arange(1, problem.machine.levels + 1),),
    }  # fmt: skip
    sharing = problem.execution.data_parallelism
    degrees = (1,) if sharing is None else sharing.degrees
    sets |= {
        "passes": (np.arange(1, problem.execution.passes + 1),), "replicas": (np.array(degrees, dtype=np.int64),),
    }  # fmt: skip
    sets["options"] = (np.arange(len(_options(problem))),)
    attributes["option", "name"] = np.array(_options(problem), dtype=object)
    for family in {c.family for c in clusters if not c.alone}:
        sets[family] = (np.array([i for i, c in enumerate(clusters) if c.family == family]),)
    attributes["cluster", "name"] = np.array([c.name for c in clusters], dtype=object)
    attributes["cluster", "level"] = np.array([c.level for c in clusters], dtype=float)
    attributes["device", "class"] = problem.interchangeable().astype(float)
    attributes["device", "number"] = np.array(number, dtype=float)
    for name in ("name", "family", "kind"):
        attributes["device", name] = np.array([getattr(d, name) for d in devices], dtype=object)
    for name in {STREAMS, RESERVE} | {k for d in devices for k in d.attributes}:
        missing = 0.0 if name in (STREAMS, RESERVE) else np.nan
        attributes["device", name] = np.array([d.attributes.get(name, missing) for d in devices])
    attributes["device", "reserves_peak"] = problem.streaming.peaks
    for name in {k for d in devices for k in d.texts}:
        attributes["device", name] = np.array([d.texts.get(name) for d in devices], dtype=object)
    return sets, attributes


def _between(
    problem: Problem, tensor_of: Integers, tensors: int
) -> tuple[dict[str, tuple[Integers, ...]], dict[tuple[Sort, str], Column], tuple[str, ...]]:
    """Directed links, routes over them, and how long tensors take between devices; the names of the links.

    ``tensor_of``: per tensor of the graph that of the universe (-1: none); the times of those that are one add up.
    """
    moves, devices = problem.device_to_device, problem.machine.devices
    none = np.zeros(0, dtype=np.int64)
    sets: dict[str, tuple[Integers, ...]] = {"pieces": (np.arange(1, problem.execution.slots + 1),)}
    if moves is None:
        return sets | {"links": (none,), "hops": (none, none, none)}, {}, ()
    pair = np.repeat(np.arange(len(devices) ** 2), np.diff(moves.hop_start))
    sets |= {"links": (np.arange(len(moves.hop_ends)),), "hops": (moves.hop, pair // len(devices), pair % len(devices))}
    source, target = np.indices((len(devices), len(devices)))
    kept = np.flatnonzero(tensor_of >= 0)
    move = np.zeros((tensors, *source.shape))
    np.add.at(move, tensor_of[kept], moves.time(kept[:, None, None], source[None], target[None]))
    called = [device.name for device in devices]
    names = tuple([f"{called[a]} -> {called[b]}" for a, b in moves.hop_ends.tolist()])
    columns: dict[tuple[Sort, str], Column] = {
        ("tensor", "move"): move, ("tensor", "reaches"): np.isfinite(move),
        ("link", "name"): np.array(names, dtype=object),
    }  # fmt: skip
    return sets, columns, names


def original(problem: Problem) -> Universe:
    """The universe of the problem as written."""
    graph = problem.graph
    n, t = graph.nodes, graph.tensors
    sets, attributes = _machine(problem)
    nodes = np.arange(n)
    sets |= {
        "nodes": (nodes,), "forward": (nodes[~graph.backward],), "backward": (nodes[graph.backward],),
        "tensors": (np.arange(t),), "edges": (graph.edge_source, graph.edge_target),
        "reads": (graph.edge_tensor, graph.edge_target),
    }  # fmt: skip
    attributes |= {
        ("node", "name"): np.array(graph.names, dtype=object),
        ("node", "id"): graph.written_ids,
        ("node", "memory"): graph.memory, ("node", "backward"): graph.backward,
        ("node", "time"): problem.time, ("node", "supported"): np.isfinite(problem.time),
        ("node", "measured"): problem.measured,
        ("tensor", "producer"): graph.tensor_producer, ("tensor", "size"): problem.size,
        ("tensor", "transfer"): problem.transfer, ("tensor", "leaving"): problem.cluster_surcharge.T,
    }  # fmt: skip
    if problem.execution.data_parallelism is not None:
        attributes["node", "synchronisation"] = problem.execution.data_parallelism.synchronisation
    for name, values in graph.attributes.items():
        attributes.setdefault(("node", name), values)
    part = graph.backward.astype(np.int64)
    relations = {
        "part": relation(part, nodes, 2),
        "tensor": relation(graph.edge_tensor, graph.edge_target, t),
        "cluster": _members(problem),
    }
    devices = problem.machine.devices
    more_sets, more, links = _between(problem, np.arange(t), t)
    sets, attributes = sets | more_sets, attributes | more
    sizes: dict[Sort, int] = {"node": n, "tensor": t, "device": len(devices), "part": 2, "link": len(links),
                              "cluster": len(problem.machine.clusters), "option": len(_options(problem))}  # fmt: skip
    labels: dict[Sort, tuple[str, ...]] = {
        "node": graph.names, "tensor": graph.tensor_names, "device": tuple(d.name for d in devices),
        "part": ("forward", "backward"), "cluster": tuple(c.name for c in problem.machine.clusters), "link": links,
        "option": _options(problem),
    }  # fmt: skip
    for name, group in problem.groups.items():
        sort = f"group:{name}"
        count = int(group.max()) + 1 if n else 0
        sizes[sort] = count
        relations[sort] = relation(group, nodes, count)
        sets[f"partition:{name}"] = (np.arange(count),)
        first = np.full(count, n)
        np.minimum.at(first, group, nodes)
        attributes[sort, "first"] = first
        labels[sort] = tuple(f"{name} of {graph.names[i]}" for i in first)
    return Universe(sizes, labels, sets, relations, attributes)


def of_quotient(problem: Problem, quotient: Quotient, likeness: Likeness | None = None) -> Universe:
    """The universe of the quotient; ``likeness``: what nothing tells apart."""
    graph = problem.graph
    units, t = quotient.units, len(quotient.tensor_producer)
    sets, attributes = _machine(problem)
    pins = np.diff(quotient.pin_start)
    tensor = np.repeat(np.arange(t), pins)
    reader = np.ones(len(quotient.pin_unit), dtype=bool)
    reader[quotient.pin_start[:-1]] = False
    read_tensor, read_unit = tensor[reader], quotient.pin_unit[reader]
    backward = np.ones(units, dtype=bool)
    np.logical_and.at(backward, quotient.unit_of_node, graph.backward)
    size = np.zeros(t)
    kept = quotient.tensor_of >= 0
    np.add.at(size, quotient.tensor_of[kept], problem.size[kept])
    further = np.zeros((t, len(problem.machine.clusters)))
    np.add.at(further, quotient.tensor_of[kept], problem.cluster_surcharge.T[kept])
    everyone = np.arange(units)
    measured = problem.measured
    if units < graph.nodes:
        measured = np.ones((units, len(problem.machine.devices)), dtype=bool)
        np.logical_and.at(measured, quotient.unit_of_node, problem.measured)
    sets |= {
        "nodes": (everyone,), "forward": (everyone[~backward],), "backward": (everyone[backward],),
        "tensors": (np.arange(t),), "edges": (quotient.tensor_producer[read_tensor], read_unit),
        "reads": (read_tensor, read_unit),
    }  # fmt: skip
    attributes |= {
        ("node", "memory"): quotient.memory, ("node", "backward"): backward,
        ("node", "time"): quotient.work.T, ("node", "supported"): np.isfinite(quotient.work.T),
        ("node", "measured"): measured,
        ("tensor", "producer"): quotient.tensor_producer, ("tensor", "size"): size,
        ("tensor", "transfer"): quotient.transfer.T, ("tensor", "leaving"): further,
    }  # fmt: skip
    if problem.execution.data_parallelism is not None:
        whole = np.zeros((units, len(problem.machine.devices)))
        np.add.at(whole, quotient.unit_of_node, problem.execution.data_parallelism.synchronisation)
        attributes["node", "synchronisation"] = whole
    first = np.full(units, graph.nodes)
    np.minimum.at(first, quotient.unit_of_node, np.arange(graph.nodes))
    members = np.bincount(quotient.unit_of_node, minlength=units)
    names = graph.names
    if units < graph.nodes:
        names = tuple([
            graph.names[i] + (f" and {m - 1} more" if m > 1 else "")
            for i, m in zip(first.tolist(), members.tolist(), strict=True)
        ])  # fmt: skip
    if units == graph.nodes:  # nothing was contracted: each unit is one node
        own = {"name": np.array(graph.names, dtype=object), "id": graph.written_ids}
        if problem.execution.streams == "peak":
            turn = turns_of_nodes(graph.nodes, graph.edge_source, graph.edge_target)[first]
            last = np.zeros(t, dtype=np.int64)
            np.maximum.at(last, read_tensor, turn[read_unit])
            attributes |= {("node", "turn"): turn, ("tensor", "last_turn"): last}
        for name, values in {**graph.attributes, **own}.items():
            attributes.setdefault(("node", name), values[first])
    devices = problem.machine.devices
    more_sets, more, links = _between(problem, quotient.tensor_of, t)
    plans = of_plans(problem, quotient.tensor_of, likeness)
    sets, attributes = {**sets, **more_sets, **plans.sets}, {**attributes, **more, **plans.attributes}
    return Universe(
        {"node": units, "tensor": t, "device": len(devices), "part": 2, "cluster": len(problem.machine.clusters),
         "link": len(links), "option": len(_options(problem)), **plans.sizes},
        {"node": names, "tensor": tuple(names[p] for p in quotient.tensor_producer.tolist()),
         "device": tuple(d.name for d in devices), "part": ("forward", "backward"),
         "cluster": tuple(c.name for c in problem.machine.clusters), "link": links,
         "option": _options(problem), **plans.labels},
        sets,
        {"part": relation(backward.astype(np.int64), everyone, 2), "tensor": relation(read_tensor, read_unit, t),
         "cluster": _members(problem)},
        attributes,
    )  # fmt: skip


def to_quotient(quotient: Quotient) -> Mapping[Sort, Integers]:
    """Element of the problem to element of the quotient, by sort (absent: the same positions)."""
    return {"node": quotient.unit_of_node, "tensor": quotient.tensor_of}


__all__ = ["Floats", "Relation", "Universe", "of_quotient", "original", "quotient_of", "to_quotient"]
