"""Compiled: weights of devices that make the least weighted work large."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Floats


@kernel()
def best_weighted(
    time: Floats, around: Floats, weight: Floats, taken: Floats, steps: int, length: float
) -> float:  # fmt: skip
    """The most of ``weight @ (around + work)`` over so many weights, from ``weight`` (D, adding up to 1) on, where each
    unit (rows of ``time``, seconds; inf: not there) is where its weighted time is least.

    ``taken`` is D numbers of room.  ``length``: of the first step.
    """
    units, devices = time.shape
    best = 0.0
    for step in range(steps):
        for d in range(devices):
            taken[d] = around[d]
        for u in range(units):
            least, on = np.inf, 0
            for d in range(devices):
                if time[u, d] * weight[d] < least:
                    least, on = time[u, d] * weight[d], d
            taken[on] += time[u, on]
        reached = most = total = 0.0
        for d in range(devices):
            reached += weight[d] * taken[d]
            most = max(most, taken[d])
        best = max(best, reached)
        for d in range(devices):
            weight[d] *= np.exp(length / np.sqrt(1.0 + step) * (taken[d] / most - 1.0))
            total += weight[d]
        for d in range(devices):
            weight[d] /= total
    return float(best)
