"""Bounds of programs over sets of stages: superblocks, the cheapest set with an even share, and the worth of sets.

The stages of a placement on like devices, taken together to superblocks of m[b] stages, load no more than m[b] times
the largest load: a tensor that such a set cuts is cut by one of its stages.  Memory and streaming only add.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from placedsl.certificates.checked.cases import Program, bound
from placedsl.certificates.checked.elementary import simple
from placedsl.certificates.checked.instance import Instance
from placedsl.certificates.checked.numbers import RefusedError

#: More columns than this are not looked at.
MOST_COLUMNS = 100_000


def superblocks(instance: Instance, proof: Mapping[str, Any]) -> Fraction:
    """The least T for which there are superblocks that load at most m[b] T."""
    program, _ = superblock_program(instance, proof["stages"])
    return _proven(bound(program, proof["cases"]))


def even_share(instance: Instance, proof: Mapping[str, Any]) -> Fraction:
    """The cheapest set that works as much as some device has to."""
    return _proven(bound(share_program(instance), proof["cases"]))


def _proven(found: Fraction | None) -> Fraction:
    if found is None:
        raise RefusedError("cases that leave nothing: there is always some set of stages")
    return found


def alike(instance: Instance) -> tuple[Fraction, ...]:
    """The work of units on devices that are alike, and run them all."""
    if instance.classes != 1:
        raise RefusedError("devices are not alike")
    known = tuple(own for own in instance.work[0] if own is not None)
    if len(known) < instance.units or not known:
        raise RefusedError("a unit runs nowhere, or there is none")
    return known


def superblock_program(given: Instance, stages: Sequence[int]) -> tuple[Program, Instance]:
    """Columns y[u, b] (unit u is in one of the first b + 1 superblocks), c[e, b] (superblock b cuts tensor e), and T.

    The instance has units on a cycle of the order as one.
    """
    instance = given.contracted()
    work, tensors = alike(instance), sorted(instance.moving[0].items(), key=lambda one: sorted(one[0]))
    blocks = len(stages)
    if not blocks or any(type(m) is not int or m < 1 for m in stages) or sum(stages) != instance.counts[0]:
        raise RefusedError("superblocks that are not all devices")
    units, free = instance.units, blocks - 1
    most = units * free + len(tensors) * blocks
    if most > MOST_COLUMNS:
        raise RefusedError(f"a program of more than {MOST_COLUMNS:,} columns")
    program = Program(most + 1, units * free, {most: Fraction(1)}, open=frozenset({most}))

    def inside(u: int, b: int, by: Fraction | int) -> tuple[list[tuple[int, Fraction | int]], Fraction | int]:
        # Whether a unit is in superblock b, times a number: columns and a constant.
        own: list[tuple[int, Fraction | int]] = [(u * free + b, by)] if b < free else []
        own += [(u * free + b - 1, -by)] if b else []
        return own, by if b == free else 0

    for b in range(1, free):
        for u in range(units):
            program.at_most((u * free + b - 1, 1), (u * free + b, -1))
    for b in range(free):
        for before, after in instance.order:
            program.at_most((after * free + b, 1), (before * free + b, -1))
    for e, (pins, _) in enumerate(tensors):
        first, *rest = sorted(pins)
        cut = units * free + e * blocks
        for b in range(blocks):
            for other in rest:
                for sign in (1, -1):
                    plus, constant = inside(other, b, sign)
                    minus, more = inside(first, b, -sign)
                    program.at_most(*plus, *minus, (cut + b, -1), limit=-constant - more)
            if blocks > 1:
                # What is cut, is cut by two at least.
                program.at_most((cut + b, 1), *((cut + i, -1) for i in range(blocks) if i != b))
    for b, times in enumerate(stages):
        terms: list[tuple[int, Fraction | int]] = [(most, -times)]
        constants = Fraction(0)
        for u, own in enumerate(work):
            columns, constant = inside(u, b, own)
            terms += columns
            constants += constant
        terms += [(units * free + e * blocks + b, cost) for e, (_, cost) in enumerate(tensors)]
        program.at_most(*terms, limit=-constants)
    return program, instance


def share_program(instance: Instance) -> Program:
    """Columns x[u] (unit u is in the set) and c[e] (it cuts tensor e): the least load of a set with an even share."""
    work = alike(instance)
    program = _set_program(instance, 0)
    program.cost = {u: own for u, own in enumerate(work) if own} | program.cost
    program.at_most(*((u, -own) for u, own in enumerate(work)), limit=-simple(instance, {}))
    return program


def _set_program(instance: Instance, c: int) -> Program:
    """The set and what it cuts on a device of a class, with the transfers as costs."""
    tensors = sorted(instance.moving[c].items(), key=lambda one: sorted(one[0]))
    units = instance.units
    if units + len(tensors) > MOST_COLUMNS:
        raise RefusedError(f"a program of more than {MOST_COLUMNS:,} columns")
    program = Program(units + len(tensors), units, {units + e: cost for e, (_, cost) in enumerate(tensors)})
    for e, (pins, _) in enumerate(tensors):
        first, *rest = sorted(pins)
        for other in rest:
            program.at_most((other, 1), (first, -1), (units + e, -1))
            program.at_most((first, 1), (other, -1), (units + e, -1))
    return program


def worth_program(instance: Instance, c: int, worth: Sequence[Fraction], largest: Fraction) -> Program:
    """The most that a set is worth, as the least of its negative, which loads at most ``largest`` on a class."""
    program = _set_program(instance, c)
    terms: list[tuple[int, Fraction | int]] = [*program.cost.items()]
    for u, own in enumerate(instance.work[c]):
        if own is None:
            program.at_most((u, 1))
        else:
            terms.append((u, own))
    program.at_most(*terms, limit=largest)
    program.cost = {u: -value for u, value in enumerate(worth) if value}
    return program
