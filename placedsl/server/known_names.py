"""The names that a document can use, as far as they are known: from its data, else from what is always there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from placedsl.diagnostics import Source
from placedsl.graph.graph import Graph
from placedsl.language.checking.vocabulary import AttributeType, Quantity, Vocabulary, vocabulary
from placedsl.language.elaboration.statement_entries import DEVICE_DIMENSIONS, NODE_DIMENSIONS
from placedsl.machine.machine import Machine
from placedsl.problem.expressions import Sort


@lru_cache(maxsize=1)
def always() -> Vocabulary:
    """The names that every spec can use, whatever its graph and devices are."""
    none, whole = np.zeros(0), np.zeros(0, dtype=np.int64)
    graph = Graph(
        ids=(), names=(), time={}, memory=none, backward=none > 0, attributes={}, edge_source=whole, edge_target=whole,
        edge_tensor=whole, tensor_producer=whole, tensor_time=none, tensor_bytes=none, time_in_seconds=True,
        source=Source("", ""),
    )  # fmt: skip
    return replace(vocabulary(graph, Machine(()), DEVICE_DIMENSIONS, NODE_DIMENSIONS), node_positions={})


@dataclass(frozen=True)
class KnownNames:
    """Sets, families, attributes and quantities by name; ``nodes`` are the ids of the graph's nodes.

    ``clusters``: by family of clusters, the families that lie in them and whether these are of devices or of clusters.
    ``uncounted``: the families of clusters that are declared without a number.
    """

    sets: Mapping[str, tuple[Sort, ...]]
    families: Mapping[str, tuple[int, ...]]
    attributes: Mapping[Sort, Mapping[str, AttributeType]]
    quantities: Mapping[str, Quantity]
    nodes: Mapping[str, int]
    clusters: Mapping[str, Mapping[str, Sort]] = field(default_factory=dict)
    uncounted: frozenset[str] = frozenset()

    def attribute(self, sort: Sort, name: str) -> AttributeType | None:
        """The type of an attribute, or None where there is none such."""
        return self.attributes.get(sort, {}).get(name)


def words(known: Sequence[Vocabulary]) -> KnownNames:
    """The names of several vocabularies, the first one first, over those that are always there."""
    least = always()
    out = KnownNames(least.sets, least.families, least.attributes, least.quantities, {})
    for one in reversed(known):
        attributes = {
            sort: {**out.attributes.get(sort, {}), **one.attributes.get(sort, {})}
            for sort in dict.fromkeys([*out.attributes, *one.attributes])
        }
        out = KnownNames(
            {**out.sets, **one.sets},
            {**out.families, **one.families},
            attributes,
            one.quantities,
            {**out.nodes, **one.node_positions},
            {**out.clusters, **_clusters(one.machine)},
            out.uncounted | {n for n, i in one.machine.single_clusters.items() if not one.machine.is_counted(i)},
        )
    return out


def _clusters(machine: Machine) -> dict[str, dict[str, Sort]]:
    """The families that lie in the clusters of each family."""
    out: dict[str, dict[str, Sort]] = {}
    for i, cluster in enumerate(machine.clusters):
        if not cluster.alone:
            inside = out.setdefault(cluster.family, {})
            inside.update({machine.devices[d].family: "device" for d in cluster.devices})
            inside.update({c.family: "cluster" for c in machine.clusters if c.parent == i and not c.alone})
    return out
