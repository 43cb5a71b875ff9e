"""Prices of units: no sets within a load are worth as much as all units together.

A placement is a set of units for each device.  If each set of a load up to T is worth at most value[c] on a device of
class c, at prices p[u] less q[c] for the memory of a whole device, then all loads within T take
sum p  <=  sum over c of count[c] (q[c] + value[c]).  That is shown by a tree of cases, or by looking at all sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from placedsl.certificates.checked.cases import bound
from placedsl.certificates.checked.elementary import share
from placedsl.certificates.checked.instance import Instance
from placedsl.certificates.checked.numbers import RefusedError, amount, number
from placedsl.certificates.checked.sets import none_worth_more
from placedsl.certificates.checked.superblocks import worth_program


def prices(instance: Instance, proof: Mapping[str, Any]) -> Fraction:
    """T, where no placement is within it."""
    largest = amount(proof["largest"], "a load")
    price, memory, of_class = given(instance, proof)
    if len(proof["worth"]) != instance.classes:
        raise RefusedError("trees that do not fit the classes of devices")
    most = Fraction(0)
    for c, shown in enumerate(proof["worth"]):
        if isinstance(shown, Mapping):
            value = amount(shown["sets"], "what a set is worth")
            none_worth_more(instance.work[c], instance.moving[c], of_class[c], largest, value)
        else:
            least = bound(worth_program(instance, c, of_class[c], largest), shown)
            # The empty set is worth nothing.
            value = max(Fraction(0), Fraction(0) if least is None else -least)
        most += instance.counts[c] * (memory[c] + value)
    if sum(price, Fraction(0)) <= most:
        raise RefusedError("sets within the load may be worth as much as all units")
    return largest


def given(instance: Instance, proof: Mapping[str, Any]) -> tuple[list[Fraction], list[Fraction], list[list[Fraction]]]:
    """The prices of units and of memory, and what each unit is worth on a device of each class."""
    price = [number(p, "a price") for p in proof["price"]]
    memory = [amount(q, "a price of memory") for q in proof["memory"]]
    if len(price) != instance.units or len(memory) != instance.classes:
        raise RefusedError("prices that do not fit the units, or the classes of devices")
    of_class = [
        [p - memory[c] * share(instance, held, c) for p, held in zip(price, instance.held, strict=True)]
        for c in range(instance.classes)
    ]
    return price, memory, of_class
