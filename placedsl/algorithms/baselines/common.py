"""What the baselines of Tarnawski et al. 2020 (section 6) share: what they look at, and the units that they move."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.supports import PLACING, Supports
from placedsl.graph.contraction import Quotient
from placedsl.problem.execution import Execution
from placedsl.problem.problem import Problem

#: Methods that give a placement and leave it to the evaluator whether it satisfies what the spec asks for.
ANY_PLACEMENT = Supports()
#: Methods for the throughput of a pipeline without contiguity.
THROUGHPUT = Supports(objective="time_per_sample", executions=(Execution(),), constraints=PLACING)


def first_of_each_kind(problem: Problem, among: np.ndarray) -> list[int]:
    """One device of each class of like devices, of the devices ``among`` (flags)."""
    classes = problem.interchangeable()
    return [i for i in np.flatnonzero(among).tolist() if not (among[:i] & (classes[:i] == classes[i])).any()]


def named(problem: Problem, unit: int, quotient: Quotient) -> str:
    """A unit in words: its first node, and how many share a device with it."""
    members = np.flatnonzero(quotient.unit_of_node == unit)
    more = f" and the {len(members) - 1} that share a device with it" if len(members) > 1 else ""
    return f"'{problem.graph.ids[int(members[0])]}'{more}"
