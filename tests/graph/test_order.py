"""Values by key, and nodes that share a label."""

from __future__ import annotations

import numpy as np
import pytest

from placedsl.graph.order import csr, joined_partitions


@pytest.mark.parametrize("seed", range(20))
def test_values_by_key_keep_their_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys, size = int(rng.integers(1, 6)), int(rng.integers(0, 12))
    key, value = rng.integers(0, keys, size), rng.integers(0, 100, size)
    start, values = csr(key, value, keys)
    assert len(start) == keys + 1
    for k in range(keys):
        assert values[start[k] : start[k + 1]].tolist() == [int(v) for i, v in zip(key, value, strict=True) if i == k]


@pytest.mark.parametrize("seed", range(20))
def test_nodes_with_a_common_label_in_any_partition_are_one(seed: int) -> None:
    import networkx as nx

    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 12))
    partitions = [rng.integers(0, nodes, nodes) for _ in range(int(rng.integers(0, 4)))]
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    for labels in partitions:
        graph.add_edges_from((u, v) for u in range(nodes) for v in range(u) if labels[u] == labels[v])
    expected = sorted(sorted(part) for part in nx.connected_components(graph))
    found = joined_partitions(nodes, partitions)
    # Numbered by first member.
    assert [np.flatnonzero(found == n).tolist() for n in range(int(found.max()) + 1)] == expected
