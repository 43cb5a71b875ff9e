"""The computation graph: operators, what they cost, and the tensors that flow between them.

Cost arrays are indexed by node position (the order of the file).  A *tensor* is what one
node writes and some nodes read: moving it in or out of a device is paid once per device,
however many of its readers sit there.  A node has one tensor that its edges share, and
one for each edge that has a size of its own.  Where a format gives costs by edge only, a
node whose edges differ in cost has one tensor an edge (the subdivision of Tarnawski et al.
2020, Appendix B, without the artificial nodes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from placedsl.arrays import Booleans, Column, Floats, Integers
from placedsl.diagnostics import Source
from placedsl.graph.options import OperatorOptions
from placedsl.records import dataclass

T = TypeVar("T")

#: So many readers are named with a tensor.
_SHOWN = 3


@dataclass(frozen=True)
class Folded:
    """What reading a model left out: the names of the operators, those of what they make, and their types."""

    names: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()


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
                         ``accelerators``, ``hosts``, ``memory`` (bytes an accelerator); with
                         ``tensor_matrix`` the memory of each device by its name, in the order of the matrices
    ``tensor_matrix``    t x D x D transfer times from device to device, in the order of the file's devices (None: the
                         file has no such profile)
    ``fusion``           where nodes were fused: the graph as written, and what became of it
    ``measured``         times of a profile by device kind, family or device name: n seconds each (nan: not measured);
                         they go before ``time`` and before what is estimated
    ``notes``            what is worth knowing about the file, in sentences
    ``folded``           operators of a model that depend on no input, and so are no nodes
    ``options``          ways to run the nodes, where there are several; ``time`` is then the least of each

    Attributes ``flops`` (operations) and ``bytes`` (read and written) stand for the times of nodes that have none.
    """

    ids: tuple[int | str, ...]
    names: tuple[str, ...]
    time: Mapping[str, Floats]
    memory: Floats
    backward: Booleans
    attributes: Mapping[str, Column]
    edge_source: Integers
    edge_target: Integers
    edge_tensor: Integers
    tensor_producer: Integers
    tensor_time: Floats
    tensor_bytes: Floats
    time_in_seconds: bool
    source: Source
    deployment: Mapping[str, float] = field(default_factory=dict)
    tensor_matrix: Floats | None = None
    fusion: Fusion | None = None
    measured: Mapping[str, Floats] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    folded: Folded = field(default_factory=Folded)
    options: OperatorOptions | None = None

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.ids)

    @property
    def tensors(self) -> int:
        """How many tensors there are."""
        return len(self.tensor_producer)

    @property
    def unmeasured(self) -> Booleans:
        """The nodes that give no time at all, but operations or bytes to estimate it from."""
        return untimed(self.nodes, self.time) & known_work(self.nodes, self.attributes)

    def in_seconds(self, unit: float) -> Graph:
        """The same graph with its times in seconds; ``unit`` is the graph's own unit in seconds."""
        time = {k: v * unit for k, v in self.time.items()}
        matrix = None if self.tensor_matrix is None else self.tensor_matrix * unit
        return replace(
            self, time=time, tensor_time=self.tensor_time * unit, time_in_seconds=True, tensor_matrix=matrix,
            options=None if self.options is None else self.options.in_units(unit),
        )  # fmt: skip

    @property
    def written(self) -> Graph:
        """The graph as it was written, before nodes were fused."""
        return self if self.fusion is None else self.fusion.original

    @cached_property
    def tensor_names(self) -> tuple[str, ...]:
        """A name for each tensor, no two alike: its maker's; where that makes several also who reads it."""
        return _tensor_words(self, [str(name) for name in self.names])

    @cached_property
    def tensor_ids(self) -> tuple[str, ...]:
        """The same from the nodes' ids."""
        return _tensor_words(self, self.written_ids.tolist())

    @cached_property
    def written_ids(self) -> Column:
        """The nodes' ids as text."""
        return np.array([str(own) for own in self.ids], dtype=object)

    def spread(self, values: Sequence[T]) -> list[T]:
        """What each node has, for each node of the graph as written: members have what their operator has."""
        return list(values) if self.fusion is None else [values[v] for v in self.fusion.node_of.tolist()]

    def members(self, nodes: Iterable[int]) -> list[int]:
        """The nodes of the graph as written that these nodes stand for, in its order."""
        if self.fusion is None:
            return list(nodes)
        chosen = np.zeros(self.nodes, dtype=bool)
        chosen[list(nodes)] = True
        return np.flatnonzero(chosen[self.fusion.node_of]).tolist()

    def fused(self) -> dict[str, list[int | str]]:
        """The ids of the members of each operator that was made of several, by its own id."""
        if self.fusion is None:
            return {}
        members: list[list[int | str]] = [[] for _ in self.ids]
        for node, operator in zip(self.written.ids, self.fusion.node_of.tolist(), strict=True):
            members[operator].append(node)
        return {str(own): of for own, of in zip(self.ids, members, strict=True) if len(of) > 1}


@dataclass(frozen=True, eq=False)
class Fusion:
    """How the graph as written became one of fused operators.

    ``original``   the graph as written, n nodes and t tensors
    ``node_of``    n positions: the operator that each node is part of
    ``tensor_of``  t positions; -1 for tensors that never leave one operator
    ``made``       what fused how many operators, as the spec says it
    ``unclear``    attributes in which members of some operator differ, and the id of such an operator
    ``before``     the graph before the last of several steps, ``step`` the operator that each of its nodes is part of;
                   ``one_kernel``: this step fused chains that a device runs as one kernel
    """

    original: Graph
    node_of: Integers
    tensor_of: Integers
    before: Graph
    step: Integers
    one_kernel: bool
    made: tuple[tuple[str, int], ...]
    unclear: Mapping[str, int | str]


def _tensor_words(graph: Graph, words: Sequence[str]) -> tuple[str, ...]:
    """``a``, or ``a for b, c``; with a number where that is not enough."""
    makers = graph.tensor_producer.tolist()
    made = Counter(makers)
    if len(made) == len(makers) == len({words[maker] for maker in makers}):
        return tuple([words[maker] for maker in makers])
    readers: list[list[str]] = [[] for _ in makers]
    for tensor, reader in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
        if made[makers[tensor]] > 1:
            readers[tensor].append(words[reader])
    out = []
    for maker, read in zip(makers, readers, strict=True):
        shown = dict.fromkeys(read)
        more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
        for_whom = f" for {', '.join(list(shown)[:_SHOWN])}{more}" if shown else ""
        out.append(words[maker] + for_whom)
    alike = Counter(out)
    return tuple(f"{word} (tensor {number})" if alike[word] > 1 else word for number, word in enumerate(out))


def untimed(nodes: int, time: Mapping[str, Floats]) -> Booleans:
    """Which nodes have a time on no device."""
    out = np.ones(nodes, dtype=bool)
    for values in time.values():
        out &= np.isinf(values)
    return out


def known_work(nodes: int, attributes: Mapping[str, Column]) -> Booleans:
    """Which nodes give operations or bytes, from which times can be estimated."""
    out = np.zeros(nodes, dtype=bool)
    for name in ("flops", "bytes"):
        column = attributes.get(name)
        if column is not None and column.dtype.kind == "f":
            out |= ~np.isnan(column.astype(float))
    return out


def uneven_edges(source: Integers, edge_costs: Floats, node_count: int) -> Booleans:
    """Which edges start at a node whose edges differ in cost.  ``source`` and ``edge_costs`` have one entry an edge.

    Where a format gives costs by edge and says nothing of tensors, each of these is a tensor of its own.  Source:
    Tarnawski et al. 2020, Appendix B, "Non-uniform outgoing communication costs".
    """
    least = np.full(node_count, np.inf)
    most = np.full(node_count, -np.inf)
    np.minimum.at(least, source, edge_costs)
    np.maximum.at(most, source, edge_costs)
    return np.asarray((most > least)[source], dtype=bool)


def tensors_of_edges(source: Integers, apart: Booleans, node_count: int) -> tuple[Integers, Integers, Integers]:
    """Group edges into tensors: one for each edge that is ``apart``, and one a node for all its others.

    ``source`` and ``apart`` have one entry an edge.  Returns ``edge_tensor`` (a tensor an edge), ``producer`` (a node a
    tensor) and ``first_edge`` (an edge a tensor, from which the tensor's cost is read).
    """
    only = np.bincount(source, minlength=node_count)[source] == 1
    # Edges that share their node's tensor share a key; an edge with a tensor of its own has a key of its own.
    key = np.where(apart & ~only, node_count + np.arange(len(source)), source)
    _, first_edge, edge_tensor = np.unique(key, return_index=True, return_inverse=True)
    return edge_tensor.astype(np.int64), source[first_edge], first_edge.astype(np.int64)
