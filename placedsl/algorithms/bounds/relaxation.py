"""What the bounds look at: units, device classes, and transfers as a hypergraph.

Every rule but memory, colocation and support is left out, so a bound holds whatever else a spec asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.expressions import Provided
from placedsl.graph.contraction import contract
from placedsl.graph.graph import Floats, Integers
from placedsl.problem import Problem


@dataclass(frozen=True, eq=False)
class Hyperedges:
    """Tensors by the units that touch them: ``pins[i]`` (at least two, ascending) and ``cost[i]`` > 0, the transfer
    time that a device pays which holds some of the pins and not all."""

    pins: tuple[tuple[int, ...], ...]
    cost: Floats


@dataclass(frozen=True, eq=False)
class DeviceClass:
    """``count`` devices alike.  ``work``: u times (inf: not on these devices, because of support or memory);
    ``memory``: u sizes as shares of one device's memory, all 0 where memory is not limited."""

    count: int
    work: Floats
    memory: Floats
    edges: Hyperedges


@dataclass(frozen=True, eq=False)
class Relaxation:
    """``units`` units, each on exactly one device of one of the ``classes``."""

    units: int
    classes: tuple[DeviceClass, ...]
    unit_of_node: Integers


def fits(problem: Problem) -> bool:
    """Whether the first objective is the largest load of devices that run every sample, forward and backward."""
    goal = problem.objectives[0].body
    timed = isinstance(goal, Provided) and goal.name == "time_per_sample" and problem.schedule == "pipedream"
    return timed and problem.replication is None


def relaxation(problem: Problem) -> Relaxation:
    """The units and device classes of a problem."""
    graph = problem.graph
    quotient = contract(
        memory=graph.memory, work=problem.time.T, groups=problem.colocation_groups(), before=None, after=None,
        tensor_producer=graph.tensor_producer, read_tensor=graph.edge_tensor, read_node=graph.edge_target,
        transfer=problem.transfer.T,
    )  # fmt: skip
    kind = problem.interchangeable(clustered=False)
    limited = problem.rule("memory") is not None
    classes = []
    for number in range(int(kind.max(initial=-1)) + 1):
        members = np.flatnonzero(kind == number)
        device = int(members[0])
        capacity = float(problem.device_memory[device]) if limited else np.inf
        # A shade more than the capacity, for the evaluator forgives rounding.
        capacity = capacity * (1 + 2e-9) + 1e-9
        work = quotient.work[device].copy()
        work[quotient.memory > capacity] = np.inf
        share = quotient.memory / capacity if capacity < np.inf else np.zeros(quotient.units)
        cost: dict[tuple[int, ...], float] = {}
        for tensor, price in enumerate(quotient.transfer[device].tolist()):
            if price > 0:
                pins = quotient.pin_unit[quotient.pin_start[tensor] : quotient.pin_start[tensor + 1]]
                key = tuple(sorted(pins.tolist()))
                cost[key] = cost.get(key, 0.0) + price
        edges = Hyperedges(tuple(cost), np.array(list(cost.values())))
        classes.append(DeviceClass(len(members), work, share, edges))
    return Relaxation(quotient.units, tuple(classes), quotient.unit_of_node)
