"""The data of a problem as plain lists: sets, members, attributes and labels of the elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite, nan
from typing import Any

import numpy as np

from placedsl.machine.routes import TransferTimes
from placedsl.problem.problem import Problem

#: Tables with more entries than this stay arrays.
_LISTED = 200_000


class ProblemData:
    """Everything an expression may ask of a problem, apart from the placement.

    ``sets``       by name: positions, or tuples of positions for sets of pairs
    ``members``    by sort of the owner: per owner the positions that belong to it
    ``attributes`` by sort and name: a value per element, or a list per device of each element
    """

    def __init__(self, problem: Problem) -> None:
        graph, devices = problem.graph, problem.machine.devices
        self.problem = problem
        self.nodes, self.tensors, self.devices = graph.nodes, graph.tensors, len(devices)
        self.node_names = [str(name) for name in graph.names]
        self.device_names = [d.name for d in devices]
        self.accelerator = [d.kind == "accelerator" for d in devices]
        self.device_memory = [float(d.memory) for d in devices]
        self.backward: list[bool] = [bool(b) for b in graph.backward.tolist()]
        self.memory: list[float] = graph.memory.tolist()
        self.time = _table(problem.time)
        self.transfer = _table(problem.transfer)
        self.cluster_surcharge: list[list[float]] = problem.cluster_surcharge.T.tolist()
        self.clusters_of: list[list[int]] = [[] for _ in devices]
        for device, cluster in problem.machine.memberships():
            self.clusters_of[device].append(cluster)
        self.size: list[float] = problem.size.tolist()
        self.producer: list[int] = graph.tensor_producer.tolist()
        self.edges: list[tuple[int, int]] = list(
            zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)
        )
        self.pairs: list[tuple[int, int]] = list(
            zip(problem.precedence_source.tolist(), problem.precedence_target.tolist(), strict=True)
        )
        self.reads: list[tuple[int, int]] = list(
            zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True)
        )
        self.readers: list[list[int]] = [[] for _ in range(self.tensors)]
        for tensor, reader in self.reads:
            self.readers[tensor].append(reader)
        self.sequential = problem.constraint("sequential") is not None
        self.congestion = {rule.by for rule in problem.constraints if rule.built_in == "congestion"}
        self.groups: dict[str, list[int]] = {name: label.tolist() for name, label in problem.groups.items()}
        self.group_members = {name: _members(labels) for name, labels in self.groups.items()}
        options = problem.execution.options
        self.option_names: tuple[str, ...] = () if options is None else options.labels
        self.sets: dict[str, Sequence[Any]] = self._sets()
        self.members: dict[str, list[list[int]]] = {
            "part": [list(self.sets["forward"]), list(self.sets["backward"])],
            "tensor": self.readers,
            "cluster": [list(cluster.devices) for cluster in problem.machine.clusters],
        } | {f"group:{name}": members for name, members in self.group_members.items()}
        self.attributes: dict[tuple[str, str], Sequence[Any]] = self._attributes()

    def _sets(self) -> dict[str, Sequence[Any]]:
        everyone, clusters = range(self.devices), self.problem.machine.clusters
        sets: dict[str, Sequence[Any]] = {
            "nodes": range(self.nodes),
            "forward": [v for v in range(self.nodes) if not self.backward[v]],
            "backward": [v for v in range(self.nodes) if self.backward[v]],
            "devices": everyone,
            "accelerators": [d for d in everyone if self.accelerator[d]],
            "hosts": [d for d in everyone if not self.accelerator[d]],
            "tensors": range(self.tensors),
            "edges": self.edges,
            "reads": self.reads,
            "clusters": range(len(clusters)),
            "memberships": self.problem.machine.memberships(),
            "cluster_levels": range(1, self.problem.machine.levels + 1),
        }
        moves = self.problem.device_to_device
        if moves is not None:
            pairs = ((a, b) for a in everyone for b in everyone)
            sets["links"] = range(len(moves.hop_ends))
            sets["hops"] = [(int(link), a, b) for a, b in pairs for link in moves.hops(a, b)]
        sets["options"] = range(len(self.option_names))
        for c, cluster in enumerate(clusters):
            if not cluster.alone:
                sets[cluster.family] = [*sets.get(cluster.family, ()), c]
        families: dict[str, list[int]] = {}
        for d, device in enumerate(self.problem.machine.devices):
            families.setdefault(device.family, []).append(d)
        partitions = {f"partition:{name}": range(len(m)) for name, m in self.group_members.items()}
        return sets | families | partitions

    def _attributes(self) -> dict[tuple[str, str], Sequence[Any]]:
        graph, devices = self.problem.graph, self.problem.machine.devices
        attributes: dict[tuple[str, str], Sequence[Any]] = {
            ("node", "name"): self.node_names,
            ("node", "id"): [str(i) for i in graph.ids],
            ("node", "memory"): self.memory,
            ("node", "backward"): self.backward,
            ("node", "time"): self.time,
            ("node", "supported"): _table(np.isfinite(self.problem.time)),
            ("node", "measured"): _table(self.problem.measured),
            ("tensor", "producer"): self.producer,
            ("tensor", "size"): self.size,
            ("tensor", "transfer"): self.transfer,
            ("tensor", "leaving"): self.cluster_surcharge,
            ("option", "name"): list(self.option_names),
            ("cluster", "name"): [c.name for c in self.problem.machine.clusters],
            ("cluster", "level"): [float(c.level) for c in self.problem.machine.clusters],
            ("device", "name"): self.device_names,
            ("device", "family"): [d.family for d in devices],
            ("device", "kind"): [d.kind for d in devices],
            ("device", "number"): self._numbers(),
            ("device", "memory"): self.device_memory,
            ("device", "class"): [float(number) for number in self.problem.interchangeable().tolist()],
        }
        moves = self.problem.device_to_device
        if moves is not None:
            attributes["tensor", "move"] = [_Rows(self.devices, partial(moves.time, t)) for t in range(self.tensors)]
            attributes["tensor", "reaches"] = [
                _Rows(self.devices, partial(_reaches, moves, t)) for t in range(self.tensors)
            ]
            attributes["link", "name"] = [self.label("link", k) for k in self.sets["links"]]
        replication = self.problem.execution.data_parallelism
        if replication is not None:
            attributes["node", "synchronisation"] = _table(replication.synchronisation)
        for name, values in graph.attributes.items():
            attributes.setdefault(("node", name), values.tolist())
        for name in {k for d in devices for k in d.attributes}:
            missing = 0.0 if name in ("streams", "reserve") else nan
            attributes.setdefault(("device", name), [d.attributes.get(name, missing) for d in devices])
        for name in {k for d in devices for k in d.texts}:
            attributes.setdefault(("device", name), [d.texts.get(name) for d in devices])
        for name, members in self.group_members.items():
            attributes[f"group:{name}", "first"] = [m[0] if m else self.nodes for m in members]
        return attributes

    def _numbers(self) -> list[float]:
        """The number of each device within its family, from 1."""
        count: dict[str, int] = {}
        out = []
        for device in self.problem.machine.devices:
            count[device.family] = count.get(device.family, 0) + 1
            out.append(float(count[device.family]))
        return out

    def between(self, tensor: int, source: int, target: int) -> float:
        """How long a tensor takes from one device to another, where it goes directly."""
        moves = self.problem.device_to_device
        assert moves is not None
        return float(moves.time(tensor, source, target))

    def label(self, sort: str, position: int) -> str:
        """How a message calls an element."""
        if sort == "node":
            return self.node_names[position]
        if sort == "device":
            return self.device_names[position]
        if sort == "tensor":
            return f"tensor of {self.problem.graph.tensor_names[position]}"
        if sort == "cluster":
            return self.problem.machine.clusters[position].name
        if sort == "link" and self.problem.device_to_device is not None:
            a, b = self.problem.device_to_device.hop_ends[position]
            return f"{self.device_names[a]} -> {self.device_names[b]}"
        if sort == "option":
            return self.option_names[position]
        if sort == "part":
            return ("forward", "backward")[position]
        if sort.startswith("group:"):
            name = sort.partition(":")[2]
            return f"{name} of {self.node_names[self.group_members[name][position][0]]}"
        return str(position)


def _reaches(moves: TransferTimes, tensor: int, source: int, target: int) -> bool:
    return isfinite(float(moves.time(tensor, source, target)))


class _Row(Sequence[Any]):
    """A row of a table as Python's numbers."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: Any) -> Any:
        return self.values[at].tolist()


class _Table(Sequence[Sequence[Any]]):
    """The rows of a table that is too large for lists of Python's numbers."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: Any) -> Any:
        return _Row(self.values[row])


def _table(values: np.ndarray) -> Sequence[Sequence[Any]]:
    """The rows of an array."""
    lists: list[list[Any]] = values.tolist() if values.size <= _LISTED else []
    return lists if values.size <= _LISTED else _Table(values)


class _Rows:
    """Rows of a square of values that are worked out when they are asked for."""

    def __init__(self, size: int, value: Callable[[int, int], Any]) -> None:
        self.size, self.value = size, value

    def __getitem__(self, row: int) -> list[Any]:
        return [self.value(row, column) for column in range(self.size)]


def _members(labels: list[int]) -> list[list[int]]:
    """Nodes by label, in order of position."""
    out: list[list[int]] = [[] for _ in range(max(labels, default=-1) + 1)]
    for node, label in enumerate(labels):
        out[label].append(node)
    return out
