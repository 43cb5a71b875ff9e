"""The best division of a topological order into stages: SliceGraph of MTPP (Xie et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.partitions.load_kernel import PartitionInstance
from placedsl.algorithms.partitions.slicing_kernel import (
    Divided,
    Room,
    Segments,
    best_segments,
    segments_of,
)
from placedsl.algorithms.units import with_rounding
from placedsl.arrays import Integers


@dataclass(frozen=True, eq=False)
class SlicedOrder:
    """The u units' stages, from 0, and the largest load (inf: there is no division within the memory limits)."""

    stage: Integers
    value: float


class Slicer:
    """Divides orders of an instance's units over ``devices`` that are all like device ``like``."""

    def __init__(self, instance: PartitionInstance, like: int, devices: int) -> None:
        self.instance, self.devices = instance, devices
        units = len(instance.memory)
        self.divided = Divided(
            np.ascontiguousarray(instance.work[like]), instance.memory, instance.pin_start, instance.pin,
            np.ascontiguousarray(instance.transfer[like]),
        )  # fmt: skip
        work = self.divided.work
        limit = float(with_rounding(instance.capacity, instance.memory)[like])
        self.room = Room(limit, 0.0, np.inf)
        if instance.per_byte[like] > 0.0:
            room = float(instance.room[like])
            self.room = Room(max(room, 0.0), max(-room, 0.0), float(instance.per_byte[like]))
        self.lowest = max(float(work.max(initial=0.0)), float(work.sum()) / devices) * (1.0 - 1e-12)
        self._space = np.empty(units + 1, dtype=np.int64), np.empty(units, dtype=np.int64)

    def segments(self, order: Integers) -> Segments:
        """The costs of an order's segments."""
        found: Segments = segments_of(order, self.divided)
        return found

    def slice(self, order: Integers, below: float = np.inf, near: float = 0.0) -> SlicedOrder | None:
        """The best division of an order; None where none is better than ``below``."""
        ends = np.empty(len(order), dtype=np.int64)
        value, count = best_segments(
            self.segments(order), self.room, self.devices, self.lowest, below, near, *self._space, ends
        )
        if not np.isfinite(value):
            return None
        stage = np.zeros(len(order), dtype=np.int64)
        stage[order] = np.searchsorted(np.sort(ends[:count]), np.arange(len(order)))
        return SlicedOrder(stage, float(value))
