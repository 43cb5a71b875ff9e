"""Annealing of windows of the best schedule: instances of their own, some hundred positions of the order, within a
boundary that holds the times at which inputs arrive and how much follows.

A change is kept if it improves the whole schedule.  Where layers repeat, windows around one of them are annealed as
well, and what comes of that is copied to others, whether it is better in that layer or not: a change may well gain
nothing as long as other layers are as before.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placedsl.algorithms.annealing import CoolingSchedule
from placedsl.algorithms.operator_scheduling.decomposition.blocks import tensors_among
from placedsl.algorithms.operator_scheduling.decomposition.window_kernel import (
    boundary_times,
    memory_outside,
    tail_times,
)
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.schedule_kernel import (
    OperatorSequence,
    places_of_triggers,
    schedule_of,
    sequence_of,
)
from placedsl.algorithms.operator_scheduling.search.annealing import run_annealing
from placedsl.algorithms.operator_scheduling.search.incremental_kernel import incremental_schedule
from placedsl.algorithms.operator_scheduling.search.incremental_state import Boundary
from placedsl.algorithms.operator_scheduling.search.repeated_layers import Layers, copies
from placedsl.algorithms.operator_scheduling.search.schedule_search import CLUSTER_MOVES, LARGE, STEPS, ScheduleSearch
from placedsl.algorithms.operator_scheduling.subproblem import subproblem
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.tolerances import IMPROVEMENT

#: Positions in a window.
_LENGTHS = (24, 48, 96, 192, 384)
#: Windows and steps of the first sweeps over a large graph, few of which are completed in a minute.
_FIRST_SWEEPS = ((24, 30), (96, 30), (24, 100), (192, 30), (48, 100), (96, 60), (384, 30), (96, 100))
#: The first temperature, in terms of what a node takes.
_HOT = (0.3, 0.1, 0.03)
#: Steps per node of the windows around a layer before it is copied to others; each has the same share of the work.
_LAYER_STEPS = np.array([5, 10, 20, 60])
#: After each window there are some around a layer, and after these it is copied; what does not help is done this much
#: more rarely each time, to the least share.  The more rarely windows help, the more often layers are copied.
_MORE_RARELY, _RAREST = 0.8, 0.1


def windows(search: ScheduleSearch, layers: list[Layers], sweeps: int) -> Iterator[bool]:
    """Anneal windows of the best sequence one after the other, of several lengths; where ``layers`` of some kinds
    repeat, windows around one of them as well.
    """
    nodes = search.instance.nodes
    for _ in range(sweeps):
        length, steps = int(search.rng.choice(_LENGTHS)), STEPS
        if nodes > LARGE and search.sweeps < len(_FIRST_SWEEPS):
            length, steps = _FIRST_SWEEPS[search.sweeps]
        search.sweeps += 1
        length = min(length, nodes)
        step = max(length // 2, 1)
        low = -int(search.rng.integers(step))
        while low < nodes:
            before = search.value
            assert search.best is not None
            _anneal_window(search, search.best, max(low, 0), min(low + length, nodes), steps)
            yield search.value < before
            if layers and search.rng.random() < search.around:
                before = search.value
                of = layers[int(search.rng.integers(len(layers)))]
                near = int(search.rng.integers(len(of.nodes)))
                last = _anneal_around(search, of, near)
                if search.rng.random() < max(search.copied, 1.0 - search.around):
                    found = search.value < before
                    copied = _one_for_all(search, search.best if found else last, of, near)
                    search.copied = _share_after(search.copied, copied)
                search.around = _share_after(search.around, search.value < before)
                yield search.value < before
            low += step


def _share_after(share: float, better: bool) -> float:
    """How often what is done in such a share of the cases is done next."""
    return 1.0 if better else max(_MORE_RARELY * share, _RAREST)


def _anneal_around(search: ScheduleSearch, layers: Layers, near: int) -> OperatorSequence:
    """Anneal windows around one of the layers that repeat; returns the last sequence met in the middle one."""
    nodes, last = search.instance.nodes, search.best
    assert last is not None
    place = np.empty(nodes, dtype=np.int64)
    place[last.order] = np.arange(nodes)
    middle = int(np.median(place[layers.nodes[near]]))
    length = min(layers.nodes.shape[1], max(_LENGTHS), nodes)
    steps = int(search.rng.choice(_LAYER_STEPS, p=1.0 / _LAYER_STEPS / (1.0 / _LAYER_STEPS).sum()))
    for begin in (middle - length, middle, middle - length // 2):
        low = min(max(begin, 0), nodes - length)
        assert search.best is not None
        last = _anneal_window(search, search.best, low, low + length, steps, last=True)
    return last


def _one_for_all(search: ScheduleSearch, sequence: OperatorSequence, layers: Layers, near: int) -> bool:
    """Copy what a sequence has in one of the layers that repeat to others; returns whether the best has improved."""
    instance = search.instance
    _, times = schedule_of(instance, sequence)
    best, value = None, search.value
    for copy in copies(instance, layers, sequence, times, near, search.rng):
        if (latency := schedule_of(instance, copy)[0]) < value:
            best, value = copy, latency
    return best is not None and search.take(best)


def _anneal_window(
    search: ScheduleSearch, sequence: OperatorSequence, low: int, high: int, steps: int, *, last: bool = False
) -> OperatorSequence:
    """Anneal one window of a sequence within its boundary, with ``steps`` steps per node; returns the best sequence met
    if it is better, else the given one, or the ``last`` one.
    """
    instance = search.instance
    _, times = schedule_of(instance, sequence)
    follows = tail_times(instance, sequence)
    boundary = Boundary(*boundary_times(instance, sequence, times, follows, low, high))
    nodes = sequence.order[low:high]
    inside = np.zeros(instance.nodes, dtype=bool)
    inside[nodes] = True
    inner = subproblem(instance, nodes, _allowed(instance, nodes, inside, sequence.device))
    inner = inner._replace(memory_limit=instance.memory_limit - memory_outside(instance, sequence.device, inside))
    triggered, within = places_of_triggers(sequence), tensors_among(instance, nodes)
    own = sequence_of(inner, sequence.device[nodes], np.arange(len(nodes), dtype=np.float64), triggered[within] - low)
    schedule, latency = incremental_schedule(inner, own, boundary)
    hot = float(search.rng.choice(_HOT)) * float(np.median(inner.time[np.isfinite(inner.time)]) + 1e-12)
    hot = max(hot, latency * 1e-9)
    # In windows of large graphs these steps take more time than they gain.
    cluster_moves = CLUSTER_MOVES if instance.nodes <= LARGE else 0.0
    cooling = CoolingSchedule(steps * len(nodes), hot, hot * 0.01, int(search.rng.integers(2**31)))
    _, found = run_annealing(inner, schedule, latency, latency * (1.0 - IMPROVEMENT), cooling, cluster_moves)
    if found is None:
        if not last:
            return sequence
        found = OperatorSequence(*(getattr(schedule, name) for name in OperatorSequence._fields))
    device, place = sequence.device.copy(), np.empty(instance.nodes)
    device[nodes] = found.device
    place[sequence.order] = np.arange(instance.nodes)
    place[nodes[found.order]] = np.arange(low, high)
    triggered[within] = places_of_triggers(found) + low
    out = sequence_of(instance, device, place, triggered)
    search.take(out)
    return out


def _allowed(instance: SchedulingInstance, nodes: Integers, inside: Booleans, device: Integers) -> Floats:
    """Running times of nodes, inf on other devices for units that are not completely inside."""
    time = instance.time[nodes].copy()
    whole = np.ones(len(instance.member_start) - 1, dtype=bool)
    np.logical_and.at(whole, instance.unit, inside)
    for k in np.flatnonzero(~whole[instance.unit[nodes]]).tolist():
        here = device[nodes[k]]
        kept = time[k, here]
        time[k] = np.inf
        time[k, here] = kept
    return time
