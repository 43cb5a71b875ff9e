"""Numbers as they are written."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placedsl import InputError, loads
from placedsl import units as known
from placedsl.units import DATA, ENERGY, MONEY, NUMBER, POWER, TIME, Dimension, Quantity, parse_quantity, parse_unit

pytestmark = pytest.mark.rotates(2)

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


BASES = {
    "s": Dimension(time=1), "min": Dimension(time=1), "h": Dimension(time=1), "B": Dimension(data=1),
    "bit": Dimension(data=1), "USD": Dimension(money=1), "FLOP": Dimension(operations=1),
    "J": Dimension(energy=1), "W": Dimension(energy=1, time=-1), "Wh": Dimension(energy=1),
}  # fmt: skip
SIZES = {"s": 1, "min": 60, "h": 3600, "B": 1, "bit": Fraction(1, 8), "USD": 1, "FLOP": 1, "J": 1, "W": 1, "Wh": 3600}
PREFIXES = {
    "": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "k": Fraction(10**3),
    "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15), "Ki": Fraction(2**10),
    "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
}  # fmt: skip


def base_of(unit: str) -> str:
    return max((base for base in BASES if unit.endswith(base)), key=len)


def test_every_unit_alone_and_over_every_other_has_the_factor_that_pint_computed() -> None:
    """To the last bit; ``unit_factors.json`` was computed by pint 0.25: each unit, then it over each of the units."""
    table = json.loads((Path(__file__).parent / "unit_factors.json").read_text(encoding="utf-8"))
    for unit, (alone, *over) in table["rows"].items():
        assert parse_unit(unit) == Quantity(alone, BASES[base_of(unit)])
        for other, factor in zip(table["units"], over, strict=True):
            dimension = BASES[base_of(unit)] / BASES[base_of(other)]
            assert parse_unit(f"{unit}/{other}") == Quantity(factor, dimension), f"{unit}/{other}"


@pytest.mark.parametrize(
    ("text", "factor", "dimension"),
    [
        ("", 1.0, Dimension()), ("%", 0.01, Dimension()), ("%/s", 0.01, Dimension(time=-1)),
        ("percent", 0.01, Dimension()), ("kpercent", 10.0, Dimension()), ("Gbit/percent", 12500000000.0, DATA),
        ("kmin", 60000.0, TIME), ("nmin", 6.000000000000001e-08, TIME), ("kh", 3600000.0, TIME),
        ("B*s", 1.0, Dimension(1, 1)), ("GB s", 1e9, Dimension(1, 1)), ("GB / s", 1e9, DATA / TIME),
        ("s^2", 1.0, Dimension(2)), ("s**2", 1.0, Dimension(2)), ("s**-1", 1.0, Dimension(-1)),
        ("1/s", 1.0, Dimension(-1)), ("B/s/s", 1.0, Dimension(-2, 1)), ("GB/s/USD", 1e9, Dimension(-1, 1, -1)),
        ("s/s", 1.0, Dimension()),
    ],
)  # fmt: skip
def test_products_and_powers_as_pint_read_them(text: str, factor: float, dimension: Dimension) -> None:
    assert parse_unit(text) == Quantity(factor, dimension)


@pytest.mark.parametrize(
    ("written", "value", "dimension"),
    [
        ("300 W", 300.0, POWER), ("1.2 kW", 1200.0, POWER), ("5 mW", 0.005, POWER),
        ("2 W * 3 s", 6.0, ENERGY), ("1 kWh", 3.6e6, ENERGY), ("4 kJ / (2 s)", 2000.0, POWER),
        ("0.3 USD/kWh * (2 kWh)", 0.6, MONEY), ("1 J / (1 s) - 1 W", 0.0, POWER),
    ],
)  # fmt: skip
def test_energy_and_power(written: str, value: float, dimension: Dimension) -> None:
    number, kind = loads(SPEC.format(written)).elaborated.parameters["x"]
    assert (number, kind.dimension) == (pytest.approx(value), dimension)
    assert parse_quantity(known.exact(float(f"{value:.12g}"), dimension)).value == pytest.approx(value)


@given(st.lists(st.tuples(st.sampled_from("*/"), st.sampled_from(sorted(PREFIXES)), st.sampled_from(sorted(BASES)),
                          st.integers(-3, 3)), min_size=1, max_size=5))  # fmt: skip
def test_factors_multiply_and_dimensions_add(parts: list[tuple[str, str, str, int]]) -> None:
    """Against exact fractions; each factor of the size and each power of a prefix rounds once."""
    text, size, exponents = "", Fraction(1), {"time": 0, "data": 0, "money": 0, "operations": 0, "energy": 0}
    for number, (operator, prefix, unit, power) in enumerate(parts):
        text += (operator if number else "") + prefix + unit + ("" if power == 1 else f"^{power}")
        sign = power if operator == "*" or not number else -power
        size *= (PREFIXES[prefix] * SIZES[unit]) ** sign
        for name in exponents:
            exponents[name] += sign * getattr(BASES[unit], name)
    read = parse_unit(text)
    assert read.dimension == Dimension(**exponents)
    assert read.value == pytest.approx(float(size), rel=1e-13)


@given(st.from_regex(known.UNIT_PATTERN, fullmatch=True))
def test_every_unit_that_the_grammar_lets_through_is_read(text: str) -> None:
    over, _, under = text.partition("/")
    alone = 1.0 if not under else parse_unit(under).value
    assert parse_unit(text).value == pytest.approx(parse_unit(over).value / alone, rel=1e-14)


@pytest.mark.parametrize("written", ["GG", "sB", "/s", "KiKiB", "is", "s*2", "B%", "k%", "s/", "*s", "bits", " s"])
def test_no_unit(written: str) -> None:
    with pytest.raises(known.UnitError, match="is not a unit"):
        parse_unit(written)


@pytest.mark.parametrize(("written", "near"), [("msec", "'ms'"), ("minute", "'min'"), ("GBs", "'GB/s' or 'GB'")])
def test_a_misspelt_unit_names_one_that_exists(written: str, near: str) -> None:
    with pytest.raises(known.UnitError, match=re.escape(f"'{written}' is not a unit (did you mean {near}?)")):
        parse_unit(written)


@pytest.mark.parametrize("written", ["1 e", "1e", "3 ee5"])
def test_what_is_no_exponent_is_no_unit_either(written: str) -> None:
    with pytest.raises(InputError):
        loads(SPEC.format(written))


_GOALS = """
graph {{ node a {{ time = 1 ms }} }}
device gpu[2]: accelerator
var under[g in 1..3]: real in 0..9
minimize time_per_sample
subject to
    rule: {}
"""


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("number", ["9223372036854775807", "9223372036854775808", "1e300", "2.5"])
def test_indices_that_are_no_whole_numbers_of_64_bits(number: str) -> None:
    with pytest.raises(InputError, match="a whole number is expected here, this is"):
        loads(_GOALS.format(f"under[{number}] <= 3")).check()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("most", ["1e300", "1e999"])
def test_a_bound_without_end_is_no_bound(most: str) -> None:
    rule = f"(a on gpu[1]) or count(v in nodes: v on gpu[2]) <= {most}"
    answer = loads(_GOALS.format(rule)).solve(solver="highs", time_limit=20)
    assert answer.termination == "optimal"
    assert answer.value == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("a", "b", "left"), [("7.5", "2", 1.5), ("-7", "3", 2.0), ("7", "-3", -2.0), ("9 GiB", "4 GiB", 2.0**30)]
)
def test_remainders(a: str, b: str, left: float) -> None:
    """Known when the spec is read, and worked out over attributes: in the program and by the evaluator."""
    text = f"""
graph {{
    node u {{ time = 1 ms, k = 7, memory = 9 GiB }}
    node v {{ time = 1 ms, k = -7, memory = 4 GiB }}
}}
device gpu[2]: accelerator
interconnect {{ bandwidth = 1 GiB/s }}
param x = {a} mod {b}
minimize time_per_sample
subject to
    one: sum(n in nodes: (n.k mod 3) * (n on gpu[1])) == 2
    two: sum(n in nodes: (n.memory mod (4 GiB)) * (n on gpu[1])) <= 0 B
"""
    spec = loads(text)
    assert spec.elaborated.parameters["x"][0] == left
    assert spec.solve(method="program").device_of() == {"u": "gpu[2]", "v": "gpu[1]"}


def test_no_remainder_of_what_is_decided() -> None:
    head = "graph {\n node u { time = 1 ms }\n}\ndevice gpu: accelerator\nminimize time_per_sample\nsubject to\n"
    text = head + " r: load(gpu) mod 2 ms == 0 s"
    with pytest.raises(InputError, match="a remainder of what the placement decides is not linear"):
        loads(text)
