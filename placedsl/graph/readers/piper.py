"""Workloads of Tarnawski et al. 2021 (msr-fiddle/piper, as JSON): layers with options by degree of tensor parallelism.

Each edge is a tensor of its own, as in the paper: three readers pay three times.  A tensor goes forward over its edge,
and its gradient back; both are in the sizes here, and in what options gather and scatter.  The files do not say what
their times are in: a spec does.  Published results take them for seconds, also where they are milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from placedsl.diagnostics import Source, Span
from placedsl.graph.build import Place, build
from placedsl.graph.graph import Graph
from placedsl.graph.options import Moved, OperatorOptions
from placedsl.graph.readers.records import Document, word

_NODE = ("id", "name", "TMPCs")
_EDGE = ("sourceId", "destId", "communicationCost")
_OPTION = ("id", "timePerSample", "parameterSize", "memoryUsageA", "memoryUsageB", "syncTimeFw", "syncTimeBw")
#: What a file may say of the machine and the run; published results were computed with other numbers.
_MACHINE = ("maxDevices", "maxMemoryPerDevice", "bandwidth", "mbsInBatch", "maxBatchSize")
#: Forward and back.
_WAYS = 2.0


def looks_like(root: object) -> bool:
    """Whether a JSON value is of this format."""
    if not (isinstance(root, dict) and "format" not in root and isinstance(root.get("nodes"), list)):
        return False
    return any(isinstance(node, dict) and "TMPCs" in node for node in root["nodes"])


def read(source: Source) -> Graph:
    """Read a workload; raises InputError with every defect."""
    document = Document(source)
    document.known((), document.root, (*_MACHINE, "description", "nodes", "edges"))
    nodes, edges = document.records("nodes"), document.records("edges")
    ids, names = [], []
    for i, node in enumerate(nodes):
        document.known(("nodes", i), node, _NODE)
        ids.append(document.identifier(("nodes", i), node, "id"))
        names.append(document.text(("nodes", i), node, "name", str(ids[-1])))
    pairs, size = [], np.zeros(len(edges))
    for i, edge in enumerate(edges):
        at = ("edges", i)
        document.known(at, edge, _EDGE)
        pairs.append((document.identifier(at, edge, "sourceId"), document.identifier(at, edge, "destId")))
        size[i] = _WAYS * document.number(at, edge, "communicationCost")
    document.stop()
    options = _Options(document, pairs)
    for i, node in enumerate(nodes):
        options.of_node(i, ids[i], node)
    document.stop()
    known = options.known()
    least = np.full(len(nodes), np.inf)
    np.minimum.at(least, known.node, known.time["accelerator"])
    fields = {"source": "sourceId", "target": "destId", "cost": "communicationCost", "time": "TMPCs"}

    def locate(place: Place) -> Span:
        path: list[str | int] = [] if place.kind == "graph" else [place.kind + "s"]
        if place.index is not None:
            path.append(place.index)
            path.append(fields.get(place.field or "", place.field or ""))
        return document.span(*path)

    types = np.array([str(name) for name in names], dtype=object)
    graph = build(
        source=source, ids=ids, names=_told_apart(names, ids), time={"accelerator": least}, memory=np.zeros(len(nodes)),
        backward=np.zeros(len(nodes), dtype=bool), attributes={"type": types}, edges=pairs, edge_time=None,
        edge_bytes=size, own_edges=range(len(edges)), time_in_seconds=False, locate=locate,
    )  # fmt: skip
    own = [moved._replace(tensor=graph.edge_tensor[moved.tensor]) for moved in (known.gathered, known.scattered)]
    return replace(graph, options=replace(known, gathered=own[0], scattered=own[1]))


def _told_apart(names: list[str], ids: list[int | str]) -> list[str]:
    """Layers of one type have one name in these files."""
    count = Counter(names)
    return [f"{name} {own}" if count[name] > 1 else name for name, own in zip(names, ids, strict=True)]


class _Options:
    """The columns of the options, node by node; what is moved is told by edge in place of tensor."""

    def __init__(self, document: Document, pairs: list[tuple[int | str, int | str]]) -> None:
        self.document = document
        self.rows: list[tuple[int, str, int, float, float, float, float]] = []
        self.gathered: list[tuple[int, int, float]] = []
        self.scattered: list[tuple[int, int, float]] = []
        self.into: dict[int | str, dict[str, int]] = {}
        self.out_of: dict[int | str, dict[str, int]] = {}
        for edge, (u, v) in enumerate(pairs):
            self.into.setdefault(v, {})[str(u)] = edge
            self.out_of.setdefault(u, {})[str(v)] = edge

    def of_node(self, i: int, own: int | str, node: Mapping[str, Any]) -> None:
        """Read the options of node i."""
        document, given = self.document, node.get("TMPCs")
        at = ("nodes", i, "TMPCs")
        if not isinstance(given, dict):
            what = "is missing" if "TMPCs" not in node else f"is {word(given)}"
            document.error(("nodes", i) if given is None else at, f"'TMPCs' {what}: lists of options by degree")
            return
        before = len(self.rows)
        for degree, listed in given.items():
            if not (degree.isascii() and degree.isdigit() and int(degree) >= 1):
                document.error((*at, degree), f"'{degree}' is no degree of tensor parallelism", "1, 2, 4 … is expected")
            elif not isinstance(listed, list):
                document.error((*at, degree), f"a list of options is expected, this is {word(listed)}")
            else:
                for k, option in enumerate(listed):
                    self._read((*at, degree, k), i, own, int(degree), option)
        if len(self.rows) == before and not document.found:
            document.error(at, f"node '{own}' has no option at all", "it could not run")

    def _read(self, at: tuple[str | int, ...], i: int, own: int | str, degree: int, option: Any) -> None:
        document = self.document
        if not isinstance(option, dict):
            document.error(at, f"an option is an object, this is {word(option)}")
            return
        document.known(at, option, _OPTION)
        numbers = [document.number(at, option, key) for key in _OPTION[1:5]]
        row = len(self.rows)
        self.rows.append((i, document.text(at, option, "id", ""), degree, *numbers))  # type: ignore[arg-type]
        sides = (self.into, self.gathered), (self.out_of, self.scattered)
        for key, (known, into) in zip(_OPTION[5:], sides, strict=True):
            edges = known.get(own, {})
            moved = option.get(key, {})
            if not isinstance(moved, dict):
                document.error((*at, key), f"'{key}' is an object of bytes by node, this is {word(moved)}")
                continue
            for other in moved:
                if other not in edges:
                    side = "to" if key == "syncTimeFw" else "from"
                    hint = f"edges lead {'from' if side == 'to' else 'to'} " + (", ".join(edges) or "no node")
                    document.error((*at, key, other), f"there is no edge between '{own}' and '{other}' here", hint)
                else:
                    into.append((row, edges[other], _WAYS * document.number((*at, key), moved, other)))

    def known(self) -> OperatorOptions:
        """All that were read."""
        node, name, degree, time, parameters, stash, memory = (list(c) for c in zip(*self.rows, strict=True))
        return OperatorOptions(
            np.array(node, dtype=np.int64), tuple(name), np.array(degree, dtype=np.int64),
            {"accelerator": np.array(time, float)}, np.array(parameters, float), np.array(stash, float),
            np.array(memory, float), np.zeros(len(node)), Moved.of(self.gathered), Moved.of(self.scattered),
        )  # fmt: skip
