"""The relaxation that the bounds are computed for: units, device classes, and transfers as a hypergraph.

Every constraint but memory, colocation and support is left out, so a bound holds whatever else a specification asks
for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.supports import Supports
from placedsl.algorithms.units import Hyperedges, hyperedges, placement_units
from placedsl.arrays import Floats, Integers
from placedsl.problem.execution import Execution
from placedsl.problem.problem import Problem
from placedsl.tolerances import EVALUATION


@dataclass(frozen=True, eq=False)
class DeviceClass:
    """``count`` equal devices.  ``work``: u seconds (inf: not on these devices, for lack of support or memory);
    ``memory``: u sizes as shares of one device's memory, all 0 where memory is not limited.
    """

    count: int
    work: Floats
    memory: Floats
    edges: Hyperedges


@dataclass(frozen=True, eq=False)
class Relaxation:
    """``units`` units, each on exactly one device of one of the ``classes``; ``unit_of_node``: n."""

    units: int
    classes: tuple[DeviceClass, ...]
    unit_of_node: Integers


#: The largest load of devices that run every sample, forward and backward; whatever else is asked for adds to it.
SUPPORTS = Supports(objectives=("time_per_sample",), executions=(Execution(),), formulations=True, relaxes=True)


def relaxation(problem: Problem) -> Relaxation:
    """The units and device classes of a problem."""
    quotient, limits = placement_units(problem), problem.memory_limits
    kind = problem.interchangeable(clustered=False)
    classes = []
    for number in range(int(kind.max(initial=-1)) + 1):
        members = np.flatnonzero(kind == number)
        device = int(members[0])
        capacity = float(limits[device])
        # Slightly more than the capacity: the evaluator tolerates rounding.
        capacity = capacity * (1 + 2 * EVALUATION) + EVALUATION
        work = quotient.work[device].copy()
        work[quotient.memory > capacity] = np.inf
        share = quotient.memory / capacity if capacity < np.inf else np.zeros(quotient.units)
        classes.append(DeviceClass(len(members), work, share, hyperedges(quotient, device)))
    return Relaxation(quotient.units, tuple(classes), quotient.unit_of_node)


def unit_in_words(problem: Problem, relaxed: Relaxation) -> Callable[[int], str]:
    """How a unit is told of: by its first node."""
    return lambda unit: f"'{problem.graph.ids[int(np.flatnonzero(relaxed.unit_of_node == unit)[0])]}'"
