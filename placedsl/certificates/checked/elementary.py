"""Bounds that a sum shows: the largest unit and the even share, what is streamed besides, prices of classes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from placedsl.certificates.checked.instance import Instance
from placedsl.certificates.checked.numbers import RefusedError, amount


def simple(instance: Instance, _proof: Mapping[str, Any]) -> Fraction:
    """The longest unit on its quickest class, or the even share of all of them."""
    least = [_least([work[u] for work in instance.work]) for u in range(instance.units)]
    return max(max(least, default=Fraction(0)), sum(least, Fraction(0)) / sum(instance.counts))


def _least(of_class: list[Fraction | None]) -> Fraction:
    known = [own for own in of_class if own is not None]
    if not known:
        raise RefusedError("a unit runs nowhere")
    return min(known)


def streamed(instance: Instance, _proof: Mapping[str, Any]) -> Fraction:
    """The same, with what is streamed of the memory that does not fit.

    A device that streams a byte in s seconds, and has room for r, takes at least (m - r) s for m bytes, and at least 0.
    """
    streams = [one or (Fraction(0), Fraction(0)) for one in instance.streams]
    alone, together = [], Fraction(0)
    for u, held in enumerate(instance.held):
        times = [work[u] for work in instance.work]
        alone.append(_least([
            None if own is None else own + max(Fraction(0), held - room) * rate
            for own, (room, rate) in zip(times, streams, strict=True)
        ]))  # fmt: skip
        together += _least([
            None if own is None else own + held * rate for own, (_, rate) in zip(times, streams, strict=True)
        ])  # fmt: skip
    for count, (room, rate) in zip(instance.counts, streams, strict=True):
        together -= count * max(room, Fraction(0)) * rate
    return max(max(alone, default=Fraction(0)), together / sum(instance.counts))


def work(instance: Instance, proof: Mapping[str, Any]) -> Fraction:
    """Prices of the time and of the memory of each class: by weak duality no division of the units costs less."""
    time = [amount(price, "a price of time") for price in proof["time"]]
    memory = [amount(price, "a price of memory") for price in proof["memory"]]
    if len(time) != instance.classes or len(memory) != instance.classes:
        raise RefusedError("prices that do not fit the classes of devices")
    whole = sum((count * price for count, price in zip(instance.counts, time, strict=True)), Fraction(0))
    if whole <= 0:
        raise RefusedError("no device has a price")
    paid = Fraction(0)
    for u, held in enumerate(instance.held):
        paid += _least([
            None if own is None else time[c] * own + memory[c] * share(instance, held, c)
            for c, own in enumerate(of[u] for of in instance.work)
        ])  # fmt: skip
    paid -= sum((count * price for count, price in zip(instance.counts, memory, strict=True)), Fraction(0))
    return max(paid / whole, Fraction(0))


def share(instance: Instance, held: Fraction, c: int) -> Fraction:
    """So many bytes as a share of what a device of a class has room for."""
    room = instance.room[c]
    return Fraction(0) if not room else held / room
