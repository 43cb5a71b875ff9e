"""What devices pay on top for tensors that leave their clusters, as arrays that all families share."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.graph.contraction import Quotient
from placedsl.problem.problem import Problem


def cluster_numbers(problem: Problem) -> Integers:
    """L x D: the cluster of each device on each level, the outermost first; -1: none."""
    machine = problem.machine
    out = np.full((machine.levels, len(machine.devices)), -1, dtype=np.int64)
    for d, c in machine.memberships():
        out[machine.clusters[c].level - 1, d] = c
    return out


def surcharges_of_devices(problem: Problem) -> Floats:
    """L x D x t: what a device pays besides for a tensor of the graph that leaves its cluster of each level."""
    machine = problem.machine
    out = np.zeros((machine.levels, len(machine.devices), problem.graph.tensors))
    for d, c in machine.memberships():
        if machine.devices[d].kind == "accelerator":
            out[machine.clusters[c].level - 1, d] = problem.cluster_surcharge[c]
    return out


def merged(quotient: Quotient, values: Floats) -> Floats:
    """c x t: times of a quotient's tensors, from those of the graph's (c x tensors), as its transfers are."""
    out = np.zeros((len(values), len(quotient.tensor_producer)))
    some = np.flatnonzero(quotient.tensor_of >= 0)
    np.add.at(out.T, quotient.tensor_of[some], values.T[some])
    return out
