"""What any set of units is worth at most within a load: all connected sets are listed, and put together.

Two sets of units that touch no tensor together load a device by the sum of what each loads it, so that every set is a
union of connected ones.  Whole numbers throughout: loads and worths are multiples of one over their denominators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from placedsl.certificates.checked.numbers import RefusedError, denominator

#: More steps of listing the sets, and of putting them together, are not taken.
MOST_LISTED, MOST_TRIED = 3_000_000, 20_000_000
#: Loads are counted in so many steps, downwards, where it is asked what sets of later units are worth.
STEPS = 256


class TooManySetsError(RefusedError):
    """There are more sets than are looked at."""


class _Set(NamedTuple):
    """A connected set: its least unit, all of its units as bits, its load and its worth."""

    unit: int
    members: int
    load: int
    worth: int


def none_worth_more(
    work: Sequence[Fraction | None], moving: Mapping[frozenset[int], Fraction], worth: Sequence[Fraction],
    largest: Fraction, value: Fraction,
) -> None:  # fmt: skip
    """RefusedError where a set of units that loads at most ``largest`` may be worth more than ``value``.

    ``work``: of each unit (None: it is in no set);  ``moving``: what a set pays that has some of these units, not all.
    """
    seconds = denominator([*(own for own in work if own is not None), *moving.values(), largest])
    values = denominator([*worth, value])
    most, enough = int(largest * seconds), int(value * values)
    own = [None if time is None else int(time * seconds) for time in work]
    tensors = [(sum(1 << u for u in pins), int(cost * seconds)) for pins, cost in moving.items()]
    sets: list[list[_Set]] = [[] for _ in work]
    whole = [int(w * values) for w in worth]
    for unit, members, load in _connected(own, tensors, most):
        own_worth = sum(w for u, w in enumerate(whole) if members >> u & 1)
        if own_worth > 0:
            sets[unit].append(_Set(unit, members, load, own_worth))
    _put_together(sets, most, enough)


def _connected(
    work: Sequence[int | None], tensors: list[tuple[int, int]], most: int
) -> Iterator[tuple[int, int, int]]:  # fmt: skip
    """Connected sets that load at most ``most``: their least unit, their units and their load.

    A unit beside the set is taken or left out, one after another.  A tensor is paid for once one of its units is in and
    one is out, so that what is paid only grows.
    """
    units, left = len(work), MOST_LISTED
    touching = [[one for one in tensors if one[0] >> u & 1] for u in range(units)]
    reach = [0] * units
    for u in range(units):
        for pins, _ in touching[u]:
            reach[u] |= pins
    nowhere = sum(1 << u for u, own in enumerate(work) if own is None)
    for root, own in enumerate(work):
        if own is None:
            continue
        outside = nowhere | (1 << root) - 1
        paid = own + sum(cost for pins, cost in touching[root] if pins & outside)
        waiting = [(1 << root, outside, reach[root], paid)] if paid <= most else []
        while waiting:
            left -= 1
            if left < 0:
                raise TooManySetsError(f"more than {MOST_LISTED:,} steps to list connected sets")
            inside, outside, beside, paid = waiting.pop()
            open_units = beside & ~(inside | outside)
            if not open_units:
                yield root, inside, paid
                continue
            bit = open_units & -open_units
            u = bit.bit_length() - 1
            time = work[u]
            assert time is not None
            without = paid + sum(cost for pins, cost in touching[u] if pins & inside and not pins & outside)
            if without <= most:
                waiting.append((inside, outside | bit, beside, without))
            within = paid + time + sum(cost for pins, cost in touching[u] if pins & outside and not pins & inside)
            if within <= most:
                waiting.append((inside | bit, outside, beside | reach[u], within))


def _put_together(by_unit: Sequence[Sequence[_Set]], most: int, enough: int) -> None:
    """RefusedError where sets that share no unit and load at most ``most`` together are worth more than ``enough``."""

    def steps(load: int) -> int:
        return load * STEPS // most if most else STEPS

    # What sets from each unit on are worth at most, by the steps that they may load, as if they could overlap.
    later = [[0] * (STEPS + 1)]
    for own in reversed(by_unit):
        behind, here = later[-1], list(later[-1])
        for one in own:
            step, worth = steps(one.load) if most else 0, one.worth
            here[step:] = [
                max(known, worth + rest) for known, rest in zip(here[step:], behind[: len(here) - step], strict=True)
            ]
        later.append(here)
    later.reverse()
    every = [one for own in by_unit for one in own if one.worth + later[0][steps(most - one.load)] > enough]
    tried = 0
    waiting = [(0, 0, most, 0)]
    while waiting:
        at, taken, room, known = waiting.pop()
        rest = steps(room)
        for n in range(at, len(every)):
            one = every[n]
            tried += 1
            if known + later[one.unit][rest] <= enough:
                break
            if one.load > room or one.members & taken:
                continue
            worth = known + one.worth
            if worth > enough:
                raise RefusedError("a set within the load is worth more than is said")
            if worth + later[one.unit + 1][steps(room - one.load)] > enough:
                waiting.append((n + 1, taken | one.members, room - one.load, worth))
        if tried > MOST_TRIED:
            raise TooManySetsError(f"more than {MOST_TRIED:,} steps to put connected sets together")
