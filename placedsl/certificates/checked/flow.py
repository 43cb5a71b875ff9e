"""The cheapest set around one unit: a flow out of it, which no set with that unit can be below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from placedsl.certificates.checked.instance import Instance
from placedsl.certificates.checked.numbers import RefusedError, number


def flow(instance: Instance, proof: Mapping[str, Any]) -> Fraction:
    """The least flow out of one unit, over the classes that run it: no set with that unit loads less."""
    unit, given = int(proof["unit"]), {int(one["class"]): one for one in proof["flows"]}
    if not 0 <= unit < instance.units or not set(given) <= set(range(instance.classes)):
        raise RefusedError("there is no such unit, or no such class of devices")
    found = {c: _flow_value(instance, c, unit, one) for c, one in given.items()}
    runs = [c for c, work in enumerate(instance.work) if work[unit] is not None]
    if set(runs) != set(found):
        raise RefusedError("flows are not those of the classes of devices that run the unit")
    values = [found[c] for c in runs]
    if not values:
        raise RefusedError("no device runs the unit")
    return min(values)


def _flow_value(instance: Instance, c: int, source: int, given: Mapping[str, Any]) -> Fraction:
    """What leaves the source, once every arc has room for its flow, and as much leaves every other unit as enters."""
    scale = number(given["scale"], "a scale")
    if scale <= 0:
        raise RefusedError("a scale that is not positive")
    balance: dict[int, int] = {}

    def amounts(entries: Sequence[Sequence[int]], sign: int) -> int:
        total = 0
        for unit, amount in entries:
            if type(unit) is not int or type(amount) is not int or amount < 0:
                raise RefusedError("a flow that is no whole number")
            balance[unit] = balance.get(unit, 0) + sign * amount
            total += amount
        return total

    work, seen = instance.work[c], set[int]()
    for unit, amount in given["sink"]:
        if unit in seen or not 0 <= unit < len(work):
            raise RefusedError("an arc to the sink twice, or from no unit")
        seen.add(unit)
        room = work[unit]
        if room is not None and Fraction(amount) > room * scale:
            raise RefusedError("more flows to the sink than the unit works")
    amounts(given["sink"], 1)
    through = set[frozenset[int]]()
    for tensor in given["tensors"]:
        units = frozenset(tensor["units"])
        if units in through or not all(unit in units for side in ("out", "into") for unit, _ in tensor[side]):
            raise RefusedError("a tensor twice, or units that do not touch it")
        through.add(units)
        out, into = amounts(tensor["out"], 1), amounts(tensor["into"], -1)
        if out != into or Fraction(out) > instance.moving[c].get(units, Fraction(0)) * scale:
            raise RefusedError("more flows through a tensor than moving it costs, or than leaves it")
    value = balance.pop(source, 0)
    if any(balance.values()):
        raise RefusedError("a unit that more enters than leaves, or less")
    return Fraction(value) / scale
