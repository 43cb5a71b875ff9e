"""Tensors as hyperedges over the units that touch them."""

from __future__ import annotations

import numpy as np
import pytest

import placedsl
from placedsl.algorithms.units import hyperedges, placement_units

SPEC = """
graph {
    node a { time = 1 ms, transfer = 1 ms, memory = 1 MiB }
    node b { time = 2 ms, transfer = 2 ms, memory = 1 MiB }
    node c { time = 3 ms, memory = 1 MiB }
    node d { time = 1 ms, transfer = 4 ms, memory = 1 MiB, stage = 1 }
    node e { time = 1 ms, memory = 1 MiB, stage = 1 }
    a -> b
    a -> c
    b -> a2
    node a2 { time = 1 ms, memory = 1 MiB }
    d -> e
}
device gpu[2]: accelerator { memory = 8 MiB }
minimize time_per_sample
subject to
    colocated by stage
"""


def test_hyperedges_merge_tensors_of_one_set_of_units() -> None:
    quotient = placement_units(placedsl.loads(SPEC).problem)
    assert quotient.units == 5
    edges = hyperedges(quotient)
    a, b, c, _, _, a2 = quotient.unit_of_node.tolist()
    # The tensor from d to e stays inside of a unit.
    assert dict(zip(edges.pins, edges.cost.T.tolist(), strict=True)) == {
        tuple(sorted((a, b, c))): [pytest.approx(1e-3)] * 2, tuple(sorted((b, a2))): [pytest.approx(2e-3)] * 2
    }  # fmt: skip
    one = hyperedges(quotient, 1)
    assert one.pins == edges.pins
    assert np.array_equal(one.cost, edges.cost[1])


def test_forward_and_backward_tensors_of_the_same_units_are_one_hyperedge() -> None:
    training = """
    graph {
        node a { time = 1 ms, transfer = 1 ms, color = 1 }
        node b { time = 1 ms, transfer = 2 ms, color = 2 }
        node db { time = 1 ms, transfer = 4 ms, color = 2, backward = true }
        node da { time = 1 ms, color = 1, backward = true }
        a -> b -> db -> da
    }
    device gpu[2]: accelerator
    minimize time_per_sample
    subject to
        colocated by color
    """
    edges = hyperedges(placement_units(placedsl.loads(training).problem))
    assert edges.pins == ((0, 1),)
    assert edges.cost.T.tolist() == [[pytest.approx(5e-3)] * 2]
