"""That there is no placement: prices of memory, ideals that no stages reach, and cases of placements that are empty.

Each function returns where it is shown, and raises RefusedError where it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from placedsl.certificates.checked.cases import bound
from placedsl.certificates.checked.ideals import reach_everything
from placedsl.certificates.checked.instance import Instance
from placedsl.certificates.checked.numbers import RefusedError, amount
from placedsl.certificates.checked.placements import placement_program

_NONE = Fraction(0)


def joined(instance: Instance) -> Instance:
    """Units on a cycle of the order, if there is one, as one."""
    return instance if instance.pairs is None else instance.contracted()


def no_room(given: Instance, proof: Mapping[str, Any]) -> None:
    """A price of a byte on each class: the units together cost more, each where it is cheapest, than all memory is
    worth; or a unit runs nowhere."""
    instance = joined(given)
    price = [amount(q, "a price of memory") for q in proof["price"]]
    if len(price) != instance.classes:
        raise RefusedError("prices that do not fit the classes of devices")
    worth = _NONE
    for count, q, room in zip(instance.counts, price, instance.room, strict=True):
        if q and room is None:
            raise RefusedError("a price of memory that has no limit")
        worth += count * q * (room or 0)
    needed = _NONE
    for u, held in enumerate(instance.held):
        may = [q for q, of in zip(price, instance.work, strict=True) if of[u] is not None]
        if not may:
            return
        needed += min(may) * held
    if needed <= worth:
        raise RefusedError("there may be room for all units")


def no_chain(given: Instance, _proof: Mapping[str, Any]) -> None:
    """No chain of ideals ends with everything, whatever stages load."""
    if given.pairs is None:
        raise RefusedError("the placement need not be contiguous")
    if reach_everything(given.contracted(), beyond_all(given)):
        raise RefusedError("there are stages that hold all units")


def no_case(instance: Instance, proof: Mapping[str, Any]) -> None:
    """Cases that leave nothing."""
    if bound(placement_program(instance), proof["cases"]) is not None:
        raise RefusedError("a case that is not empty")


def beyond_all(instance: Instance) -> Fraction:
    """More than any set of units loads on any device."""
    streams = [one or (_NONE, _NONE) for one in instance.streams]
    out = Fraction(1)
    for u, held in enumerate(instance.held):
        out += max(((of[u] or _NONE) for of in instance.work), default=_NONE)
        out += max((held * rate for _, rate in streams), default=_NONE)
    out += max((-min(room, _NONE) * rate for room, rate in streams), default=_NONE)
    return out + sum((max(costs, default=_NONE) for _, costs in instance.tensors), _NONE)


#: How each kind is checked.
INFEASIBLE: dict[str, Callable[[Instance, Mapping[str, Any]], None]] = {
    "no room": no_room, "ideals": no_chain, "placements": no_case,
}  # fmt: skip
