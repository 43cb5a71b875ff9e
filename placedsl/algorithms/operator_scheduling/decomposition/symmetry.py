"""Devices that may change places: what is known of a block for two devices of its ends holds for others like them."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, integers
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence
from placedsl.arrays import Integers, Integers32


def alike_devices(instance: SchedulingInstance) -> Integers:
    """D: the least number of the devices that each may change places with (itself: none).  Memory is not considered."""
    alike = np.arange(instance.devices)
    for d, e in combinations(range(instance.devices), 2):
        if alike[e] == e and alike[d] == d and _interchangeable(instance, d, e):
            alike[e] = d
    return alike


def _interchangeable(instance: SchedulingInstance, d: int, e: int) -> bool:
    """Whether two devices have the same times, transfers and shares of resources."""
    swap = np.arange(instance.devices)
    swap[[d, e]] = e, d
    if not np.array_equal(instance.time[:, d], instance.time[:, e]):
        return False
    pairs = [instance.given] if len(instance.given) else [instance.fixed, instance.per_size]
    if not all(np.array_equal(x, x[..., swap, :][..., :, swap], equal_nan=True) for x in pairs):
        return False
    # A transfer between two devices occupies what that between their doubles does: one resource for another.
    start, devices = instance.resource_start, instance.devices
    named: dict[int, int] = {}
    for a in range(devices):
        for b in range(devices):
            own, other = a * devices + b, int(swap[a]) * devices + int(swap[b])
            here = instance.resource[start[own] : start[own + 1]].tolist()
            there = instance.resource[start[other] : start[other + 1]].tolist()
            if len(here) != len(there) or any(named.setdefault(r, s) != s for r, s in zip(here, there, strict=True)):
                return False
    return len(set(named.values())) == len(named)


def renamings(alike: Integers, a: int, b: int, ends: tuple[bool, bool]) -> list[Integers]:
    """Devices renamed (D: the new number of each), once for each other pair like a and b; ``ends``: which of the two a
    block has, for only these are renamed on purpose.
    """
    out = []
    first, last = (
        np.flatnonzero(alike == alike[d]) if end else np.array([d]) for d, end in zip((a, b), ends, strict=True)
    )
    for x in first.tolist():
        for y in last.tolist():
            if (x, y) == (a, b) or (all(ends) and (x == y) != (a == b)):
                continue
            new = np.arange(len(alike))
            for own, other, end in zip((a, b), (x, y), ends, strict=True):
                if end:
                    held = int(np.flatnonzero(new == other)[0])
                    new[[own, held]] = new[[held, own]]
            out.append(new)
    return out


def renamed(sequence: OperatorSequence, new: Integers) -> OperatorSequence:
    """A sequence on devices with other numbers."""
    devices = sequence.transfer_trigger.shape[1]
    trigger = np.empty_like(sequence.transfer_trigger)
    trigger[:, new] = sequence.transfer_trigger
    following = np.empty_like(sequence.next_transfer)
    following[_transfers(np.arange(len(following)), new, devices)] = _transfers(sequence.next_transfer, new, devices)
    return OperatorSequence(
        integers(new[sequence.device]),
        sequence.order,
        trigger,
        _transfers(sequence.first_transfer, new, devices),
        following,
    )


def _transfers(transfer: Integers | Integers32, new: Integers, devices: int) -> Integers32:
    """The numbers of transfers (tensor * D + device; -1: none) with the devices renamed."""
    tensor, device = np.divmod(transfer, devices)
    return np.where(transfer < 0, -1, tensor * devices + new[device]).astype(np.int32)
