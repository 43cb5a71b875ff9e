"""The grammar, formatting as the inverse of parsing, and specs of many lines."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
from pathlib import Path

import pytest
from lark import Lark
from support.paths import ROOT, child_environment
from support.random_specs import long_spec, random_spec

import placedsl
from placedsl import loads
from placedsl.diagnostics import Source
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.parser import parse
from placedsl.language.syntax.printer import statement
from placedsl.system.installation import grammar_text, model_files

SPECS = {p.name: p.read_text(encoding="utf-8") for p in [*model_files(), *sorted((ROOT / "examples").glob("*.place"))]}
PIECES = [
    "memory",
    "forall",
    "v in",
    "(",
    ")",
    "{",
    "}",
    "sum",
    ":",
    "=>",
    "<=",
    "3",
    "ms",
    "\n",
    ",",
    "x",
    "==",
    '"',
    "[",
    "]",
    ".",
]


def shape(node: object) -> object:
    """A tree without the places of its parts and without the units that numbers were written in."""
    if isinstance(node, tuple):
        return tuple(shape(part) for part in node)
    if isinstance(node, float):
        return f"{node:.12g}"
    if hasattr(node, "__slots__"):
        kept = [s for s in node.__slots__ if s not in ("at", "unit", "source")]
        return (type(node).__name__, *(shape(getattr(node, s)) for s in kept))
    return node


def test_grammar_is_strict() -> None:
    """LALR without conflicts, and no two tokens that can match the same text unless priorities say which."""
    Lark(grammar_text(), parser="lalr", lexer="basic", strict=True, maybe_placeholders=True)


@pytest.mark.parametrize("name", sorted(SPECS))
def test_format_and_parse_again(name: str) -> None:
    before = parse(Source(name, SPECS[name]))
    text = "\n".join(statement(s) for s in before.statements) + "\n"
    after = parse(Source(name, text))
    assert shape(after.statements) == shape(before.statements)
    assert "\n".join(statement(s) for s in after.statements) + "\n" == text


def test_format_random_specs() -> None:
    for seed in range(200):
        before = parse(Source("spec", random_spec(seed)))
        after = parse(Source("spec", "\n".join(statement(s) for s in before.statements) + "\n"))
        assert shape(after.statements) == shape(before.statements), seed


def test_elaborated_spec_means_the_same() -> None:
    for seed in range(0, 200, 10):
        spec = loads(random_spec(seed))
        again = loads(spec.explain())
        assert again.problem.time.tolist() == spec.problem.time.tolist(), seed
        assert again.problem.transfer.tolist() == spec.problem.transfer.tolist(), seed
        assert [r.name for r in again.problem.constraints] == [r.name for r in spec.problem.constraints], seed


def test_a_soft_constraint_may_come_first() -> None:
    text = random_spec(0).split("subject to")[0] + "subject to\n    soft low at 1 ms: devices_used <= 1\n    memory\n"
    spec = loads(text)
    assert [one.name for one in spec.problem.soft_constraints] == ["low"]
    assert [one.name for one in spec.problem.constraints] == ["memory"]


def test_indexed_parameters_are_elaborated_with_the_values_of_a_data_file(tmp_path: Path) -> None:
    graph = 'graph {\n    node "n 1" { time = 1 ms }\n    node b { time = 2 ms }\n}\n'
    rest = 'device "x y"[2]: accelerator\ndevice cpu: host\ninterconnect { bandwidth = 1 GB/s }\n'
    text = (
        "param price[v in nodes, d in devices]: time\nparam only[i in 1..2]: text\n" + graph + rest
        + "minimize sum(v in nodes, d in devices: price[v, d] * (v on d))\n"
    )  # fmt: skip
    (tmp_path / "spec.place").write_text(text, encoding="utf-8")
    (tmp_path / "data.json").write_text(
        '{"price": {"b": {"cpu": "3 ms", "x y": "4 ms"}, "*": "5 ms"}, "only": {"1": "a", "2": "b"}}', encoding="utf-8"
    )
    spec = placedsl.load(tmp_path / "spec.place", data=tmp_path / "data.json")
    again = loads(spec.explain())
    price = again.problem.tables["price"].values
    assert price == {(0, 0): 0.005, (0, 1): 0.005, (0, 2): 0.005, (1, 0): 0.004, (1, 1): 0.004, (1, 2): 0.003}
    assert again.problem.tables["only"].values == {(1,): "a", (2,): "b"}


def test_nothing_but_diagnostics() -> None:
    """Specs with pieces cut out, doubled and put in elsewhere are refused in words, or accepted."""
    rng = random.Random(5)
    whole = SPECS["inline.place"]
    refused = 0
    for _ in range(300):
        text = whole
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text))
            cut = at + rng.randint(0, 6)
            text = text[:at] + rng.choice(["", "", rng.choice(PIECES), text[at:cut] * 2]) + text[cut:]
        with contextlib.suppress(placedsl.InputError):
            loads(text)
            refused -= 1
        refused += 1
    assert refused > 150


def test_ten_thousand_lines(tmp_path: Path) -> None:
    """How long it takes is measured by benchmarks/checking.py."""
    path = tmp_path / "long.place"
    path.write_text(long_spec(10_000), encoding="utf-8")
    environment = child_environment()
    command = [sys.executable, "-m", "placedsl", "check", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == f"{path}: 4994 nodes, 4 devices, 3 constraints; no errors\n"


@pytest.mark.parametrize("rule", ["not " * 5000 + "(a on cpu)", "load(cpu)" + " + 0 * load(cpu)" * 5000 + " <= 3 ms"])
def test_too_deep(rule: str) -> None:
    text = random_spec(0).split("subject to")[0] + "subject to\n    memory\n    x: " + rule + "\n"
    with pytest.raises(placedsl.InputError) as caught:
        loads(text)
    (found,) = caught.value.diagnostics
    assert found.message == "an expression here is nested more than 150 deep"
    assert found.span.line == text[: text.index("    x: ")].count("\n") + 1


def test_syntax_has_places() -> None:
    text = SPECS["inline.place"]
    module = parse(Source("spec", text))
    minimize = next(s for s in module.statements if isinstance(s, syntax.Minimize))
    assert minimize.at.text.startswith("minimize time_per_sample")


def test_rows_of_an_extension_count(tmp_path: Path) -> None:
    """Rows that rule out placements, also over variables on which no quantity rests."""
    text = SPECS["inline.place"].replace("minimize", "extend max_load {{\n{clauses}\n}}\nminimize", 1)
    free = loads(SPECS["inline.place"]).solve()
    rows = "    var more[d in devices] in 0..1\n    subject to\n"
    rows += "        few: forall d in devices: sum(v in nodes: x[v, d]) <= 1 + more[d]\n"
    for most, least in ((2, 2), (1, 2), (0, 9)):
        limit = f"        total: sum(d in devices: more[d]) <= {most}\n"
        answer = loads(text.replace("{{\n{clauses}\n}}", "{\n" + rows + limit + "}")).solve()
        assert answer.method == "program"
        if least == 9:  # four nodes, three devices
            assert answer.termination == "infeasible"
            continue
        assert answer.evaluation is not None
        sizes = [len(nodes) for nodes in answer.evaluation.nodes]
        assert max(sizes) <= least
        assert sum(size == 2 for size in sizes) <= most
        assert answer.value >= free.value
