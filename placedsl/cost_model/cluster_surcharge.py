"""What a tensor takes on top when it leaves a cluster, over the slower interconnect around it."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats
from placedsl.cost_model.places import Places
from placedsl.diagnostics import Diagnostic
from placedsl.graph.graph import Graph
from placedsl.machine.machine import Machine


def seconds(graph: Graph, machine: Machine, places: Places) -> tuple[Floats, list[Diagnostic]]:
    """C x t: by how much longer a tensor takes over what is around a cluster than over its own interconnect, or 0.

    Transfer times that the graph gives are those of the fastest interconnect, and grow as bandwidths fall.  Clusters
    without an interconnect of their own have no surcharge.
    """
    out = np.zeros((len(machine.clusters), graph.tensors))
    timed = np.isfinite(graph.tensor_time)
    with np.errstate(over="ignore", invalid="ignore"):  # times that are so large are refused with all other costs
        size = np.where(timed, graph.tensor_time * machine.fastest_interconnect, graph.tensor_bytes)
    for i, cluster in enumerate(machine.clusters):
        if cluster.alone or cluster.interconnect is None:
            continue
        own, outer = cluster.interconnect, machine.around(cluster.parent)
        if outer is None:
            hint = "as in interconnect { bandwidth = 25 GB/s } beside the clusters"
            message = f"nothing says how fast '{cluster.family}' exchanges data with others"
            return out, [Diagnostic(message, places.families.get(cluster.family), hint)]
        with np.errstate(invalid="ignore"):
            longer = size / outer.bandwidth - size / own.bandwidth + np.where(timed, 0.0, outer.latency - own.latency)
        out[i] = np.maximum(longer, 0.0)
    return out, []
