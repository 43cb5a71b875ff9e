"""A measured model as a graph for training: a forward and a backward node for each layer or module."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from placedsl.arrays import Floats
from placedsl.graph.readers import module_paths

#: What the id of a backward node has behind that of its forward node.
BACKWARD = ".backward"


@dataclass(frozen=True)
class MeasuredUnit:
    """A layer or module.

    ``weights``, ``made``, ``saved``  bytes of its parameters, of what it returns, and of what it keeps for its backward
                                      pass beside its parameters
    ``sources``  positions of the units that made what it reads; empty: it reads what the one before it made
    """

    path: str
    type: str
    weights: float
    made: float
    saved: float
    sources: tuple[int, ...]


def training_graph(units: Sequence[MeasuredUnit], seconds: Floats, device: str) -> str:
    """The project's own JSON; ``seconds``: of the forward nodes, then of the backward ones, on a device of this name.

    A forward node holds the weights, a backward node their gradients.  A backward node reads what its forward node
    keeps for it, and gradients of the size of what the forward nodes exchange.
    """
    count = len(units)
    nodes, edges = list[dict[str, object]](), list[dict[str, object]]()
    for backward in (False, True):
        for k, unit in enumerate(units):
            attributes: dict[str, float | str] = {"module": unit.path, "type": unit.type, "activations": unit.saved}
            if (layer := module_paths.layer(unit.path)) is not None:
                attributes["layer"] = layer
            attributes["parameters"] = unit.weights if backward else 0.0  # exchanged when the gradients are known
            node: dict[str, object] = {
                "id": unit.path + BACKWARD * backward, "time": {device: float(seconds[k + count * backward])},
                "memory": unit.weights, "attributes": attributes,
            }  # fmt: skip
            nodes.append(node | ({"backward": True} if backward else {"output": unit.made}))
    for k, unit in enumerate(units):
        for source in unit.sources or ((k - 1,) if k else ()):
            edges.append({"from": units[source].path, "to": unit.path})
            edges.append({"from": unit.path + BACKWARD, "to": units[source].path + BACKWARD,
                          "output": units[source].made})  # fmt: skip
        edges.append({"from": unit.path, "to": unit.path + BACKWARD, "output": unit.saved})
    graph = {"format": "placedsl-graph", "version": 1, "time_unit": "s", "nodes": nodes, "edges": edges}
    return json.dumps(graph, indent=1, ensure_ascii=False) + "\n"
