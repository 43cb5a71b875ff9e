"""Numbers as they are written."""

from __future__ import annotations

import pytest

from placedsl import InputError, loads
from placedsl import units as known
from placedsl.units import NUMBER, TIME, Dimension, parse_unit

SPEC = "graph {{\n    node a {{ time = 1 ms }}\n}}\ndevice cpu: host\nminimize time_per_sample\nparam x = {}\n"


@pytest.mark.parametrize(
    ("written", "value", "dimension"),
    [
        ("1e-7", 1e-7, NUMBER),
        ("3e5", 3e5, NUMBER),
        ("2.5E+2", 250.0, NUMBER),
        ("1e3 s", 1e3, TIME),
        ("2*1e-7", 2e-7, NUMBER),
        ("1e-3s", 1e-3, TIME),
        ("1e2-1", 99.0, NUMBER),
        ("25%", 0.25, NUMBER),
        ("1e1%", 0.1, NUMBER),
    ],
)
def test_exponents(written: str, value: float, dimension: Dimension) -> None:
    number, kind = loads(SPEC.format(written)).elaborated.parameters["x"]
    assert (number, kind.dimension) == (pytest.approx(value), dimension)


def test_units_are_read_as_by_pint() -> None:
    """Every unit, alone and over every other: the same number to the last bit, and the same dimension."""
    prefixed = [p + u for p in ("", *known._PREFIXES) for u in ("s", "B", "bit", "FLOP", "USD")]
    alone = [*prefixed, "min", "h"]
    registry = known._registry()
    for text in [
        *alone,
        *(f"{a}/{b}" for a in alone for b in ("s", "min", "h", "B", "USD", "FLOP", "bit", "ms", "GiB")),
    ]:
        unit = registry.parse_units(text)
        exponents = {str(k).strip("[]"): round(float(v)) for k, v in dict(registry.get_dimensionality(unit)).items()}
        read = parse_unit(text)
        assert (read.value, read.dimension) == (registry.get_base_units(unit)[0], Dimension(**exponents)), text


@pytest.mark.parametrize("written", ["GG", "sB", "/s", "KiKiB", "is"])
def test_no_unit(written: str) -> None:
    with pytest.raises(known.UnitError):
        parse_unit(written)


@pytest.mark.parametrize("written", ["1 e", "1e", "3 ee5"])
def test_what_is_no_exponent_is_no_unit_either(written: str) -> None:
    with pytest.raises(InputError):
        loads(SPEC.format(written))
