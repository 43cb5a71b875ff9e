"""What a file of a runtime is read against: the nodes, edges and devices of a problem, without a placement."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

from placedsl.diagnostics import Diagnostic, InputError, Source, Span, UsageError, nearest
from placedsl.export.layout import described
from placedsl.export.servers import RANKS
from placedsl.graph.layers import Unit, Units, units
from placedsl.graph.order import topological
from placedsl.graph.readers import load, load_graph
from placedsl.problem.plan import ATTRIBUTES, PlannedDevice, PlannedNode, devices_of
from placedsl.problem.problem import Problem
from placedsl.system import paths

_RANKS = re.compile(re.escape(RANKS.removeprefix("# ")) + r"(.*)")
_VISIBLE = re.compile(r"CUDA_VISIBLE_DEVICES[ ]?[=:][ ]?['\"]?(\d{1,9}(?:,\d{1,9})*)")


@dataclass(frozen=True)
class Split:
    """What a file of a runtime says: the device of each node, and values of variables, as answers have them."""

    placement: Mapping[str, str]
    variables: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Given:
    """The file that somebody runs with, or the folder."""

    path: Path

    def has(self, name: str) -> bool:
        """Whether the folder holds a file."""
        return paths.is_folder(self.path) and paths.is_file(self.path / name)

    def file(self, *names: str) -> Source:
        """The file itself, or the first of these in the folder; UsageError where there is none."""
        if not paths.is_folder(self.path):
            return _loaded(self.path)
        for name in names:
            if self.has(name):
                return _loaded(self.path / name)
        raise UsageError(f"'{self.path}' holds no {' and no '.join(names)}")

    def beside(self, name: str) -> Source | None:
        """A file of the folder, or one beside the file, whose name may stand before its own; None: there is none."""
        folder = self.path if paths.is_folder(self.path) else self.path.parent
        own = folder / f"{self.path.name}.{name}"
        found = own if paths.is_file(own) else folder / name
        return _loaded(found) if paths.is_file(found) else None


def _loaded(path: Path) -> Source:
    """A text, or where its name says so an ONNX model."""
    return load_graph(path) if path.suffix == ".onnx" else load(path)


@dataclass(frozen=True)
class Model:
    """The nodes of a problem in a topological order, which is that of the file where the file has one.

    ``edges``   pairs of positions: the second node reads what the first makes
    ``units``   layers, and modules with weights
    ``source``  the graph's file
    """

    nodes: tuple[PlannedNode, ...]
    edges: tuple[tuple[int, int], ...]
    devices: tuple[PlannedDevice, ...]
    units: Units
    source: Source
    shared: bool = False

    @classmethod
    def of(cls, problem: Problem) -> Model:
        """The model of a problem; members of fused operators stand by themselves."""
        graph = problem.graph.written
        order = topological(graph.nodes, graph.edge_source, graph.edge_target)
        assert order is not None, "graphs are acyclic"
        rank = {v: k for k, v in enumerate(order.tolist())}
        columns = {name: graph.attributes[name].tolist() for name in ATTRIBUTES if name in graph.attributes}
        nodes = []
        for k, v in enumerate(order.tolist()):
            known = {name: column[v] for name, column in columns.items()}
            given = {name: x for name, x in known.items() if isinstance(x, str) or (x is not None and isfinite(x))}
            nodes.append(
                PlannedNode(graph.ids[v], str(graph.names[v]), bool(graph.backward[v]), None, float(graph.memory[v]),
                            given, position=k + 1)
            )  # fmt: skip
        pairs = zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)
        edges = tuple((rank[u], rank[v]) for u, v in pairs)
        sharing = problem.execution.data_parallelism
        return cls(tuple(nodes), edges, devices_of(problem), units(described(nodes)), graph.source,
                   sharing is not None and sharing.options is None)  # fmt: skip

    @property
    def accelerators(self) -> tuple[str, ...]:
        """Names, in the order of declaration."""
        return tuple(device.name for device in self.devices if device.kind == "accelerator")

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names, in the order of declaration."""
        return tuple(device.name for device in self.devices if device.kind == "host")

    @property
    def layers(self) -> tuple[Unit, ...]:
        """The layers, in order."""
        return self.units.layers

    def in_stages(self, stage_of: Mapping[int, int], devices: Sequence[Sequence[str]]) -> Split:
        """The split of units into stages; ``stage_of``: by position of the unit, ``devices``: of each stage.

        Glue goes where its last input comes from, and where it has none, to its first reader.
        """
        known = {v: stage_of[u] for v, u in enumerate(self.units.of_node) if u in stage_of}
        place = self._with_glue(known)
        placement = {str(node.id): devices[place[v]][0] for v, node in enumerate(self.nodes)}
        copies = {own[0]: len(own) for own in devices}
        if self.shared and any(number > 1 for number in copies.values()):
            return Split(placement, {"copies": {d.name: copies.get(d.name, 0) for d in self.devices}})
        return Split(placement)

    def of_nodes(self, stage_of: Mapping[int, int], devices: Sequence[Sequence[str]]) -> Split:
        """The split of single nodes into stages, by position; the rest goes with its unit, or as glue."""
        known = dict(stage_of)
        unit_stage: dict[int, int] = {}
        for v, u in enumerate(self.units.of_node):
            if u >= 0 and v in stage_of:
                unit_stage.setdefault(u, stage_of[v])
        for v, u in enumerate(self.units.of_node):
            if v not in known and u in unit_stage:
                known[v] = unit_stage[u]
        place = self._with_glue(known)
        return Split({str(node.id): devices[place[v]][0] for v, node in enumerate(self.nodes)})

    def on_devices(self, device_of: Mapping[int, str]) -> Split:
        """The split of single nodes over devices, by position; glue goes where its last input comes from, and where it
        has none, to its first reader."""
        order = list(dict.fromkeys(device_of[v] for v in sorted(device_of)))
        before: dict[int, list[int]] = {}
        after: dict[int, list[int]] = {}
        for u, v in self.edges:
            before.setdefault(v, []).append(u)
            after.setdefault(u, []).append(v)
        out = dict(device_of)
        for v in range(len(self.nodes)):
            inputs = [u for u in before.get(v, ()) if u in out]
            if v not in out and inputs:
                out[v] = out[max(inputs)]
        for v in reversed(range(len(self.nodes))):
            if v not in out:
                out[v] = next((out[w] for w in sorted(after.get(v, ())) if w in out), order[0])
        return Split({str(node.id): out[v] for v, node in enumerate(self.nodes)})

    def within(self, path: str) -> list[int]:
        """The forward nodes of a module and of what is within it, by position."""
        out = []
        for v, node in enumerate(self.nodes):
            own = str(node.attribute("module") or "")
            u = self.units.of_node[v]
            unit = self.units.units[u].module if u >= 0 else ""
            if not node.backward and (path in (own, unit) or own.startswith(path + ".")):
                out.append(v)
        return out

    def nearest_module(self, path: str) -> str:
        """The module whose path is nearest, as a hint."""
        return nearest(path, sorted({unit.module for unit in self.units.units if unit.module}))

    def _with_glue(self, known: Mapping[int, int]) -> dict[int, int]:
        """The stage of every node."""
        before: dict[int, list[int]] = {}
        after: dict[int, list[int]] = {}
        for u, v in self.edges:
            before.setdefault(v, []).append(u)
            after.setdefault(u, []).append(v)
        out = dict(known)
        for v, node in enumerate(self.nodes):
            inputs = [u for u in before.get(v, ()) if u in out]
            passed = [u for u in inputs if node.backward and self.nodes[u].backward]
            if v not in out and inputs:
                out[v] = min(out[u] for u in passed) if passed else max(out[u] for u in inputs)
        for v in reversed(range(len(self.nodes))):
            read = [out[w] for w in after.get(v, ()) if w in out]
            if v not in out:
                out[v] = min(read, default=min(known.values(), default=0))
        return out

    def layers_in_stages(self, counts: Sequence[int], devices: Sequence[Sequence[str]]) -> Split:
        """Runs of so many layers a stage; what comes before them is in the first, what comes after in the last."""
        ends = [sum(counts[: k + 1]) for k in range(len(counts))]
        stage_of, layer, last = {}, 0, len(counts) - 1
        for u, unit in enumerate(self.units.units):
            if unit.layer is not None:
                stage_of[u] = next(k for k, end in enumerate(ends) if layer < end)
                layer += 1
            else:
                stage_of[u] = 0 if layer == 0 else last
        return self.in_stages(stage_of, devices)

    def ranks(self, number: int, text: str, source: Source | None, each: int = 1) -> list[list[str]]:
        """The devices of each of so many stages: those that a text names in the order of the ranks, or those of its
        CUDA_VISIBLE_DEVICES, else the first ones.

        ``each``: devices of a stage that stand one after another.
        """
        names = self.accelerators
        order = visible(text) if (told := _RANKS.search(text)) is None else self._positions(told[1], source)
        if order is None:
            order = list(range(number * each))
        if len(order) < number * each or any(k >= len(names) for k in order[: number * each]):
            place = None if source is None else source.whole()
            hint = f"accelerators are numbered from 0 in the order of declaration: {', '.join(names) or 'none'}"
            message = f"{number * each} devices are needed, and the spec has {len(names)} accelerators"
            if len(order) < number * each:
                says = "CUDA_VISIBLE_DEVICES" if told is None else "this file"
                message = f"{says} names {len(order)} devices, and {number * each} are needed"
            raise InputError([Diagnostic(message, place, hint)])
        chosen = [names[k] for k in order[: number * each]]
        return [chosen[k * each : (k + 1) * each] for k in range(number)]

    def _positions(self, listed: str, source: Source | None) -> list[int]:
        """The positions of accelerators that are named one after another; InputError where the spec has none such."""
        out = []
        for name in (part.strip() for part in listed.split(",")):
            if name not in self.accelerators:
                place = None if source is None else source.whole()
                raise wrong(f"the spec has no accelerator '{name}'", place, nearest(name, self.accelerators))
            out.append(self.accelerators.index(name))
        return out


def visible(text: str) -> list[int] | None:
    """The numbers of CUDA_VISIBLE_DEVICES, where a text sets them, in a comment too."""
    match = _VISIBLE.search(text)
    return None if match is None else [int(part) for part in match[1].split(",")]


def setting(text: str, name: str) -> tuple[str, int, int] | None:
    """The value that a file of environment variables gives a name, and where it stands."""
    offset = 0
    for line in text.splitlines(keepends=True):
        key, equals, value = line.removeprefix("export ").partition("=")
        if equals and key.strip() == name:
            begin = offset + line.index("=") + 1
            return value.strip().strip("'\""), begin, begin + max(1, len(value.rstrip()))
        offset += len(line)
    return None


def wrong(message: str, place: Span | None, hint: str = "") -> InputError:
    """What is wrong with a file."""
    return InputError([Diagnostic(message, place, hint)])


def layers_expected(model: Model, source: Source) -> None:
    """InputError where the graph does not say which nodes are layers."""
    if not model.layers:
        hint = "give the nodes an attribute 'layer', or a 'module' as in model.layers.3.mlp"
        raise wrong("the graph of the spec says of no node which layer it is part of", source.whole(), hint)


def counts_of(model: Model, text: str, source: Source, place: Span) -> list[int]:
    """Layers per stage from numbers with commas; InputError where they are none, or do not add up."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise wrong(f"'{text}' are no whole numbers with commas between them", place, "as in 2,3,1")
    counts = [int(part) for part in parts]
    layers_expected(model, source)
    if sum(counts) != len(model.layers):
        message = f"{' + '.join(parts)} = {sum(counts)} layers, and the model of the spec has {len(model.layers)}"
        raise wrong(message, place)
    if 0 in counts:
        raise wrong(f"stage {counts.index(0) + 1} holds no layer", place, "every stage holds one layer or more")
    return counts
