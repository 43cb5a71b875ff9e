"""A problem as orders of its units that are divided into stages: what all these methods have in common."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placedsl.algorithms.baselines.supported_problems import THROUGHPUT
from placedsl.algorithms.interface import NothingFoundError, Progress
from placedsl.algorithms.partitions.instance import partition_units
from placedsl.algorithms.partitions.slicing import Slicer
from placedsl.algorithms.partitions.slicing_kernel import order_by_priority, values_of_orders
from placedsl.algorithms.supports import PLACING, reasons_against
from placedsl.algorithms.units import placement_units
from placedsl.arrays import Floats, Integers
from placedsl.budget import Budget
from placedsl.graph.order import csr
from placedsl.problem.execution import Execution
from placedsl.problem.problem import Problem

SUPPORTS = replace(
    THROUGHPUT, executions=(Execution(),), constraints=PLACING | {"contiguous", "convex"}, requires=("contiguous",)
)
#: Orders that are looked at between two questions whether to stop.
AT_ONCE = 100


def fits(problem: Problem) -> Sequence[str]:
    """Why these methods do not apply, in the user's words."""
    return reasons_against(problem, SUPPORTS)


class Orders:
    """The orders of a problem's units, cut for the accelerators of its largest class; the best division so far."""

    def __init__(self, problem: Problem, budget: Budget, progress: Progress) -> None:
        self.units = partition_units(problem, contiguous=True)
        kinds = problem.interchangeable(clustered=False)
        counts = np.bincount(kinds[problem.accelerators], minlength=1)
        if not counts.any():
            raise NothingFoundError("it divides operators among accelerators, and there are none")
        #: The devices that take stages.
        self.devices = np.flatnonzero(problem.accelerators & (kinds == int(np.argmax(counts))))
        count, before, after = len(self.units.instance.memory), self.units.before, self.units.after
        self.count = count
        self.earlier, self.later = csr(after, before, count), csr(before, after, count)
        self.slicer = Slicer(self.units.instance, int(self.devices[0]), len(self.devices))
        if not np.isfinite(self.slicer.divided.work).all():
            raise NothingFoundError("some operator does not run on the accelerators that are all alike")
        self.deadline = None if budget.time_limit is None else time.monotonic() + budget.time_limit
        self.progress, self.rng = progress, np.random.default_rng(budget.seed)
        self.stage: Integers | None = None
        self.value = np.inf

    @property
    def over(self) -> bool:
        """Whether the time is up, or somebody said so."""
        return (self.deadline is not None and time.monotonic() > self.deadline) or self.progress(None, -np.inf)

    def order(self, priority: Floats) -> Integers:
        """The units (u) by priority (u), along the pipeline."""
        found: Integers = order_by_priority(*self.later, self.earlier[0], priority, False)
        return found

    def values(self, priorities: Floats) -> Floats:
        """p largest loads of the best divisions of the orders by p x u priorities; keeps the best one."""
        slicer, out = self.slicer, np.empty(len(priorities))
        values_of_orders(
            *self.later, self.earlier[0], slicer.divided, slicer.room, slicer.devices, slicer.lowest, priorities, out
        )
        best = int(np.argmin(out))
        if out[best] < self.value:
            self.divide(self.order(priorities[best]))
        return out

    def divide(self, order: Integers) -> None:
        """Divide an order, and keep that if it is the best so far."""
        found = self.slicer.slice(order, self.value)
        if found is not None:
            self.stage, self.value = found.stage, found.value
            self.progress(self.placement(), -np.inf)

    def placement(self) -> list[int] | None:
        """The best division as devices of the nodes."""
        if self.stage is None:
            return None
        placement: list[int] = self.devices[self.stage][self.units.unit_of_node].tolist()
        return placement

    def found(self) -> tuple[list[int], float]:
        """The best division; NothingFoundError where there is none."""
        placement = self.placement()
        if placement is None:
            raise NothingFoundError("no division of an order satisfies the memory limits")
        return placement, -np.inf


def pairs_with_weights(problem: Problem, device: int) -> tuple[Integers, Integers, Floats]:
    """Units that make a tensor, units that read it, and seconds to move it, an entry a reader."""
    quotient = placement_units(problem, contiguous=True, devices=(device,))
    lengths = np.diff(quotient.pin_start)
    maker = np.repeat(quotient.pin_unit[quotient.pin_start[:-1]], lengths)
    other = maker != quotient.pin_unit
    return maker[other], quotient.pin_unit[other], np.repeat(quotient.transfer[0], lengths)[other]
