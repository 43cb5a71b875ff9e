"""How long one sample's run may take at most, whatever its placement.

Under uninterrupted calls nothing waits without a reason: a run lasts as long as some path through calls and nodes of
hosts, which meets none of them twice.  So no time is later than all nodes and all transfers of all calls one after the
other, and programs need no other bound of times.
"""

from __future__ import annotations

import math

import numpy as np

from placedsl.problem import expressions as core
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Problem

#: The quantities that are times of a run.
_TIMES = ("start", "finish")
#: So much later a time may be for rounding, relatively.
_ROUNDING = 1e-6


def longest_run(problem: Problem) -> float:
    """Seconds that no time of one sample exceeds; inf where times are decisions, which may be put off."""
    if problem.execution.run != "subgraph_calls":
        return math.inf
    graph = problem.graph
    slowest = np.where(np.isfinite(problem.time), problem.time, 0.0).max(axis=1, initial=0.0).sum()
    # Each call that reads a tensor pays for it once, and the one that makes it once.
    readers = np.bincount(graph.edge_tensor, minlength=graph.tensors)
    calls = 1 + np.minimum(readers, problem.execution.slots * max(1, int(problem.accelerators.sum())))
    moved = problem.transfer[:, problem.accelerators].max(axis=1, initial=0.0)
    moved = moved + problem.cluster_surcharge.sum(axis=0)
    return float(slowest + (calls * moved).sum()) * (1.0 + _ROUNDING)


def times_of_run(formulation: Formulation) -> frozenset[str]:
    """The variables of a formulation that are times of the run: starts and ends of nodes."""
    bodies = [formulation.provides[name].body for name in _TIMES if name in formulation.provides]
    return frozenset(body.variable for body in bodies if isinstance(body, core.Decision))
