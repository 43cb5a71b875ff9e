"""The lines that ``solve`` prints."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from placedsl import loads
from placedsl.cli.main import main
from placedsl.report.text.summary import print_answer

SPEC = """
graph {
    node a { time = 1 s }
}
device gpu: accelerator
minimize time_per_sample
"""


def test_where_there_is_nothing_to_say_the_line_ends_without_a_colon() -> None:
    answer = replace(loads(SPEC).solve(), message="")
    said = io.StringIO()
    print_answer(answer, Console(file=said, width=100))
    assert said.getvalue().splitlines()[0].endswith(" s)")


PRICES = """
graph {
    node a { time = 1 s }
    node b { time = 2 s }
    a -> b
}
device gpu[2]: accelerator { price = 2 @unit }
var rent: price in 0 @unit..100 @unit
minimize sum(d in devices: d.price * used(d)) then time_per_sample
subject to
    both: forall d in devices: used(d)
    rented: rent >= sum(d in devices: d.price * used(d))
    cheap: sum(d in devices: d.price * used(d)) <= @limit @unit
"""


@pytest.mark.parametrize("unit", ["USD/h", "USD/s", "kUSD/min"])
def test_prices_are_told_in_the_unit_of_the_spec(unit: str) -> None:
    answer = loads(PRICES.replace("@unit", unit).replace("@limit", "5")).solve()
    said = io.StringIO()
    print_answer(answer, Console(file=said, width=100))
    assert f"used(d)) = 4 {unit}  (proven optimal)" in said.getvalue()
    assert re.search(rf"^  rent = \S+ {unit}$", said.getvalue(), re.MULTILINE)
    spec = loads(PRICES.replace("@unit", unit).replace("@limit", "3"))
    violations = spec.evaluate({"a": "gpu[1]", "b": "gpu[2]"}, {"rent": 1.0}).violations
    assert next(v.message for v in violations if v.rule == "cheap") == f"4 {unit} <= 3 {unit} does not hold"


def test_without_a_unit_in_the_spec_prices_are_told_per_hour() -> None:
    text = (
        "param p: price\n"
        + PRICES.replace("2 @unit", "p").replace(" in 0 @unit..100 @unit", "").partition("    cheap")[0]
    )
    answer = loads(text, parameters={"p": "3 USD/h"}).solve()
    said = io.StringIO()
    print_answer(answer, Console(file=said, width=100))
    assert "used(d)) = 6 USD/h" in said.getvalue()


def test_tables_keep_within_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"a_rather_long_name_of_operator_{i}" for i in range(9)]
    nodes = "".join(f"    node {name} {{ time = 1.23456 ms, memory = 1 GiB, output = 1 MiB }}\n" for name in names)
    text = "graph {\n" + nodes + f"    {' -> '.join(names)}\n}}\n"
    text += "cluster server_in_the_basement { device card[3]: accelerator { memory = 900 GiB } }\n"
    text += "interconnect { bandwidth = 1 GiB/s }\nminimize time_per_sample\nsubject to\n    memory\n    contiguous\n"
    answer = loads(text).solve()
    said = io.StringIO()
    print_answer(answer, Console(file=said, width=200))
    table = said.getvalue().split("  device ")[1].splitlines()
    assert max(map(len, table)) <= 80
    assert [name in said.getvalue() for name in names].count(False) == 0
    for command in (["solvers"], ["methods"]):
        assert main(command) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
