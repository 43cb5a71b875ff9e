"""Compiled: annealing over devices, sequence and callers of transfers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from placedsl.algorithms.dataflow.arrays import Flow
from placedsl.algorithms.dataflow.kernel import Order
from placedsl.algorithms.dataflow.walk_kernel import Walk, evaluate, forget, keep
from placedsl.graph.graph import Booleans, Floats, Integers


class Cooling(NamedTuple):
    """How many ``steps``; temperature from ``hot`` to ``cold``, in time; ``seed`` of the random numbers; ``together``
    the share of the steps that move what is dear to cut."""

    steps: int
    hot: float
    cold: float
    seed: int
    together: float = 0.15


class Change(NamedTuple):
    """Room for one change, to undo it: units and their old devices."""

    units: Integers
    devices: Integers
    mark: Integers


@njit(cache=True)
def _affected(flow: Flow, walk: Walk, unit: int, old: int, new: int, place: int) -> int:
    """The first place of the sequence that a new device for a unit changes anything at."""
    for m in range(flow.member_start[unit], flow.member_start[unit + 1]):
        v = flow.member[m]
        place = min(place, walk.position[v])
        for i in range(flow.input_start[v], flow.input_start[v + 1]):
            tensor = flow.input[i]
            if walk.caller[tensor, old] >= 0:
                place = min(place, walk.position[walk.caller[tensor, old]])
            if walk.caller[tensor, new] >= 0:
                place = min(place, walk.position[walk.caller[tensor, new]])
    return place


@njit(cache=True)
def _assign(flow: Flow, walk: Walk, unit: int, device: int, size: Floats) -> None:
    old = walk.device[flow.member[flow.member_start[unit]]]
    for m in range(flow.member_start[unit], flow.member_start[unit + 1]):
        walk.device[flow.member[m]] = device
    walk.held[old] -= size[unit]
    walk.held[device] += size[unit]


@njit(cache=True)
def _shift(walk: Walk, old: int, new: int) -> None:
    """Take the node at one place of the sequence out and put it in at another."""
    v = walk.sequence[old]
    step = 1 if new > old else -1
    k = old
    while k != new:
        w = walk.sequence[k + step]
        walk.sequence[k] = w
        walk.position[w] = k
        k += step
    walk.sequence[new] = v
    walk.position[v] = new


@njit(cache=True)
def _span(flow: Flow, walk: Walk, v: int) -> tuple[int, int]:
    """The places that a node may be at, between what it reads and what reads it."""
    low, high = 0, len(walk.sequence) - 1
    for i in range(flow.input_start[v], flow.input_start[v + 1]):
        low = max(low, walk.position[flow.producer[flow.input[i]]] + 1)
    for i in range(flow.output_start[v], flow.output_start[v + 1]):
        tensor = flow.output[i]
        for j in range(flow.reader_start[tensor], flow.reader_start[tensor + 1]):
            high = min(high, walk.position[flow.reader[j]] - 1)
    return low, high


@njit(cache=True)
def _call_after(walk: Walk, transfer: int, caller: int, behind: int) -> int:
    """Another caller for a transfer (-1: its first reader), which calls for it right after the transfer ``behind`` (-1:
    first of all); what it was behind with its old caller."""
    devices = walk.caller.shape[1]
    old = walk.caller[transfer // devices, transfer % devices]
    was_behind = -1
    if old >= 0:
        if walk.first[old] == transfer:
            walk.first[old] = walk.following[transfer]
        else:
            was_behind = walk.first[old]
            while walk.following[was_behind] != transfer:
                was_behind = walk.following[was_behind]
            walk.following[was_behind] = walk.following[transfer]
    walk.caller[transfer // devices, transfer % devices] = caller
    walk.following[transfer] = -1
    if caller >= 0 and behind < 0:
        walk.following[transfer] = walk.first[caller]
        walk.first[caller] = transfer
    elif caller >= 0:
        walk.following[transfer] = walk.following[behind]
        walk.following[behind] = transfer
    return was_behind


@njit(cache=True)
def _before_readers(flow: Flow, walk: Walk, tensor: int, target: int) -> int:
    """The place before that of the first reader on a device; n where there is none."""
    first = len(walk.sequence) + 1
    for i in range(flow.reader_start[tensor], flow.reader_start[tensor + 1]):
        if walk.device[flow.reader[i]] == target:
            first = min(first, walk.position[flow.reader[i]])
    return first - 1


@njit(cache=True)
def _grow(flow: Flow, walk: Walk, v: int, most: int, change: Change, stamp: int) -> int:
    """A connected piece of units on the device of v, v's first; how many."""
    home = walk.device[v]
    change.units[0] = flow.unit[v]
    change.mark[flow.unit[v]] = stamp
    count, at = 1, 0
    while at < count < most:
        unit = change.units[at]
        at += 1
        for m in range(flow.member_start[unit], flow.member_start[unit + 1]):
            w = flow.member[m]
            for i in range(flow.input_start[w], flow.input_start[w + 1]):
                u = flow.producer[flow.input[i]]
                if walk.device[u] == home and change.mark[flow.unit[u]] != stamp and count < most:
                    change.mark[flow.unit[u]] = stamp
                    change.units[count] = flow.unit[u]
                    count += 1
            for i in range(flow.output_start[w], flow.output_start[w + 1]):
                tensor = flow.output[i]
                for j in range(flow.reader_start[tensor], flow.reader_start[tensor + 1]):
                    u = flow.reader[j]
                    if walk.device[u] == home and change.mark[flow.unit[u]] != stamp and count < most:
                        change.mark[flow.unit[u]] = stamp
                        change.units[count] = flow.unit[u]
                        count += 1
    return count


@njit(cache=True)
def _stretch(flow: Flow, walk: Walk, v: int, most: int, change: Change, stamp: int) -> int:
    """The units of the nodes on the device of v that follow it in the sequence; how many."""
    home = walk.device[v]
    count = 0
    for k in range(walk.position[v], min(walk.position[v] + 4 * most, len(walk.sequence))):
        w = walk.sequence[k]
        if walk.device[w] == home and change.mark[flow.unit[w]] != stamp:
            change.mark[flow.unit[w]] = stamp
            change.units[count] = flow.unit[w]
            count += 1
            if count == most:
                break
    return count


@njit(cache=True)
def _dear(
    flow: Flow, walk: Walk, cost: Floats, v: int, over: float, low: int, high: int, target: int, change: Change,
    stamp: int,
) -> int:  # fmt: skip
    """The units that hang together with that of v by tensors dearer to move than ``over``, from place ``low`` to
    ``high``, wherever they are but on the device ``target``; how many."""
    change.units[0] = flow.unit[v]
    change.mark[flow.unit[v]] = stamp
    count, at = 1, 0
    while at < count:
        unit = change.units[at]
        at += 1
        for m in range(flow.member_start[unit], flow.member_start[unit + 1]):
            w = flow.member[m]
            for i in range(flow.input_start[w], flow.input_start[w + 1]):
                if cost[flow.input[i]] > over:
                    u = flow.producer[flow.input[i]]
                    if change.mark[flow.unit[u]] != stamp and low <= walk.position[u] <= high:
                        change.mark[flow.unit[u]] = stamp
                        change.units[count] = flow.unit[u]
                        count += 1
            for i in range(flow.output_start[w], flow.output_start[w + 1]):
                tensor = flow.output[i]
                if cost[tensor] <= over:
                    continue
                for j in range(flow.reader_start[tensor], flow.reader_start[tensor + 1]):
                    u = flow.reader[j]
                    if change.mark[flow.unit[u]] != stamp and low <= walk.position[u] <= high:
                        change.mark[flow.unit[u]] = stamp
                        change.units[count] = flow.unit[u]
                        count += 1
    kept = 0
    for k in range(count):
        if walk.device[flow.member[flow.member_start[change.units[k]]]] != target:
            change.units[kept] = change.units[k]
            kept += 1
    return kept


@njit(cache=True)
def _neighbour_device(flow: Flow, walk: Walk, v: int) -> int:
    """The device of some node that v exchanges tensors with, its own where there is none."""
    inputs = flow.input_start[v + 1] - flow.input_start[v]
    outputs = flow.output_start[v + 1] - flow.output_start[v]
    if inputs + outputs == 0:
        return int(walk.device[v])
    pick = np.random.randint(inputs + outputs)
    if pick < inputs:
        return int(walk.device[flow.producer[flow.input[flow.input_start[v] + pick]]])
    tensor = flow.output[flow.output_start[v] + pick - inputs]
    readers = flow.reader_start[tensor + 1] - flow.reader_start[tensor]
    if readers == 0:
        return int(walk.device[v])
    return int(walk.device[flow.reader[flow.reader_start[tensor] + np.random.randint(readers)]])


@njit(cache=True)
def anneal(
    flow: Flow, walk: Walk, able: Booleans, size: Floats, cost: Floats, latency: float, cooling: Cooling,
    change: Change, found: Order, best: float,
) -> tuple[float, float]:  # fmt: skip
    """Steps from the walk's schedule, whose latency is given; what is better than ``best`` goes to ``found``.
    ``able`` u x D; ``cost`` t: what moving a tensor takes.  The latency at the end and the best one."""
    np.random.seed(cooling.seed)
    nodes, devices = flow.time.shape
    units = len(size)
    factor = (cooling.cold / cooling.hot) ** (1.0 / max(cooling.steps, 1))
    heat = cooling.hot
    tensors = len(flow.producer)
    change.mark[:] = -1
    for step in range(cooling.steps):
        heat *= factor
        limit = latency - heat * np.log(1.0 - np.random.random())
        together = tensors > 0 and np.random.random() < cooling.together
        kind = 1.0 if together else np.random.random()
        v = np.random.randint(nodes)
        stamp = step
        place = nodes
        count = 0
        old_place, new_place = -1, -1
        flipped_tensor, flipped_target, old_caller, was_behind = -1, -1, -1, -1
        if kind < 0.30:  # the node's place
            low, high = _span(flow, walk, v)
            if high <= low:
                continue
            at = walk.position[v]
            reach = 1 << np.random.randint(1, 12)
            low, high = max(low, at - reach), min(high, at + reach)
            new_place = low + np.random.randint(high - low + 1)
            if new_place == at:
                continue
            old_place = at
            _shift(walk, at, new_place)
            place = min(at, new_place)
        elif kind < 0.35 and tensors > 0 and flow.resources > 0:  # when a transfer is called for
            outputs = flow.output_start[v + 1] - flow.output_start[v]
            if outputs == 0:
                continue
            flipped_tensor = flow.output[flow.output_start[v] + np.random.randint(outputs)]
            flipped_target = np.random.randint(devices)
            latest = _before_readers(flow, walk, flipped_tensor, flipped_target)
            if flipped_target == walk.device[v] or latest == nodes:
                continue
            old_caller = walk.caller[flipped_tensor, flipped_target]
            at = walk.position[v]
            draw = np.random.random()
            new_caller = -1
            if draw < 0.4:
                new_caller = v
            elif draw < 0.8:
                new_caller = walk.sequence[at + np.random.randint(latest - at + 1)]
            if new_caller == old_caller:
                continue
            place = latest + 1 if new_caller < 0 else walk.position[new_caller]
            if old_caller >= 0:
                place = min(place, walk.position[old_caller])
            was_behind = _call_after(walk, flipped_tensor * devices + flipped_target, new_caller, -1)
        else:  # devices
            if kind < 0.65 or together:
                count = 1
                change.units[0] = flow.unit[v]
            else:
                most = min(units, 1 << np.random.randint(1, 8))
                if kind < 0.85:
                    count = _grow(flow, walk, v, most, change, stamp)
                else:
                    count = _stretch(flow, walk, v, most, change, stamp)
            home = walk.device[v]
            pick = change.units[np.random.randint(count)]
            target = home
            if np.random.random() < 0.5:
                members = flow.member_start[pick + 1] - flow.member_start[pick]
                target = _neighbour_device(
                    flow, walk, flow.member[flow.member_start[pick] + np.random.randint(members)]
                )
            if target == home:
                target = np.random.randint(devices)
            if target == home:
                continue
            if together:
                side = np.random.randint(4)
                low = walk.position[v] if side == 0 else 0
                high = walk.position[v] if side == 1 else nodes - 1
                over = cost[np.random.randint(tensors)] * (1.0 - 1e-9)
                count = _dear(flow, walk, cost, v, over, low, high, target, change, stamp)
            fine = True
            amount = 0.0
            for k in range(count):
                fine = fine and able[change.units[k], target]
                amount += size[change.units[k]]
            if not fine:
                continue
            if walk.held[target] + amount > flow.room[target]:
                if count > 1 or together:
                    continue
                # In exchange for something that is there.
                other = np.random.randint(units)
                there = walk.device[flow.member[flow.member_start[other]]]
                if there == home or not able[other, home] or not able[change.units[0], there]:
                    continue
                if (
                    walk.held[there] + amount - size[other] > flow.room[there]
                    or walk.held[home] - amount + size[other] > flow.room[home]
                ):
                    continue
                target = there
                change.units[1] = other
                count = 2
            for k in range(count):
                unit = change.units[k]
                was = walk.device[flow.member[flow.member_start[unit]]]
                will = target if was == home or together else home
                change.devices[k] = was
                place = _affected(flow, walk, unit, was, will, place)
                _assign(flow, walk, unit, will, size)
        value = evaluate(flow, walk, place, limit)
        if value <= limit:
            keep(walk, place)
            latency = value
            if value < best:
                best = value
                found.device[:] = walk.device
                found.sequence[:] = walk.sequence
                found.caller[:] = walk.caller
                found.first[:] = walk.first
                found.following[:] = walk.following
            continue
        for k in range(count):
            _assign(flow, walk, change.units[k], change.devices[k], size)
        if old_place >= 0:
            _shift(walk, new_place, old_place)
        if flipped_tensor >= 0:
            _call_after(walk, flipped_tensor * devices + flipped_target, old_caller, was_behind)
        forget(walk, place)
    return latency, best
