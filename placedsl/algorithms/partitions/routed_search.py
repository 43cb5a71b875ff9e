"""The search for partitions whose tensors go from device to device: annealing, from even segments and from the best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.annealing import improves, slices
from placedsl.algorithms.partitions.instance import blank_state, even_segments, partition_units
from placedsl.algorithms.partitions.load_kernel import PartitionState
from placedsl.algorithms.partitions.routed_kernel import RoutedInstance, anneal_routed, recompute_routed
from placedsl.algorithms.partitions.search import STEPS_PER_UNIT
from placedsl.algorithms.supports import PLACING, Supports
from placedsl.algorithms.units import placement_units, with_rounding
from placedsl.arrays import Floats, Integers
from placedsl.graph.order import csr
from placedsl.problem.execution import Execution
from placedsl.problem.problem import Problem

SUPPORTS = Supports(
    objectives=("time_per_sample",), executions=(Execution(),), constraints=PLACING, routes=True, peaks=True
)  # fmt: skip
#: The largest t x D x D of times that is kept.
MOST_WAYS = 50_000_000
_MOST_STEPS = 1_000_000
_HOT, _COLD, _MARGIN = 0.03, 0.0002, 0.01
_LONGEST = 8


@dataclass
class RoutedSearch:
    """A search in progress: the best partition (u devices), and its largest load in seconds (inf: none is feasible)."""

    instance: RoutedInstance
    unit_of_node: Integers
    starts: list[Integers]
    best: Integers
    value: float
    rng: np.random.Generator = field(repr=False)

    @property
    def placement(self) -> Integers:
        """The device of each node (n)."""
        return self.best[self.unit_of_node]


def fits(problem: Problem) -> bool:
    """Whether the times of all ways can be kept."""
    return problem.graph.tensors * len(problem.machine.devices) ** 2 <= MOST_WAYS


def begin(problem: Problem, start: Integers | None, seed: int) -> RoutedSearch:
    """A search from a placement (n devices), or from even segments where these are better."""
    quotient, times = placement_units(problem), problem.device_to_device
    assert times is not None
    devices, tensors = len(problem.machine.devices), len(quotient.tensor_producer)
    way = np.zeros((tensors, devices, devices))
    kept = np.flatnonzero(quotient.tensor_of >= 0)
    each = np.arange(devices)
    np.add.at(way, quotient.tensor_of[kept], times.time(kept[:, None, None], each[:, None], each))
    lengths = np.diff(quotient.pin_start)
    touch_start, touched = csr(quotient.pin_unit, np.repeat(np.arange(tensors), lengths), quotient.units)
    instance = RoutedInstance(
        np.ascontiguousarray(quotient.work), quotient.memory,
        with_rounding(problem.memory_limits, quotient.memory), touch_start, touched,
        quotient.pin_start, quotient.pin_unit, way, problem.accelerators, problem.execution.transfers == "broadcast",
        problem.streaming.per_byte, problem.streaming.room,
    )  # fmt: skip
    even = even_segments(partition_units(problem).instance)
    given = even if start is None else np.empty(quotient.units, dtype=np.int64)
    if start is not None:
        given[quotient.unit_of_node] = start
    values = [value_of(instance, given), value_of(instance, even)]
    first = int(np.argmin(values))
    best = (given, even)[first].copy()
    return RoutedSearch(instance, quotient.unit_of_node, [even], best, values[first], np.random.default_rng(seed))


def state_of(instance: RoutedInstance, device: Integers) -> PartitionState:
    """The state of a partition (``device``: u), computed from scratch."""
    state = blank_state(device, len(instance.pin_start) - 1, len(instance.capacity))
    recompute_routed(instance, state)
    return state


def value_of(instance: RoutedInstance, device: Integers) -> float:
    """The largest load of a partition in seconds; inf if a memory limit is exceeded or a unit is not supported."""
    state = state_of(instance, device)
    return np.inf if (state.memory_used > instance.capacity).any() else _largest(state.load)


def _largest(load: Floats) -> float:
    return float(load.max(initial=0.0))


def run(search: RoutedSearch) -> Iterator[bool]:
    """Search without end; yields after each slice of work whether the best partition has improved."""
    instance, count, turn = search.instance, 1, 0
    if search.value <= 0.0 or len(instance.capacity) < 2:
        return
    steps = min(_MOST_STEPS, STEPS_PER_UNIT * len(instance.memory))
    while search.value > 0.0:
        state = state_of(instance, search.best if turn % 2 else search.starts[0])
        hot = _HOT / float(search.rng.choice([1.0, 3.0, 10.0]))
        for schedule in slices(steps, hot, _COLD, count, iter(lambda: int(search.rng.integers(2**31)), -1)):
            if search.value <= 0.0:
                return
            undercut = search.value if np.isfinite(search.value) else 4.0 * _largest(state.load)
            found = search.best.copy()
            anneal_routed(instance, state, found, undercut, _MARGIN, schedule)
            value = value_of(instance, found)
            better = improves(value, search.value)
            if better:
                search.best, search.value = found, value
            yield better
        turn += 1
        count = min(_LONGEST, count + turn % 2)
