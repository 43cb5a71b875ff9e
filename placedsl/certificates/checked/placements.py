"""All placements as a program: units on devices, whatever their classes, within their memory."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from placedsl.certificates.checked.cases import Program, bound
from placedsl.certificates.checked.instance import Instance
from placedsl.certificates.checked.numbers import RefusedError
from placedsl.certificates.checked.superblocks import MOST_COLUMNS


def placements(instance: Instance, proof: Mapping[str, Any]) -> Fraction:
    """The least largest load of the units on devices."""
    found = bound(placement_program(instance), proof["cases"])
    if found is None:
        raise RefusedError("cases that leave nothing: there is no placement, and nothing to be bounded")
    return found


def placement_program(given: Instance) -> Program:
    """Columns x[u, d] (unit u is on device d), c[e, d] (device d cuts tensor e) and T; devices class by class.

    What a device streams is at least what the bytes beyond its room take, and at least 0, which T is above anyway.
    """
    instance = given.contracted() if given.pairs is not None else given
    kinds = [c for c, count in enumerate(instance.counts) for _ in range(count)]
    tensors = sorted({pins for moving in instance.moving for pins in moving}, key=sorted)
    units, devices = instance.units, len(kinds)
    most = (units + len(tensors)) * devices
    if most > MOST_COLUMNS:
        raise RefusedError(f"a program of more than {MOST_COLUMNS:,} columns")
    program = Program(most + 1, units * devices, {most: Fraction(1)}, open=frozenset({most}))
    for u in range(units):
        program.at_most(*((u * devices + d, 1) for d in range(devices)), limit=1)
        program.at_most(*((u * devices + d, -1) for d in range(devices)), limit=-1)
    for e, pins in enumerate(tensors):
        first, *rest = sorted(pins)
        cut = (units + e) * devices
        for d in range(devices):
            for other in rest:
                program.at_most((other * devices + d, 1), (first * devices + d, -1), (cut + d, -1))
                program.at_most((first * devices + d, 1), (other * devices + d, -1), (cut + d, -1))
            if devices > 1:
                program.at_most((cut + d, 1), *((cut + i, -1) for i in range(devices) if i != d))
    for d, c in enumerate(kinds):
        load: list[tuple[int, Fraction | int]] = [(most, -1)]
        for u, own in enumerate(instance.work[c]):
            if own is None:
                program.at_most((u * devices + d, 1))
            else:
                load.append((u * devices + d, own))
        load += [((units + e) * devices + d, instance.moving[c].get(p, Fraction(0))) for e, p in enumerate(tensors)]
        program.at_most(*load)
        held = [(u * devices + d, bytes_) for u, bytes_ in enumerate(instance.held)]
        limit, streams = instance.room[c], instance.streams[c]
        if limit is not None:
            program.at_most(*held, limit=limit)
        if streams is not None:
            # Room of less than 0 counts only where a device holds something.
            room, rate = max(streams[0], Fraction(0)), streams[1]
            program.at_most(*load, *((j, bytes_ * rate) for j, bytes_ in held), limit=room * rate)
    return program
