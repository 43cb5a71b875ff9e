"""What explain tells of the program is what a solver gets, and what it tells of the path is what is taken."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.random_specs import random_algebra, random_formulas, random_spec

from placedsl import loads
from placedsl.cli.main import main
from placedsl.report.explanation.contributions import Contribution
from placedsl.report.explanation.explain import Explanation
from placedsl.report.explanation.explanation_document import explanation_document

pytestmark = pytest.mark.rotates(2)

GRAPH = """
graph {
    node a { time = {accelerator: 4 ms, host: 9 ms},  memory = 2 GiB, output = 8 MiB, weight = 1 }
    node b { time = {accelerator: 6 ms, host: 30 ms}, memory = 3 GiB, output = 8 MiB, weight = @weight }
    node c { time = {accelerator: 5 ms, host: 25 ms}, memory = 4 GiB, output = 1 MiB, weight = 1 }
    a -> b -> c
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 16 GiB/s }
"""


def explained(rest: str, weight: str = "1", **options: str) -> Explanation:
    return loads(GRAPH.replace("@weight", weight) + rest).explanation(**(options or {"solver": "highs"}))


def part(found: Explanation, name: str) -> Contribution:
    (one,) = [c for c in found.contributions if c.name == name]
    return one


@pytest.mark.parametrize("solver", ["highs", "cp-sat"])
@pytest.mark.parametrize("make", [random_spec, random_formulas, random_algebra])
def test_the_parts_together_are_the_program(make: object, solver: str) -> None:
    for seed in range(1, 24, 2):
        found = loads(make(seed)).explanation(solver=solver, method="program")  # type: ignore[operator]
        linear, parts = found.program, found.contributions
        assert sum(c.rows for c in parts) == linear.rows, seed
        assert sum(c.columns for c in parts) == linear.columns, seed
        assert sum(c.entries for c in parts) == len(linear.column), seed
        rows = sorted(row for c in parts for row in (*c.plain.tolist(), *c.switched.tolist()))
        assert rows == list(range(linear.rows)), seed
        assert sum(c.native for c in parts) >= len(linear.native) > -1, seed
        assert all(c.native == 0 for c in parts) or solver == "cp-sat"


def test_each_constraint_has_its_line_its_rows_and_its_size() -> None:
    found = explained(
        "minimize time_per_sample\nsubject to\n    memory\n    few: forall d in gpu: count(v in nodes: v on d) <= 2\n"
    )
    few = part(found, "few")
    assert (few.kind, few.span.line if few.span else 0) == ("constraint", 14)
    assert (few.rows, few.columns, few.entries, few.smallest, few.largest) == (2, 0, 6, 1.0, 1.0)
    memory = part(found, "memory")
    assert (memory.rows, memory.entries) == (2, 6)
    assert (memory.smallest, memory.largest) == (2 * 2.0**30, 4 * 2.0**30)
    x = part(found, "x")
    assert (x.kind, x.columns, x.rows) == ("variable", 9, 0)
    assert x.bytes >= 9 * 17  # two bounds and whether it is integer
    assert {"assigned(15)", "received(18)", "sent(19)"} <= {c.name for c in found.contributions}


def test_a_big_m_comes_with_its_line_and_its_bounds() -> None:
    found = explained("minimize time_per_sample\nsubject to\n    sparse: b on gpu[2] => memory(gpu[1]) <= 1 GiB\n")
    (note,) = [n for n in found.lowerings if n.big_m not in (0.0, 1.0)]
    assert note.span is not None
    assert (note.constraint, note.span.line) == ("sparse", 13)
    # All three operators take 9 GiB, the limit is 1 GiB.
    assert note.big_m == pytest.approx(8 * 2**30)
    assert note.because.startswith(
        "sparse: the sum reaches 9.66368e+09 against 1.07374e+09 (x[v=c, d=gpu[1]] in 0 .. 1"
    )
    assert part(found, "sparse").largest == pytest.approx(8 * 2**30)
    native = explained(
        "minimize time_per_sample\nsubject to\n    sparse: b on gpu[2] => memory(gpu[1]) <= 1 GiB\n", solver="cp-sat"
    )
    assert part(native, "sparse").native == 1
    assert part(native, "sparse").rows == 0
    assert dict(native.native)["cp-sat"] == ("Implication", "Maximum", "NoOverlap", "Product")
    assert dict(native.native)["highs"] == ()


@pytest.mark.parametrize(("weight", "warned"), [("1000000", False), ("1000001", True)])
def test_a_range_of_coefficients(weight: str, warned: bool) -> None:
    rest = "minimize time_per_sample\nsubject to\n    heavy: sum(v in nodes: v.weight * (v on cpu)) <= 7\n"
    found = explained(rest, weight)
    assert bool(found.warnings) == warned
    for warning in found.warnings:
        assert warning.span is not None
        assert (warning.name, warning.span.line, warning.ratio) == ("heavy", 13, 1000001.0)
        start = "coefficients from 1 (x[v=a, d=cpu] in heavy) to 1e+06 (x[v=b, d=cpu] in heavy)"
        assert warning.message.startswith(start)


@pytest.mark.parametrize(("most", "warned"), [("1000001", False), ("1000003", True)])
def test_a_big_m_beside_small_coefficients(most: str, warned: bool) -> None:
    rest = f"var y: integer in 0..{most}\nminimize time_per_sample - 1 ms * y\nsubject to\n"
    found = explained(rest + "    on_gpu: a on gpu[1] => y <= 1\n")
    assert [w.name for w in found.warnings] == ["on_gpu"] * warned
    for warning in found.warnings:
        assert warning.message.startswith("a big-M of 1e+06 beside 1 in on_gpu (on x[v=a, d=gpu[1]] and y)")
        assert "var … in low..high" in warning.hint


@pytest.mark.parametrize(("price", "warned"), [("1 ns", True), ("1 ms", False)])
def test_the_range_of_an_objective(price: str, warned: bool) -> None:
    found = explained(f"minimize time_per_sample + {price} * devices_used\n")
    assert [w.name for w in found.warnings] == [f"time_per_sample + {price} * devices_used"] * warned


def test_the_margin_of_a_strict_comparison_is_told() -> None:
    text = (
        GRAPH.replace("@weight", "1") + "minimize time_per_sample\nsubject to\n    less: load(gpu[1]) < load(gpu[2])\n"
    )
    shown = loads(text).explain(solver="highs")
    assert re.search(r"^#    13 less: strict comparison to one with a margin of \S+, once$", shown, re.MULTILINE)
    assert "are not considered: less (line 13)" in shown


PATHS = (
    ("", "dynamic programming"),
    ("few", "dynamic programming, whose placement is the answer if it satisfies the rest; else program with"),
    ("var", "dynamic programming for a bound and a start; then program with"),
    ("then", "dynamic programming for a bound and a start; then program with"),
    ("soft", "program with"),
)


@pytest.mark.parametrize(("what", "path"), PATHS)
def test_the_path_is_the_one_that_is_taken(what: str, path: str) -> None:
    text = GRAPH.replace("@weight", "1")
    text += "var y: integer in 0..3\n" if what == "var" else ""
    text += "minimize time_per_sample" + (" then communication" if what == "then" else "") + "\n"
    text += "subject to\n    contiguous\n"
    text += "    few: forall d in devices: count(v in nodes: v on d) <= 1\n" if what == "few" else ""
    text += "    soft wish at 1 ms: a on cpu\n" if what == "soft" else ""
    spec = loads(text)
    found = spec.explanation()
    assert found.path.startswith(path)
    answer = spec.solve()
    assert answer.termination == "optimal"
    assert answer.method == ("dp" if what in ("", "few") else "program")
    assert found.needed == (what != "")
    if what == "var":
        assert found.fit.beyond == ("variable y",)
    if what == "soft":
        assert found.fit.against == ("it minimises time_per_sample or peak_memory, not time_per_sample + wish",)
        assert ("soft", "wish: their costs are in the first objective") in found.facts


@pytest.mark.parametrize(
    ("rule", "note"),
    [
        ("contiguous", "dynamic programming applies to this spec and was not used, because solver highs is named"),
        (
            "contiguous\n    few: devices_used <= 2",
            "dynamic programming gives a bound for this spec and was not used, because solver highs is named",
        ),
        ("memory", ""),
    ],
)
def test_a_named_solver_solves_the_program(rule: str, note: str) -> None:
    rest = f"minimize time_per_sample\nsubject to\n    {rule}\n"
    in_block = loads(GRAPH.replace("@weight", "1") + rest + "solve { solver = highs }\n")
    spec = loads(GRAPH.replace("@weight", "1") + rest)
    notes = [note] if note else []
    for found in (spec.explanation(solver="highs"), in_block.explanation()):
        assert (found.path, found.needed) == ("program with highs", True)
        assert [text for word, text in found.facts if word == "note"] == notes
    for answer in (spec.solve(solver="highs"), in_block.solve()):
        assert (answer.method, answer.solver, answer.termination) == ("program", "highs", "optimal")
        assert [text for text in answer.notes if text.startswith("dynamic programming")] == notes


@pytest.mark.parametrize("method", ["dp", "greedy"])
def test_a_method_without_use_for_a_solver_says_so(method: str) -> None:
    spec = loads(GRAPH.replace("@weight", "1") + "minimize time_per_sample\nsubject to\n    contiguous\n")
    note = f"method {method} has no use for a solver: highs was not used"
    assert note in spec.solve(method=method, solver="highs").notes
    assert ("note", note) in spec.explanation(method=method, solver="highs").facts
    assert note not in spec.solve(method=method).notes


def test_no_note_is_lost_in_the_document() -> None:
    text = GRAPH.replace("@weight", "1").replace("node c {", "node c { backward = true,")
    spec = loads(text + "minimize time_per_sample\nsubject to\n    memory\n    contiguous\n")
    found = spec.explanation(solver="highs")
    notes = [said for word, said in found.facts if word == "note"]
    assert len(notes) > 1
    assert explanation_document(found, "")["facts"]["note"] == "; ".join(notes)


def test_ideals_that_are_too_many_to_be_counted() -> None:
    nodes = [f"node a{i} {{ time = 1 ms, output = 1 B }}\nnode b{i} {{ time = 1 ms }}\na{i} -> b{i}" for i in range(20)]
    machine = "device gpu[2]: accelerator\ninterconnect { bandwidth = 1 GiB/s }\n"
    spec = loads(
        "graph {\n" + "\n".join(nodes) + "\n}\n" + machine + "minimize time_per_sample\nsubject to contiguous\n"
    )
    assert spec.explanation().fit.ideals is None
    assert "\n#   more ideals than can be counted (budget 2,000,000)\n" in spec.explain()


def test_a_method_that_does_not_fit_is_told() -> None:
    assert explained("minimize time_per_sample\n", method="dp").path == "none: method dp does not fit"
    rest = "var y: integer in 0..3\nminimize time_per_sample\nsubject to\n    contiguous\n"
    assert explained(rest, method="dp").path == "none: method dp cannot take variable y"


def test_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.place"
    rule = "sparse: b on gpu[2] => memory(gpu[1]) <= 1 GiB"
    text = GRAPH.replace("@weight", "3") + f"minimize time_per_sample\nsubject to\n    {rule}\n"
    spec.write_text(text, encoding="utf-8")
    assert main(["explain", str(spec), "--solver", "highs", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["program"]["rows"] == sum(one["rows"] for one in told["parts"])
    (sparse,) = [one for one in told["parts"] if one["name"] == "sparse"]
    assert (sparse["file"], sparse["line"], sparse["kind"]) == (str(spec), 13, "constraint")
    assert [n["big_m"] for n in told["lowerings"] if n["name"] == "sparse"] == [pytest.approx(8 * 2**30)]
    assert loads(told["elaborated"]).problem.constraints[0].name == "sparse"
    target = tmp_path / "told.json"
    assert main(["explain", str(spec), "--json", str(target)]) == 0
    assert capsys.readouterr().out.rstrip().split("\n")[-1].startswith("# path taken: program with")
    assert json.loads(target.read_text(encoding="utf-8")).keys() == told.keys()
    assert main(["explain", str(spec), "--json", str(tmp_path / "no" / "told.json")]) == 2
