"""Devices that are alike in the order of the pipeline, whatever found the placement."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Integers
from placedsl.graph.order import topological
from placedsl.problem.problem import Problem


def in_pipeline_order(problem: Problem, placement: Integers) -> Integers:
    """The placement with devices of one class exchanged, so that the first of them has the first of their nodes.

    Constraints may tell devices of a class apart, so whoever asks evaluates what comes back.  It is returned as it is
    where rows of a formulation may tell them apart, which no evaluation knows, and where the execution model decides
    more than the placement: copies of stages, or times.
    """
    execution = problem.execution
    if problem.has_user_formulations or execution.data_parallelism is not None or execution.schedule_decisions:
        return placement
    order = topological(problem.graph.nodes, problem.precedence_source, problem.precedence_target)
    if order is None:
        return placement
    used, first = np.unique(placement[order], return_index=True)
    turn = np.full(len(problem.machine.devices), problem.graph.nodes)  # the unused come last
    turn[used] = first
    kind = problem.interchangeable()
    renamed = np.empty(len(turn), dtype=np.int64)
    renamed[np.lexsort((turn, kind))] = np.argsort(kind, kind="stable")
    return renamed[placement]
