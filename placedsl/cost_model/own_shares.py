"""What each device pays at least for a tensor that goes from device to device, by the device alone.

Searches and bounds of pipelines know costs by device: a transfer time, and a surcharge for each cluster that the tensor
leaves.  What a device pays for a tensor that goes to, or comes from, another device is at least the sum of both; often
it is exactly that: where all routes are alike, and on clusters whose interconnects are all the links there are.
"""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats
from placedsl.graph.graph import Graph
from placedsl.machine.machine import Machine
from placedsl.machine.routes import TransferTimes, alike
from placedsl.records import dataclass
from placedsl.tolerances import EQUAL_COSTS


@dataclass(frozen=True, eq=False)
class OwnShares:
    """``transfer`` t x D and ``cluster_surcharge`` C x t in seconds.

    ``exact``  each transfer between two devices takes just that for either of them
    """

    transfer: Floats
    cluster_surcharge: Floats
    exact: bool


def own_shares(graph: Graph, machine: Machine, times: TransferTimes) -> OwnShares:
    """The largest shares that no transfer undercuts: of the devices first, then of clusters from the innermost on."""
    devices, tensors, label = range(len(machine.devices)), np.arange(graph.tensors), alike(times)
    accelerators = [d for d in devices if machine.devices[d].kind == "accelerator"]
    # Devices that may change places have equal times: of such pairs that leave the same clusters, one is looked at.
    pairs: dict[tuple[int, int, tuple[int, ...]], tuple[int, int]] = {}
    for d in accelerators:
        for e in devices:
            if e != d:
                pairs.setdefault((int(label[d]), int(label[e]), _left(machine, d, e)), (d, e))
    least = np.full((graph.tensors, len(devices)), np.inf)
    for (own, _, _), (d, e) in pairs.items():
        least[:, own] = np.minimum(least[:, own], _either_way(times, tensors, d, e)[0])
    transfer = np.zeros_like(least)
    transfer[:, accelerators] = np.where(np.isfinite(least), least, 0.0)[:, label[accelerators]]
    surcharge = np.zeros((len(machine.clusters), graph.tensors))

    def share(d: int, left: tuple[int, ...]) -> Floats:
        out: Floats = transfer[:, d] + surcharge[list(left)].sum(axis=0)
        return out

    for c in sorted(range(len(machine.clusters)), key=lambda c: -machine.clusters[c].level):
        over = np.full(graph.tensors, np.inf)
        for (_, _, left), (d, e) in pairs.items():
            if c in left:
                over = np.minimum(over, _either_way(times, tensors, d, e)[0] - share(d, left))
        surcharge[c] = np.maximum(np.where(np.isfinite(over), over, 0.0), 0.0)
    exact = all(
        bool((np.abs(one - share(d, left)) <= EQUAL_COSTS * share(d, left)).all())
        for (_, _, left), (d, e) in pairs.items()
        for one in _either_way(times, tensors, d, e)
    )
    return OwnShares(transfer, surcharge, exact)


def _either_way(times: TransferTimes, tensors: np.ndarray, d: int, e: int) -> tuple[Floats, Floats]:
    """The shorter and the longer of the times out of a device and into it."""
    out, back = times.time(tensors, d, e), times.time(tensors, e, d)
    return np.minimum(out, back), np.maximum(out, back)


def _left(machine: Machine, d: int, e: int) -> tuple[int, ...]:
    """The clusters of a device that another one is not in."""
    return tuple(c for c, one in enumerate(machine.clusters) if d in one.devices and e not in one.devices)
