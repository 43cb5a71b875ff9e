"""Work that devices share, between the earliest start and the latest end on each of them.

A device that runs one node at a time, and runs any of them, takes at most the latency less the least head and the least
tail of the nodes that it may run.  For weights of the devices that add up to 1, the latency is therefore at least

    the sum over units of the least weighted time over the devices  +  the weighted sum of heads and tails,

where only some devices run anything.  The bound is the least over which these are: a device with a smaller sum of head
and tail than another that runs something may as well be one of them, so there are as many cases as devices.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import heads, paths_only, tails
from placedsl.algorithms.operator_scheduling.bounds.work_kernel import best_weighted
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, floats
from placedsl.arrays import Floats
from placedsl.tolerances import LIMIT_SLACK

#: Steps of the search for weights, each of which gives a bound, and the first of their lengths.
_STEPS, _LENGTH = 60, 0.5


def work_bound(instance: SchedulingInstance) -> float:
    """A lower bound on the latency in seconds; 0 if devices run several nodes at a time."""
    runs = np.isfinite(instance.time) & (instance.time > 0.0)
    if not instance.sequential or not runs.any():
        return 0.0
    every = np.full(instance.nodes, -1, dtype=np.int64)
    head = heads(instance, every, paths_only(instance))
    tail = tails(instance, every, paths_only(instance), np.zeros(instance.time.shape))
    around = np.where(runs, head, np.inf).min(axis=0) + np.where(runs, tail, np.inf).min(axis=0)
    units = np.zeros((len(instance.member_start) - 1, instance.devices))
    np.add.at(units, instance.unit, instance.time)
    units = units[units.min(axis=1) > 0.0]
    order = np.argsort(around, kind="stable")
    least = np.inf
    for count in range(1, instance.devices + 1):
        chosen = order[:count]
        if around[chosen[-1]] >= least:  # one more device is of no use, if anything runs there
            break
        least = min(least, max(float(around[chosen[-1]]), _shared(units[:, chosen], around[chosen])))
    return least * (1.0 - LIMIT_SLACK) if np.isfinite(least) else 0.0


def _shared(time: Floats, around: Floats) -> float:
    """The bound for given devices: the best weights that are met (inf: some unit can be on none of them)."""
    if not len(time):
        return 0.0
    if not np.isfinite(time.min(axis=1)).all():
        return np.inf
    able = np.isfinite(time)
    weight = 1.0 / np.maximum(np.where(able, time, 0.0).sum(axis=0), 1e-300)
    weight /= weight.sum()
    return float(best_weighted(floats(time), floats(around), weight, np.empty_like(weight), _STEPS, _LENGTH))
