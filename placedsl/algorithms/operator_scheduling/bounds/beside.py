"""Nodes beside the blocks of a chain, at prices of what they use of devices and of the time of ports and links.

They come after a node of the chain, and the least that they cost depends on its device: where they read from it on
another one its tensors have to cross.  Reads are counted where they form a forest, by dynamic programming.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.broadcast import without_prices
from placedsl.algorithms.operator_scheduling.bounds.broadcast_kernel import least_priced
from placedsl.algorithms.operator_scheduling.bounds.counted_reads import counted_reads, seconds_sent
from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import single_device
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, floats, integers, moves
from placedsl.algorithms.operator_scheduling.subproblem import subproblem
from placedsl.arrays import Floats, Integers


class Beside:
    """``nodes`` in topological order, all of which come after the node ``before`` (-1: none) and use something of
    devices, len(nodes) x D.
    """

    def __init__(self, instance: SchedulingInstance, nodes: Integers, use: Floats, before: int = -1) -> None:
        self.before, self._devices, self._ports = before, instance.devices, instance.resources
        self._first = int(before >= 0)
        inside = integers(np.concatenate([[before], nodes])) if before >= 0 else integers(nodes)
        self._inner = subproblem(instance, inside, instance.time[inside])
        self._use = np.concatenate([np.zeros((self._first, instance.devices)), use])
        self._able = np.isfinite(self._inner.time)
        self._only = np.asarray(single_device(self._inner)).copy()
        self._only[: self._first] = 0  # any: which reads are counted does not depend on it
        self._reads = counted_reads(self._inner, self._only, moves(self._inner), -1)

    def least(self, price: Floats, ports: Floats) -> tuple[Floats, Floats]:
        """D seconds that the nodes cost at least for each device of the node before them (inf: impossible), and D x
        (D + resources): what they use of devices and of ports there.

        ``price``: D seconds per use of each device; ``ports``: seconds per second of each resource (none: they are
        free).
        """
        cost, used = np.zeros(self._devices), np.zeros((self._devices, self._devices + self._ports))
        if len(self._use) > self._first:
            for a in range(self._devices if self._first else 1):
                cost[a], used[a] = self._on(a, price, ports)
        return cost, used

    def _on(self, a: int, price: Floats, ports: Floats) -> tuple[float, Floats]:
        devices, used = self._devices, np.zeros(self._devices + self._ports)
        time = self._inner.time.copy()
        if self._first:
            if not self._able[0, a]:
                return np.inf, used
            time[0] = np.inf
            time[0, a] = 0.0
        only = self._only.copy()
        only[: self._first] = a
        reads = self._reads._replace(only=only)
        seconds = np.zeros((devices, devices, 1))
        if len(ports):
            seconds[:, :, 0] = np.einsum("r,rab->ab", ports, reads.uses)
        nothing = np.zeros((0, 1))
        costs = floats(np.where(np.isfinite(time), self._use * price, 0.0))
        floor, taken = np.zeros(time.shape, dtype=np.int64), np.zeros(devices + self._ports)
        case = without_prices(floats(time), floor, nothing, taken, len(reads.move))._replace(price=costs)
        device, level = np.maximum(only, 0), np.zeros(len(time), dtype=np.int64)
        if least_priced(case, reads, np.zeros((devices, 1)), floats(seconds), device, level) == np.inf:
            return np.inf, used
        used[:devices] = np.bincount(device, weights=self._use[np.arange(len(device)), device], minlength=devices)
        used[devices:] = seconds_sent(reads, device, np.ones(len(reads.move), dtype=np.bool_))
        paid = float(ports @ used[devices:]) if len(ports) else 0.0
        return float(costs[np.arange(len(device)), device].sum()) + paid, used
