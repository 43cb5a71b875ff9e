"""Local search for throughput without contiguity: annealing over moves of one unit, from a given placement.

A heuristic: it gives placements and no bound.  It knows memory, support and colocation, and no other rule.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from placedsl.algorithms.local_kernel import anneal
from placedsl.expressions import Provided
from placedsl.graph.contraction import contract
from placedsl.graph.graph import Integers
from placedsl.graph.order import topological
from placedsl.problem import Problem

ROUNDS = 8
STEPS = 400_000
#: Where the temperature of each round starts, in units of the energy of one full device.
HEAT = (1000.0, 10.0, 1.0, 100.0)


def fits(problem: Problem) -> bool:
    """Whether the search knows all that the problem asks for."""
    goal = problem.objectives[0].body
    timed = isinstance(goal, Provided) and goal.name == "time_per_sample" and problem.schedule == "pipedream"
    return timed and all(r.built_in in ("memory", "colocated") for r in problem.rules)


def improve(
    problem: Problem,
    start: Integers,
    *,
    seed: int = 0,
    deadline: float | None = None,
    found: Callable[[Integers], None] | None = None,
) -> Integers:
    """A placement at least as good as ``start``; ``found`` hears of each better one.

    The same seed gives the same placement unless the ``deadline`` (``time.monotonic()``) comes first.
    """
    graph = problem.graph
    quotient = contract(
        memory=graph.memory, work=problem.time.T, groups=problem.colocation_groups(), before=None, after=None,
        tensor_producer=graph.tensor_producer, read_tensor=graph.edge_tensor, read_node=graph.edge_target,
        transfer=problem.transfer.T,
    )  # fmt: skip
    units, devices = quotient.units, len(problem.machine.devices)
    tensors = np.repeat(np.arange(len(quotient.tensor_producer)), np.diff(quotient.pin_start))
    order = np.argsort(quotient.pin_unit, kind="stable")
    touch_start = np.searchsorted(quotient.pin_unit[order], np.arange(units + 1))
    touched = tensors[order]
    pins = np.diff(quotient.pin_start)
    limited = problem.rule("memory") is not None
    capacity = problem.device_memory if limited else np.full(devices, np.inf)
    # The order in which segments are taken: by where the nodes of a unit stand in the graph, on average.
    node_order = topological(graph.nodes, graph.edge_source, graph.edge_target)
    assert node_order is not None
    place = np.empty(graph.nodes)
    place[node_order] = np.arange(graph.nodes)
    mean = np.bincount(quotient.unit_of_node, weights=place) / np.bincount(quotient.unit_of_node)
    order_of_units = np.argsort(mean, kind="stable")
    rank = np.empty(units, dtype=np.int64)
    rank[order_of_units] = np.arange(units)
    best = np.empty(units, dtype=np.int64)
    best[quotient.unit_of_node] = start
    value = np.inf
    for turn in range(ROUNDS):
        device = best.copy()
        inside = np.zeros((len(pins), devices), dtype=np.int64)
        np.add.at(inside, (tensors, device[quotient.pin_unit]), 1)
        cut = (inside > 0) & (inside < pins[:, None])
        load = (cut * quotient.transfer.T).sum(axis=0)
        np.add.at(load, device, quotient.work[device, np.arange(units)])
        held = np.zeros(devices)
        np.add.at(held, device, quotient.memory)
        value = min(value, float(load.max()))
        if not np.isfinite(value) or value == 0.0:
            break
        reached = anneal(
            device, quotient.work, quotient.memory, capacity, touch_start, touched, pins, quotient.transfer,
            order_of_units, rank, inside, load, held, best, value, STEPS, HEAT[turn % len(HEAT)], 0.005,
            seed * ROUNDS + turn,
        )  # fmt: skip
        if reached < value:
            value = reached
            if found is not None:
                found(best[quotient.unit_of_node])
        if deadline is not None and time.monotonic() > deadline:
            break
    return best[quotient.unit_of_node]
