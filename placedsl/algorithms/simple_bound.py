"""The simple lower bound on the largest load: no device can be quicker than its share of the work.

MTPP, Lemma 4.2, for unlike devices: every node takes its least time over the devices, every group that must stay
together the least time of the whole, and all of it is shared out evenly.
"""

from __future__ import annotations

import numpy as np

from placedsl.graph.order import together
from placedsl.problem import Problem


def simple_bound(problem: Problem) -> float:
    """A value that time_per_sample cannot undercut (inf: some node runs nowhere; transfers are left out)."""
    graph = problem.graph
    unit = together(graph.nodes, problem.colocation_groups())
    work = np.zeros((int(unit.max(initial=-1)) + 1, problem.time.shape[1]))
    np.add.at(work, unit, problem.time)
    least = work.min(axis=1)
    # Copies of a stage share its samples; sending weights only adds.
    most = 1 if problem.replication is None else problem.replication.copies[-1]
    return float(max(least.max(initial=0.0) / most, least.sum() / max(1, problem.time.shape[1])))
