"""The computation graph: operators, what they cost, and the tensors that flow between them.

Cost arrays are indexed by node position (the order of the file).  A *tensor* is what one
node writes and some nodes read: moving it in or out of a device is paid once per device,
however many of its readers sit there.  A node whose outgoing edges all bear one cost has
one tensor; a node whose edges differ has one tensor an edge (the subdivision of
Tarnawski et al. 2020, Appendix B, without the artificial nodes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from placedsl.diagnostics import Source

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Graph:
    """A directed acyclic computation graph with n nodes, m edges and t tensors.

    ``ids``              n node ids as the file has them (``int`` or ``str``)
    ``names``            n readable names (the id as text where the file gives none)
    ``time``             per device kind, family or device name: n times; inf = not supported.
                         Seconds when ``time_in_seconds``, else the graph's own unit
    ``memory``           n sizes in bytes that a node occupies on an accelerator
    ``backward``         n flags: the node belongs to the backward part of a training graph
    ``attributes``       further node attributes by name: float arrays (nan = absent) or
                         object arrays of text (None = absent)
    ``edge_source``, ``edge_target``   m node positions each
    ``edge_tensor``      m tensor positions: which tensor flows along the edge
    ``tensor_producer``  t node positions
    ``tensor_time``      t transfer times between a device and RAM (nan: only bytes are known)
    ``tensor_bytes``     t sizes (nan: only times are known)
    ``deployment``       what the file says of the machine it is meant for (may be empty):
                         ``accelerators``, ``hosts``, ``memory`` (bytes an accelerator)
    """

    ids: tuple[int | str, ...]
    names: tuple[str, ...]
    time: Mapping[str, Floats]
    memory: Floats
    backward: Booleans
    attributes: Mapping[str, NDArray[np.float64] | NDArray[np.object_]]
    edge_source: Integers
    edge_target: Integers
    edge_tensor: Integers
    tensor_producer: Integers
    tensor_time: Floats
    tensor_bytes: Floats
    time_in_seconds: bool
    source: Source
    deployment: Mapping[str, float] = field(default_factory=dict)

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.ids)

    @property
    def tensors(self) -> int:
        """How many tensors there are."""
        return len(self.tensor_producer)


def tensors_of_edges(source: Integers, edge_costs: Floats, node_count: int) -> tuple[Integers, Integers, Integers]:
    """Group edges into tensors: one a node, or one an edge where a node's edges differ in cost.

    ``source`` and ``edge_costs`` have one entry an edge.  Returns ``edge_tensor`` (a tensor
    an edge), ``producer`` (a node a tensor) and ``first_edge`` (an edge a tensor, from which
    the tensor's cost is read).  Source: Tarnawski et al. 2020, Appendix B, "Non-uniform
    outgoing communication costs".
    """
    edges = len(source)
    least = np.full(node_count, np.inf)
    most = np.full(node_count, -np.inf)
    np.minimum.at(least, source, edge_costs)
    np.maximum.at(most, source, edge_costs)
    uneven = (most > least)[source] if edges else np.zeros(0, dtype=bool)
    # Edges of one even node share a key; an edge of an uneven node has a key of its own.
    key = np.where(uneven, node_count + np.arange(edges), source)
    _, first_edge, edge_tensor = np.unique(key, return_index=True, return_inverse=True)
    return edge_tensor.astype(np.int64), source[first_edge], first_edge.astype(np.int64)
