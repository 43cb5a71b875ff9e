"""Units and dimensions: `16 GiB`, `25 GB/s`, `3.5 ms`, `312 TFLOP/s`, `2.5 USD/h`, `300 W`, `10%`.

Only the units of the field exist, so that a typing error is an error.  Everything is normalised to seconds, bytes, US
dollars, operations and joules.
"""

from __future__ import annotations

import math
import re
from dataclasses import field
from functools import lru_cache

from placedsl.records import dataclass


class UnitError(ValueError):
    """A text that is no quantity, or a unit that does not exist."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """Exponents of the base dimensions; ``str()`` is the word used in messages.

    ``unit`` is the one in which :func:`show` gives values (empty: one by the size of the value, or the canonical one).
    """

    time: int = 0
    data: int = 0
    money: int = 0
    operations: int = 0
    energy: int = 0
    unit: str = field(default="", compare=False)

    def __mul__(self, other: Dimension) -> Dimension:
        return Dimension(
            self.time + other.time,
            self.data + other.data,
            self.money + other.money,
            self.operations + other.operations,
            self.energy + other.energy,
        )

    def __truediv__(self, other: Dimension) -> Dimension:
        return Dimension(
            self.time - other.time,
            self.data - other.data,
            self.money - other.money,
            self.operations - other.operations,
            self.energy - other.energy,
        )

    def __str__(self) -> str:
        known = _WORDS.get(self)
        if known is not None:
            return known
        parts = [(n, getattr(self, n)) for n in ("data", "operations", "money", "energy", "time")]
        return " * ".join(n if e == 1 else f"{n}^{e}" for n, e in parts if e)


NUMBER = Dimension()
TIME = Dimension(time=1)
DATA = Dimension(data=1)
MONEY = Dimension(money=1)
OPERATIONS = Dimension(operations=1)
ENERGY = Dimension(energy=1)
BANDWIDTH = DATA / TIME
COMPUTE = OPERATIONS / TIME
PRICE = MONEY / TIME
POWER = ENERGY / TIME

_WORDS = {
    NUMBER: "a plain number",
    TIME: "time",
    DATA: "data",
    MONEY: "money",
    OPERATIONS: "operations",
    BANDWIDTH: "bandwidth",
    COMPUTE: "compute rate",
    PRICE: "price per time",
    ENERGY: "energy",
    POWER: "power",
}

#: The unit in which a value of a dimension is written by default, and its size in SI.
CANONICAL = {
    NUMBER: ("", 1.0),
    TIME: ("s", 1.0),
    DATA: ("B", 1.0),
    MONEY: ("USD", 1.0),
    OPERATIONS: ("FLOP", 1.0),
    BANDWIDTH: ("B/s", 1.0),
    COMPUTE: ("FLOP/s", 1.0),
    PRICE: ("USD/s", 1.0),
    ENERGY: ("J", 1.0),
    POWER: ("W", 1.0),
}

#: Units in which values are shown where no other is asked for.
_SHOWN = {PRICE: "USD/h"}
#: Further units in which a value may be written.
_READABLE = {
    TIME: ("ms", "us"),
    DATA: ("KiB", "MiB", "GiB", "kB", "MB", "GB"),
    BANDWIDTH: ("MB/s", "GB/s", "MiB/s", "GiB/s"),
    COMPUTE: ("GFLOP/s", "TFLOP/s"),
    PRICE: ("USD/h",),
    ENERGY: ("kJ", "Wh", "kWh"),
    POWER: ("mW", "kW", "MW"),
}

_PREFIXES = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
}  # fmt: skip
#: What a unit looks like in a text: the grammar's quantity token is built from this.
UNIT_PATTERN = (
    r"(?:%|(?:[numkMGTP]|[KMGT]i)?(?:s|B|bit|FLOP|USD|J|W|Wh)|min|h)"
    r"(?:/(?:(?:[numkMGTP]|[KMGT]i)?(?:s|B|bit|FLOP|USD|J|W|Wh)|min|h))?"
)
#: One factor of a unit text: what joins it to those before, its prefix, its unit and its power.
_FACTOR = re.compile(
    r"(?P<join>\s*[*/]\s*|\s+|)"
    r"(?:(?P<prefix>[numkMGTP]|[KMGT]i)??(?P<unit>s|B|bit|FLOP|USD|J|W|Wh|min|h|percent)|(?P<share>%))(?!\w)"
    r"(?:\s*(?:\*\*|\^)\s*(?P<power>-?\d))?"
)
_WHOLE = re.compile(r"-?\d{1,18}")
_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*)?\s*$")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in SI units and its dimension."""

    value: float
    dimension: Dimension

    def times(self, number: float) -> float:
        """So many of this unit, in SI; 9 ms is 0.009 s, which 9 * 0.001 is not quite."""
        parts = 1.0 / self.value if 0.0 < self.value < 1.0 else 0.0
        if parts and abs(parts - round(parts)) <= 1e-12 * parts:
            return number / round(parts)
        return number * self.value


_SIZES = {
    "s": Quantity(1.0, TIME), "min": Quantity(60.0, TIME), "h": Quantity(3600.0, TIME), "B": Quantity(1.0, DATA),
    "bit": Quantity(0.125, DATA), "USD": Quantity(1.0, MONEY), "FLOP": Quantity(1.0, OPERATIONS),
    "J": Quantity(1.0, ENERGY), "W": Quantity(1.0, POWER), "Wh": Quantity(3600.0, ENERGY),
    "percent": Quantity(0.01, NUMBER), "%": Quantity(0.01, NUMBER),
}  # fmt: skip


def unit_names() -> list[str]:
    """Every unit that can be written without a denominator, most usual first."""
    usual = ["s", "ms", "us", "min", "h", "B", "KiB", "MiB", "GiB", "kB", "MB", "GB", "Gbit", "GB/s", "Gbit/s"]
    return [*usual, "TFLOP/s", "GFLOP/s", "FLOP", "USD", "USD/h", "W", "kW", "J", "kJ", "kWh", "%"]


@lru_cache(maxsize=512)
def parse_unit(text: str) -> Quantity:
    """The size in SI and the dimension of a unit (``GB/s``, ``MiB/ms``); UnitError when there is none such.

    Also products and powers, as in ``GB*s/USD`` and ``s^-1``; factors are read from left to right.
    """
    size, dimension = 1.0, NUMBER
    prefixes: dict[str, int] = {}
    at = 1 if text[:1] == "1" else 0  # 1/s
    while at < len(text):
        factor = _FACTOR.match(text, at)
        if factor is None or bool(factor["join"]) != bool(at):
            raise _no_unit(text)
        at = factor.end()
        power = int(factor["power"] or 1) * (-1 if "/" in factor["join"] else 1)
        unit = _SIZES[factor["unit"] or factor["share"]]
        size *= unit.value**power
        for _ in range(abs(power)):
            dimension = dimension * unit.dimension if power > 0 else dimension / unit.dimension
        if factor["prefix"]:
            prefixes[factor["prefix"]] = prefixes.get(factor["prefix"], 0) + power
    # Of equal prefixes nothing is left: 1 nB/ns is 1 B/s to the last bit.
    scale = math.prod(_PREFIXES[prefix] ** power for prefix, power in prefixes.items() if power)
    return Quantity(scale * size, dimension)


def _no_unit(text: str) -> UnitError:
    from placedsl.diagnostics import nearest

    hint = nearest(text, unit_names())
    return UnitError(f"'{text}' is not a unit" + (f" ({hint})" if hint else ""))


def whole(text: str) -> int | None:
    """The whole number that a text is, with a minus or none; None for any other text, and above 18 digits."""
    return int(text) if _WHOLE.fullmatch(text) else None


def parse_quantity(text: str) -> Quantity:
    """The value in SI and dimension of ``'16 GiB'``; UnitError when the text is not one."""
    match = _QUANTITY.match(text)
    if match is None:
        raise UnitError(f"'{text}' is not a quantity: a number and a unit are expected, like '16 GiB'")
    number = float(match[1])
    unit = (match[2] or "").strip()
    if not unit:
        return Quantity(number, NUMBER)
    size = parse_unit(unit)
    return Quantity(size.times(number), size.dimension)


def show(value: float, dimension: Dimension) -> str:
    """A value in SI with its unit, readable (``16 GiB``, ``3.5 ms``); exact digits are not kept."""
    if dimension == NUMBER:
        return f"{value:.6g}"
    if dimension == DATA:
        for name, size in (("TiB", 2.0**40), ("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10)):
            if abs(value) >= size:
                return f"{value / size:.4g} {name}"
        return f"{value:.6g} B"
    if dimension == TIME:
        for name, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
            if abs(value) >= size:
                return f"{value / size:.6g} {name}"
        return f"{value * 1e9:.6g} ns" if value else "0 s"
    unit, size = shown_in(dimension)
    return f"{value / size:.6g} {unit}"


def shown_in(dimension: Dimension) -> tuple[str, float]:
    """The unit in which values of a dimension are shown, and its size in SI."""
    unit = dimension.unit or _SHOWN.get(dimension)
    return (unit, parse_unit(unit).value) if unit else CANONICAL.get(dimension, (str(dimension), 1.0))


@lru_cache(maxsize=4096)
def exact(value: float, dimension: Dimension) -> str:
    """A value in SI as the shortest text of the language that reads back to the same number.

    That is a quantity, or a product of such where the dimension has no unit of its own.
    """
    if math.isinf(value):
        return exact(math.copysign(1.0, value), dimension).replace("1", "1e999", 1)
    if dimension not in CANONICAL:
        return _composed(value, dimension)
    unit, _ = CANONICAL[dimension]
    best = f"{_plain(value)} {unit}".rstrip()
    for other in _READABLE.get(dimension, ()):
        size = parse_unit(other)
        number = _plain(float(f"{value / size.value:.12g}"))
        if size.times(float(number)) == value and len(number) < len(best.partition(" ")[0]):
            best = f"{number} {other}"
    return best


def _composed(value: float, dimension: Dimension) -> str:
    bases = (
        ("B", dimension.data), ("FLOP", dimension.operations), ("USD", dimension.money), ("J", dimension.energy),
        ("s", dimension.time),
    )  # fmt: skip
    over = [unit for unit, power in bases for _ in range(power)]
    under = [unit for unit, power in bases for _ in range(-power)]
    if len(over) == 1 and under in (["B"], ["USD"], ["J"], ["s"]):
        return f"{_plain(value)} {over[0]}/{under[0]}"
    return _plain(value) + "".join(f" * 1 {unit}" for unit in over) + "".join(f" / (1 {unit})" for unit in under)


def _plain(number: float) -> str:
    return repr(number).removesuffix(".0")
