"""The names that a document can use, as far as they are known: from its data, else from what is always there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from placedsl.diagnostics import Source
from placedsl.expressions import Sort
from placedsl.graph.graph import Graph
from placedsl.language.vocabulary import DEVICE_ATTRIBUTES, AttributeType, Quantity, Vocabulary, vocabulary
from placedsl.machine.machine import Machine


@lru_cache(maxsize=1)
def always() -> Vocabulary:
    """The names that every spec can use, whatever its graph and devices are."""
    none, whole = np.zeros(0), np.zeros(0, dtype=np.int64)
    graph = Graph(
        ids=(), names=(), time={}, memory=none, backward=none > 0, attributes={}, edge_source=whole, edge_target=whole,
        edge_tensor=whole, tensor_producer=whole, tensor_time=none, tensor_bytes=none, time_in_seconds=True,
        source=Source("", ""),
    )  # fmt: skip
    return replace(vocabulary(graph, Machine(()), DEVICE_ATTRIBUTES), node_positions={})


@dataclass(frozen=True)
class Words:
    """Sets, families, attributes and quantities by name; ``nodes`` are the ids of the graph's nodes."""

    sets: Mapping[str, tuple[Sort, ...]]
    families: Mapping[str, tuple[int, ...]]
    attributes: Mapping[Sort, Mapping[str, AttributeType]]
    quantities: Mapping[str, Quantity]
    nodes: Mapping[str, int]

    def attribute(self, sort: Sort, name: str) -> AttributeType | None:
        """The type of an attribute, or None where there is none such."""
        return self.attributes.get(sort, {}).get(name)


def words(known: Vocabulary | None) -> Words:
    """The names of a vocabulary over those that are always there."""
    least = always()
    if known is None:
        return Words(least.sets, least.families, least.attributes, least.quantities, {})
    attributes = {
        sort: dict(least.attributes.get(sort, {})) | dict(known.attributes.get(sort, {}))
        for sort in {*least.attributes, *known.attributes}
    }
    return Words(
        dict(least.sets) | dict(known.sets), known.families, attributes, known.quantities, known.node_positions
    )
