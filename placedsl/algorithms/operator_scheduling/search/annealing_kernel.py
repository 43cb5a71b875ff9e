"""Compiled: simulated annealing over devices, the order of the nodes and the triggers of transfers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.annealing import CoolingSchedule
from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence
from placedsl.algorithms.operator_scheduling.search.clusters_kernel import (
    UndoRecord,
    connected_units,
    consecutive_units,
    costly_cluster,
)
from placedsl.algorithms.operator_scheduling.search.incremental_kernel import commit, evaluate, rollback
from placedsl.algorithms.operator_scheduling.search.incremental_state import IncrementalSchedule
from placedsl.algorithms.operator_scheduling.search.trial_marks_kernel import mark_behind, reshape, reshape_between
from placedsl.arrays import Booleans, Floats

#: The share of the moves of several units to another device after which they are pulled forward in the order.
_PULLED = 0.5


class Moves(NamedTuple):
    """The share of the steps that move a cluster joined by costly tensors, and the positions of the order, ``first`` to
    ``end`` - 1, from which nodes are drawn.
    """

    cluster_share: float
    first: int
    end: int


class UnitData(NamedTuple):
    """u x D flags: the devices that each unit may be on; ``memory``: u bytes; ``transfer_cost``: t mean seconds of a
    transfer of each tensor."""

    able: Booleans
    memory: Floats
    transfer_cost: Floats


@kernel(no_cpython_wrapper=True)
def _affected(
    instance: SchedulingInstance, schedule: IncrementalSchedule, unit: int, old: int, new: int, place: int
) -> int:
    """Mark what a new device for a unit affects; returns the first position of the order."""
    devices = schedule.called.shape[1]
    for m in range(instance.member_start[unit], instance.member_start[unit + 1]):
        v = instance.member[m]
        own = schedule.position[v]
        reshape(schedule.marks, own)
        place = min(place, own)
        for i in range(instance.input_start[v], instance.input_start[v + 1]):
            tensor = instance.input[i]
            mark_behind(schedule.marks, schedule.position[instance.producer[tensor]])
            if schedule.called[tensor, old] < len(schedule.order):
                mark_behind(schedule.marks, schedule.called[tensor, old])
            for d in (old, new):
                trigger = schedule.transfer_trigger[tensor, d]
                if trigger >= 0:
                    reshape(schedule.marks, schedule.position[trigger])
                    place = min(place, schedule.position[trigger])
        for i in range(instance.output_start[v], instance.output_start[v + 1]):
            tensor = instance.output[i]
            for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
                reshape(schedule.marks, schedule.position[instance.reader[j]])
            for d in range(devices):
                if schedule.called[tensor, d] < len(schedule.order):
                    reshape(schedule.marks, schedule.called[tensor, d])
                trigger = schedule.transfer_trigger[tensor, d]
                if trigger >= 0 and schedule.position[trigger] > own:
                    reshape(schedule.marks, schedule.position[trigger])
    return place


@kernel(no_cpython_wrapper=True)
def _assign(instance: SchedulingInstance, schedule: IncrementalSchedule, unit: int, device: int, size: Floats) -> None:
    """Move a unit to a device."""
    old = schedule.device[instance.member[instance.member_start[unit]]]
    for m in range(instance.member_start[unit], instance.member_start[unit + 1]):
        schedule.device[instance.member[m]] = device
    schedule.memory_used[old] -= size[unit]
    schedule.memory_used[device] += size[unit]


@kernel(no_cpython_wrapper=True)
def _reposition(schedule: IncrementalSchedule, old: int, new: int) -> None:
    """Move the node at one position of the order to another."""
    v = schedule.order[old]
    step = 1 if new > old else -1
    k = old
    while k != new:
        w = schedule.order[k + step]
        schedule.order[k] = w
        schedule.position[w] = k
        k += step
    schedule.order[new] = v
    schedule.position[v] = new


@kernel(no_cpython_wrapper=True)
def _position_range(instance: SchedulingInstance, schedule: IncrementalSchedule, v: int) -> tuple[int, int]:
    """The first and last position of a node between its producers and its readers."""
    low, high = 0, len(schedule.order) - 1
    for i in range(instance.input_start[v], instance.input_start[v + 1]):
        low = max(low, schedule.position[instance.producer[instance.input[i]]] + 1)
    for i in range(instance.output_start[v], instance.output_start[v + 1]):
        tensor = instance.output[i]
        for j in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
            high = min(high, schedule.position[instance.reader[j]] - 1)
    return low, high


@kernel(no_cpython_wrapper=True)
def _pull_forward(
    instance: SchedulingInstance, schedule: IncrementalSchedule, count: int, device: int, undo: UndoRecord, stamp: int
) -> int:  # fmt: skip
    """Move the nodes of the ``count`` units collected that are on a device to right behind what they read, the first of
    the order first; returns how many have moved.
    """
    left, k = 0, len(schedule.order)
    for i in range(count):
        unit = undo.units[i]
        left += instance.member_start[unit + 1] - instance.member_start[unit]
        for m in range(instance.member_start[unit], instance.member_start[unit + 1]):
            k = min(k, schedule.position[instance.member[m]])
    moved = 0
    while left > 0 and k < len(schedule.order):
        v = schedule.order[k]
        if undo.mark[instance.unit[v]] == stamp and schedule.device[v] == device:
            left -= 1
            low, _ = _position_range(instance, schedule, v)
            if low < k:
                reshape_between(schedule.marks, low, k)
                _reposition(schedule, k, low)
                undo.origin[moved], undo.place[moved] = k, low
                moved += 1
        k += 1
    return moved


@kernel(no_cpython_wrapper=True)
def _set_trigger(schedule: IncrementalSchedule, transfer: int, transfer_trigger: int, behind: int) -> int:
    """Set the trigger of a transfer (-1: its first reader), after transfer ``behind`` of that node (-1: before all of
    them).

    Returns the transfer that it was behind at its previous trigger (-1: none).
    """
    devices = schedule.transfer_trigger.shape[1]
    old = schedule.transfer_trigger[transfer // devices, transfer % devices]
    was_behind = -1
    if old >= 0:
        if schedule.first_transfer[old] == transfer:
            schedule.first_transfer[old] = schedule.next_transfer[transfer]
        else:
            was_behind = schedule.first_transfer[old]
            while schedule.next_transfer[was_behind] != transfer:
                was_behind = schedule.next_transfer[was_behind]
            schedule.next_transfer[was_behind] = schedule.next_transfer[transfer]
    schedule.transfer_trigger[transfer // devices, transfer % devices] = transfer_trigger
    schedule.next_transfer[transfer] = -1
    if transfer_trigger >= 0 and behind < 0:
        schedule.next_transfer[transfer] = schedule.first_transfer[transfer_trigger]
        schedule.first_transfer[transfer_trigger] = transfer
    elif transfer_trigger >= 0:
        schedule.next_transfer[transfer] = schedule.next_transfer[behind]
        schedule.next_transfer[behind] = transfer
    return was_behind


@kernel(no_cpython_wrapper=True)
def _before_readers(instance: SchedulingInstance, schedule: IncrementalSchedule, tensor: int, target: int) -> int:
    """The position before the first reader on a device; n if there is none."""
    first = len(schedule.order) + 1
    for i in range(instance.reader_start[tensor], instance.reader_start[tensor + 1]):
        if schedule.device[instance.reader[i]] == target:
            first = min(first, schedule.position[instance.reader[i]])
    return first - 1


@kernel(no_cpython_wrapper=True)
def _neighbour_device(instance: SchedulingInstance, schedule: IncrementalSchedule, v: int) -> int:
    """The device of a random producer or reader around ``v``, its own if there is none."""
    inputs = instance.input_start[v + 1] - instance.input_start[v]
    outputs = instance.output_start[v + 1] - instance.output_start[v]
    if inputs + outputs == 0:
        return int(schedule.device[v])
    pick = np.random.randint(inputs + outputs)
    if pick < inputs:
        return int(schedule.device[instance.producer[instance.input[instance.input_start[v] + pick]]])
    tensor = instance.output[instance.output_start[v] + pick - inputs]
    readers = instance.reader_start[tensor + 1] - instance.reader_start[tensor]
    if readers == 0:
        return int(schedule.device[v])
    return int(schedule.device[instance.reader[instance.reader_start[tensor] + np.random.randint(readers)]])


@kernel(no_cpython_wrapper=True)
def _keep(schedule: IncrementalSchedule, found: OperatorSequence) -> None:
    """Copy the sequence of a schedule."""
    for v in range(len(schedule.order)):
        found.device[v], found.order[v] = schedule.device[v], schedule.order[v]
        found.first_transfer[v] = schedule.first_transfer[v]
    tensors, devices = schedule.transfer_trigger.shape
    for t in range(tensors):
        for d in range(devices):
            found.transfer_trigger[t, d] = schedule.transfer_trigger[t, d]
            found.next_transfer[t * devices + d] = schedule.next_transfer[t * devices + d]


# Longer than 80 lines: one step with three kinds of moves, whose parts share most of its variables.
@kernel()
def anneal(
    instance: SchedulingInstance, schedule: IncrementalSchedule, units: UnitData, latency: float,
    cooling: CoolingSchedule, moves: Moves, undo: UndoRecord, found: OperatorSequence, best: float,
) -> tuple[float, float]:  # fmt: skip
    """Anneal ``schedule``, whose latency is given; sequences shorter than ``best`` seconds are stored in ``found``.

    A step moves a node in the order, changes the trigger of a transfer, or moves units to another device: one unit, or
    connected or consecutive ones of one device, or, in a share of the steps, a cluster joined by costly tensors; of
    several units some are pulled forward as well.  The energy is the latency, temperatures are in seconds.  Returns the
    latency at the end and the best one.
    """
    np.random.seed(cooling.seed)
    nodes, devices = instance.time.shape
    number = len(units.memory)
    factor = (cooling.cold / cooling.hot) ** (1.0 / max(cooling.steps, 1))
    heat = cooling.hot
    tensors = len(instance.producer)
    for unit in range(number):
        undo.mark[unit] = -1
    for step in range(cooling.steps):
        heat *= factor
        limit = latency - heat * np.log(1.0 - np.random.random())
        together = tensors > 0 and np.random.random() < moves.cluster_share
        kind = 1.0 if together else np.random.random()
        v = schedule.order[moves.first + np.random.randint(moves.end - moves.first)]
        stamp = step
        place = nodes
        count = 0
        old_place, new_place = -1, -1
        flipped_tensor, flipped_target, old_caller, was_behind = -1, -1, -1, -1
        pulled = 0
        if kind < 0.30:  # the node's place
            low, high = _position_range(instance, schedule, v)
            if high <= low:
                continue
            at = schedule.position[v]
            reach = 1 << np.random.randint(1, 12)
            low, high = max(low, at - reach), min(high, at + reach)
            new_place = low + np.random.randint(high - low + 1)
            if new_place == at:
                continue
            old_place = at
            _reposition(schedule, at, new_place)
            place = min(at, new_place)
            reshape_between(schedule.marks, place, max(at, new_place))
        elif kind < 0.35 and tensors > 0 and instance.resources > 0:  # when a transfer is called for
            outputs = instance.output_start[v + 1] - instance.output_start[v]
            if outputs == 0:
                continue
            flipped_tensor = instance.output[instance.output_start[v] + np.random.randint(outputs)]
            flipped_target = np.random.randint(devices)
            latest = _before_readers(instance, schedule, flipped_tensor, flipped_target)
            if flipped_target == schedule.device[v] or latest == nodes:
                continue
            old_caller = schedule.transfer_trigger[flipped_tensor, flipped_target]
            at = schedule.position[v]
            draw = np.random.random()
            new_caller = -1
            if draw < 0.4:
                new_caller = v
            elif draw < 0.8:
                new_caller = schedule.order[at + np.random.randint(latest - at + 1)]
            if new_caller == old_caller:
                continue
            place = latest + 1 if new_caller < 0 else schedule.position[new_caller]
            reshape(schedule.marks, place)
            if old_caller >= 0:
                reshape(schedule.marks, schedule.position[old_caller])
                place = min(place, schedule.position[old_caller])
            was_behind = _set_trigger(schedule, flipped_tensor * devices + flipped_target, new_caller, -1)
        else:  # devices
            if kind < 0.65 or together:
                count = 1
                undo.units[0] = instance.unit[v]
            else:
                most = min(number, 2 + np.random.randint((1 << np.random.randint(1, 8)) - 1))
                if kind < 0.85:
                    count = connected_units(instance, schedule, v, most, undo, stamp)
                else:
                    count = consecutive_units(instance, schedule, v, most, undo, stamp)
            home = schedule.device[v]
            pick = undo.units[np.random.randint(count)]
            target = home
            if np.random.random() < 0.5:
                members = instance.member_start[pick + 1] - instance.member_start[pick]
                target = _neighbour_device(
                    instance, schedule, instance.member[instance.member_start[pick] + np.random.randint(members)]
                )
            if target == home:
                target = np.random.randint(devices)
            if target == home:
                continue
            if together:
                side = np.random.randint(4)
                low = schedule.position[v] if side == 0 else 0
                high = schedule.position[v] if side == 1 else nodes - 1
                over = units.transfer_cost[np.random.randint(tensors)] * (1.0 - 1e-9)
                count = costly_cluster(instance, schedule, units.transfer_cost, v, over, low, high, target, undo, stamp)
            fine = True
            amount = 0.0
            for k in range(count):
                fine = fine and units.able[undo.units[k], target]
                amount += units.memory[undo.units[k]]
            if not fine:
                continue
            if schedule.memory_used[target] + amount > instance.memory_limit[target]:
                if count > 1 or together:
                    continue
                # In exchange for something that is there.
                other = np.random.randint(number)
                there = schedule.device[instance.member[instance.member_start[other]]]
                if there == home or not units.able[other, home] or not units.able[undo.units[0], there]:
                    continue
                if (
                    schedule.memory_used[there] + amount - units.memory[other] > instance.memory_limit[there]
                    or schedule.memory_used[home] - amount + units.memory[other] > instance.memory_limit[home]
                ):
                    continue
                target = there
                undo.units[1] = other
                count = 2
            for k in range(count):
                unit = undo.units[k]
                was = schedule.device[instance.member[instance.member_start[unit]]]
                will = target if was == home or together else home
                undo.devices[k] = was
                place = _affected(instance, schedule, unit, was, will, place)
                _assign(instance, schedule, unit, will, units.memory)
            if (together or kind >= 0.65) and np.random.random() < _PULLED:
                pulled = _pull_forward(instance, schedule, count, target, undo, stamp)
                for k in range(pulled):
                    place = min(place, undo.place[k])
        value = evaluate(instance, schedule, place, limit)
        if value <= limit:
            commit(instance, schedule)
            latency = value
            if value < best:
                best = value
                _keep(schedule, found)
            continue
        rollback(schedule)
        for k in range(count):
            _assign(instance, schedule, undo.units[k], undo.devices[k], units.memory)
        for k in range(pulled - 1, -1, -1):
            _reposition(schedule, undo.place[k], undo.origin[k])
        if old_place >= 0:
            _reposition(schedule, new_place, old_place)
        if flipped_tensor >= 0:
            _set_trigger(schedule, flipped_tensor * devices + flipped_target, old_caller, was_behind)
    return latency, best
