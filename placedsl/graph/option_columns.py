"""Options of operators put together row by row, as readers of graphs meet them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from placedsl.arrays import Floats
from placedsl.graph.graph import Graph
from placedsl.graph.options import Moved, OperatorOptions

#: Bytes of an option on each of its devices.
AMOUNTS = ("parameters", "stash", "memory", "sharded")
#: What options move beside tensors: on the way in, and on the way out.
Side = Literal["gather", "scatter"]
MOVED: tuple[Side, Side] = ("gather", "scatter")
_Id = int | str


class OptionColumns:
    """Rows of options; what they move is told by edge in place of tensor.

    ``edges`` are pairs of ids, ``own`` the positions of those with a tensor of their own.  ``known`` holds node, name
    and degree of every row.
    """

    def __init__(self, edges: Sequence[tuple[_Id, _Id]], own: Collection[int]) -> None:
        self.known: set[tuple[int, str, int]] = set()
        self._rows: list[tuple[int, str, int, Mapping[str, float], tuple[float, ...]]] = []
        #: By side, row and tensor: an edge of the tensor, and the bytes.
        self._moved: dict[str, dict[tuple[int, _Id | tuple[int]], tuple[int, float]]] = {side: {} for side in MOVED}
        self._tensor = [(edge,) if edge in own else u for edge, (u, _) in enumerate(edges)]
        self._edges: dict[str, dict[_Id, dict[str, int]]] = {side: {} for side in MOVED}
        for edge, (u, v) in enumerate(edges):
            self._edges["gather"].setdefault(v, {})[str(u)] = edge
            self._edges["scatter"].setdefault(u, {})[str(v)] = edge

    def __len__(self) -> int:
        return len(self._rows)

    def edges(self, side: Side, own: _Id) -> Mapping[str, int]:
        """The edges that lead into a node, or out of it, by the id at their other end."""
        return self._edges[side].get(own, {})

    def add(self, node: int, name: str, degree: int, times: Mapping[str, float], amounts: Mapping[str, float]) -> int:
        """A row: seconds by kind of device, and bytes by :data:`AMOUNTS`."""
        self.known.add((node, name, degree))
        self._rows.append((node, name, degree, times, tuple(amounts[key] for key in AMOUNTS)))
        return len(self._rows) - 1

    def move(self, side: Side, row: int, edge: int, amount: float) -> bool:
        """What a row moves beside the tensor of an edge; False where it moves something else beside that already."""
        known = self._moved[side].setdefault((row, self._tensor[edge]), (edge, amount))
        return known[1] == amount

    def least_times(self, count: int) -> dict[str, Floats]:
        """By kind of device, the least time of each node over its options; inf: none runs there."""
        out: dict[str, Floats] = {}
        for i, _, _, times, _ in self._rows:
            for kind, time in times.items():
                column = out.setdefault(kind, np.full(count, np.inf))
                column[i] = min(column[i], time)
        return out

    def added_to(self, graph: Graph) -> Graph:
        """The graph with the options, if there are any."""
        if not self._rows:
            return graph
        node, name, degree, times, amounts = (list(c) for c in zip(*self._rows, strict=True))
        kinds = dict.fromkeys(kind for row in times for kind in row)
        edge_tensor = graph.edge_tensor.tolist()
        moved = [
            Moved.of([(row, edge_tensor[edge], amount) for (row, _), (edge, amount) in self._moved[side].items()])
            for side in MOVED
        ]
        options = OperatorOptions(
            np.array(node, dtype=np.int64), tuple(name), np.array(degree, dtype=np.int64),
            {kind: np.array([row.get(kind, np.inf) for row in times]) for kind in kinds},
            *np.array(amounts, dtype=float).T, *moved,
        )  # fmt: skip
        return replace(graph, options=options)
