"""What a tensor, and a byte, takes over the interconnects around clusters that share samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.cost_model.places import Places
from placedsl.diagnostics import Diagnostic
from placedsl.graph.graph import Graph
from placedsl.machine.machine import Machine
from placedsl.problem.cluster_levels import ClusterLevels


def priced(
    levels: ClusterLevels, graph: Graph, machine: Machine, places: Places
) -> tuple[ClusterLevels, list[Diagnostic]]:
    """The levels with their costs, as those of links between devices and RAM."""
    crossing, per_byte = np.zeros((len(levels.clusters), graph.tensors)), np.zeros(len(levels.clusters))
    timed = np.isfinite(graph.tensor_time)
    with np.errstate(over="ignore", invalid="ignore"):  # times that are so large are refused with all other costs
        size = np.where(timed, graph.tensor_time * machine.fastest_interconnect, graph.tensor_bytes)
    for level, clusters in enumerate(levels.clusters):
        link = machine.around(machine.clusters[clusters[0]].parent)
        if link is None:
            family = levels.families[level]
            hint = "as in interconnect { bandwidth = 25 GB/s } beside the clusters"
            message = f"nothing says how fast '{family}' exchanges data with others"
            return levels, [Diagnostic(message, places.families.get(family), hint)]
        crossing[level] = size / link.bandwidth + np.where(timed, 0.0, link.latency)
        per_byte[level] = 1.0 / link.bandwidth
    return replace(levels, crossing=crossing, per_byte=per_byte), []
