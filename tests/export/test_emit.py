"""What is written, read by others: the same program, and the same optimum."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.exported_specs import EXAMPLES, SPECS
from support.program_readers import READERS, Ran, close, in_si, read, run, unit_of, values_shown, values_written
from support.random_specs import long_spec, random_algebra, random_formulas, random_spec
from support.suites import FILE_FORMATS, SCRIPTS

from placedsl import InputError, Spec, UsageError, load, loads
from placedsl.cli import main as cli
from placedsl.export.programs.formats import FORMATS
from placedsl.planner.answer import Answer
from placedsl.report.json.answer_document import document

pytestmark = pytest.mark.rotates(3)

HEADER = re.compile(r"^. formulation \w+: (\d+) columns \((\d+) integer\), (\d+) rows, (\d+) entries$", re.MULTILINE)


@pytest.fixture(scope="module", autouse=True)
def _pools():
    yield
    close()


def same(found: float, wanted: float, tolerance: float = 2e-6) -> bool:
    return math.isclose(found, wanted, rel_tol=tolerance, abs_tol=1e-9 * abs(wanted))


def files_agree(spec: Spec, answer: Answer, folder: Path, readers: Iterable[str] = READERS) -> None:
    """Each reader sees as many columns, rows and entries as the file's head tells, all names, and the optimum."""
    for format_name in FILE_FORMATS:
        text = spec.emit(format_name)
        path = folder / f"program.{format_name}"
        path.write_text(text, encoding="utf-8")
        head = HEADER.search(text)
        assert head is not None
        columns, integers, rows, entries = map(int, head.groups())
        columns += "objective_constant" in text
        for reader in readers:
            found = read(reader, path)
            assert (found.columns, found.rows, found.entries) == (columns, rows, entries), (format_name, reader)
            assert found.integers == integers
            assert len(set(found.names)) == columns
            assert len(set(found.row_names)) == rows
            if answer.termination == "infeasible":
                assert found.optimum == "infeasible", (format_name, reader)
            else:
                assert isinstance(found.optimum, float), (format_name, reader, found.optimum)
                assert same(in_si(found.optimum, unit_of(text)), answer.value), (format_name, reader)


def script_agrees(spec: Spec, answer: Answer, format_name: str, folder: Path) -> Ran:
    """The script prints every objective's optimum, and its placement has those values and violates nothing."""
    ran = run(spec, format_name, folder)
    if answer.termination == "infeasible":
        assert (ran.code, ran.objectives, ran.placement, ran.variables) == (3, {}, {}, {})
        assert "infeasible" in ran.output
        return ran
    assert ran.code == 0, ran.output
    assert answer.evaluation is not None
    evaluation = spec.evaluate(ran.placement, ran.variables)
    assert not evaluation.violations
    for goal, wanted, real in zip(
        spec.problem.objectives, answer.evaluation.objectives, evaluation.objectives, strict=True
    ):
        assert same(ran.objectives[goal.name], wanted), goal.name
        assert same(real, wanted), goal.name
    return ran


def solved(text: str) -> tuple[Spec, Answer]:
    spec = loads(text, EXAMPLES)
    answer = spec.solve(time_limit=60)
    assert answer.termination in ("optimal", "infeasible"), answer.message
    return spec, answer


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SPECS)
def test_files(name: str, tmp_path: Path) -> None:
    files_agree(*solved(SPECS[name]), tmp_path)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", SPECS)
def test_scripts(name: str, tmp_path: Path) -> None:
    spec, answer = solved(SPECS[name])
    for format_name in SCRIPTS:
        script_agrees(spec, answer, format_name, tmp_path)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(8))
def test_random_specs(seed: int, tmp_path: Path) -> None:
    for text in (random_spec(seed), random_formulas(seed), random_algebra(seed)):
        try:
            spec, answer = solved(text)
        except InputError as problem:
            if "is false whatever the placement" not in str(problem):
                raise
            continue
        files_agree(spec, answer, tmp_path)
        script_agrees(spec, answer, SCRIPTS[seed % 3], tmp_path)


def test_a_transformer(tmp_path: Path) -> None:
    """The example of the README, 40 nodes over five devices."""
    spec = load(EXAMPLES / "quickstart.place")
    answer = spec.solve()
    files_agree(spec, answer, tmp_path, ["highs"])
    script_agrees(spec, answer, "cp-sat", tmp_path)


def test_small_and_large_numbers(tmp_path: Path) -> None:
    """Loads of nanoseconds: an absolute tolerance of 1e-6 would call every placement optimal."""
    text = SPECS["exact maximum"].replace(" ms", " ns").replace("GB/s", "PB/s").replace("GiB", "MiB")
    spec, answer = solved(text)
    assert 0 < answer.value < 1e-6
    files_agree(spec, answer, tmp_path)
    for format_name in SCRIPTS:
        script_agrees(spec, answer, format_name, tmp_path)


def test_conditions_beside_bytes_keep_their_size(tmp_path: Path) -> None:
    """Rows of one rule have a unit each where their numbers are far apart: 1e-06 is zero to many a reader."""
    spec, answer = solved(SPECS["exact maximum"] + "    both: memory(gpu[1]) >= 1 MiB and used(gpu[2])\n")
    text = spec.emit("lp")
    rows = re.findall(r"^ both\S*: (.*)$", text, re.MULTILINE)
    assert len(rows) == 2
    assert all(float(number) >= 0.01 for row in rows for number in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?(?= )", row))
    assert re.search(r"the rows of both are divided by \d+ or 1$", text, re.MULTILINE)
    files_agree(spec, answer, tmp_path)


def test_what_is_impossible_is_named() -> None:
    """No row that cannot hold is dropped: the file says which, and holds a row that contradicts a bound."""
    spec = loads(SPECS["never"])
    for format_name in FORMATS:
        assert "no placement can satisfy false" in spec.emit(format_name), format_name
    assert re.search(r"^ impossible: \+ impossible >= 1$", spec.emit("lp"), re.MULTILINE)
    assert re.search(r"^ impossible = 0$", spec.emit("lp"), re.MULTILINE)
    assert "impossible" not in loads(SPECS["inline"]).emit("lp")


def test_objectives_that_a_file_does_not_hold_are_named() -> None:
    spec = loads(SPECS["three in turn"])
    for format_name, sign in (("lp", "\\"), ("mps", "*")):
        lines = spec.emit(format_name).split("\n")
        assert f"{sign} minimize time_per_sample, in ms" in lines
        assert f"{sign} then communication, in us (not in this file: it holds one objective)" in lines


def test_names_and_comments_are_those_of_the_spec() -> None:
    spec = loads(SPECS["inline"])
    lp, mps, pyomo = spec.emit("lp"), spec.emit("mps"), spec.emit("pyomo")
    assert re.search(r"^ memory\.gpu_1: \+ 2 x\.embed\.gpu_1 .* <= 6$", lp, re.MULTILINE)
    assert " L memory[gpu[1]]\n" in mps
    assert " x[embed,gpu[1]] memory[gpu[1]] 2\n" in mps
    assert "# <text>:17 memory\n" in pyomo
    assert 'x["embed", "gpu[1]"] + x["embed", "gpu[2]"] + x["embed", "cpu"] == 1\n' in pyomo


@pytest.mark.parametrize("name", ["inline", "training in parts", "gpipe", "implication", "traffic"])
def test_names_tell_the_placement(name: str, tmp_path: Path) -> None:
    """Who reads ``x[a,gpu[1]]`` = 1 off a solution has a placement of the value that the solver gives."""
    spec, answer = solved(SPECS[name])
    path = tmp_path / "program.mps"
    path.write_text(spec.emit("mps"), encoding="utf-8")
    found = read("highs", path)
    ones = [column for column, value in zip(found.names, found.values, strict=True) if value > 0.5]
    placement = dict(re.fullmatch(r"x\[(\w+),(.+)\]", column).groups() for column in ones if column.startswith("x["))
    evaluation = spec.evaluate(placement)
    assert not evaluation.violations
    assert same(evaluation.objectives[0], answer.value)


def test_rows_of_a_condition_are_named_by_what_it_ranges_over() -> None:
    mps = loads(SPECS["implication"]).emit("mps")
    assert " x[a,gpu[2]] if_so[gpu[2]] " in mps
    assert " x[a,gpu[1]] if_so[gpu[2]] " not in mps


def test_what_is_written_depends_on_the_spec_alone() -> None:
    for format_name in FORMATS:
        first = loads(SPECS["traffic"]).emit(format_name)
        assert loads(SPECS["traffic"]).emit(format_name) == first


def test_a_large_program_is_written_as_tables(tmp_path: Path) -> None:
    """Tens of thousands of rows: the files are read back whole, and a script states the same program."""
    spec = loads(long_spec(2000))
    path = tmp_path / "large.mps"
    path.write_text(spec.emit("mps"), encoding="utf-8")
    head = HEADER.search(path.read_text(encoding="utf-8"))
    assert head is not None
    columns, integers, rows, entries = map(int, head.groups())
    assert rows > 25_000
    script = tmp_path / "large.py"
    text = spec.emit("mip").replace(
        'if __name__ == "__main__":', "print(model.num_cols, model.num_int, model.num_rows, model.num_nz)\nif False:"
    )
    assert "_rows = [" in text
    script.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == [str(n) for n in (columns, integers, rows, entries)]


def test_tables_and_expressions_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, answer = solved(SPECS["exact maximum"])
    for module in ("algebraic_layer", "cp_sat_script"):
        monkeypatch.setattr(f"placedsl.export.programs.{module}.MOST_WRITTEN_OUT", 0)
    for format_name in SCRIPTS:
        assert "memory_rows = [" in spec.emit(format_name)
        script_agrees(spec, answer, format_name, tmp_path)


def test_columns_of_no_row_stand_in_the_objective_of_an_lp_file() -> None:
    """Not every reader knows a column that its bounds alone name; MPS lists all of them."""
    lp, mps = (loads(SPECS["own variables"]).emit(format_name) for format_name in ("lp", "mps"))
    objective = lp.partition("Minimize\n")[2].partition("Subject To\n")[0]
    for name in ("idle.gpu_1", "idle.gpu_2", "apart", "below"):
        assert f"+ 0 {name}" in objective
    assert "0 slack" not in objective
    for name in ("idle[gpu[1]]", "idle[gpu[2]]", "apart", "below"):
        assert f" {name} obj 0\n" in mps


def test_own_variables_are_written_in_their_units() -> None:
    """20 ms lie between zero and one second, and are no share for that."""
    text = loads(SPECS["own variables"]).emit("lp")
    for told in ("slack is 0.001", "over is 0.001", "apart is 0.001", "room is 1073741824"):
        assert f"\\ one unit of {told}\n" in text
    assert " 0 <= slack.gpu_1 <= 20\n" in text
    assert " 2 <= apart <= 5\n" in text


@pytest.mark.parametrize("format_name", SCRIPTS)
def test_what_a_script_writes_is_evaluated(
    format_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file has the form of an answer's: node to device, and the spec's own variables by the words of an index."""
    spec, answer = solved(SPECS["own variables"])
    ran = script_agrees(spec, answer, format_name, tmp_path)
    assert re.search(r"^  slack\[gpu\[1\]\] = [\d.]+ ms$", ran.output, re.MULTILINE)
    assert {name: shape(value) for name, value in ran.variables.items()} == {
        **{name: shape(value) for name, value in document(answer)["variables"].items()}, "nobody": {},
    }  # fmt: skip
    assert all(isinstance(value, int) for value in ran.variables["step"].values())
    (tmp_path / "own.place").write_text(SPECS["own variables"], encoding="utf-8")
    assert cli.main(["evaluate", str(tmp_path / "own.place"), str(tmp_path / "placement.json")]) == 0
    assert "every constraint holds" in capsys.readouterr().out


def shape(value: object) -> object:
    """The words of the indices, without the numbers."""
    return {word: shape(inner) for word, inner in value.items()} if isinstance(value, dict) else None


def test_indices_of_own_variables_are_ids(tmp_path: Path) -> None:
    """A graph's nodes may have names beside their ids; a placement and the variables say the ids."""
    nodes = [
        {"id": i, "name": name, "time": {"accelerator": 2, "host": 3}, "memory": 1, "output": 10}
        for i, name in ((7, "first"), (8, "second"))
    ]
    graph = {"format": "placedsl-graph", "version": 1, "nodes": nodes, "edges": [{"from": 7, "to": 8}]}
    (tmp_path / "graph.json").write_text(json.dumps(graph), encoding="utf-8")
    text = """graph from "graph.json"
device gpu[2]: accelerator
interconnect { bandwidth = 1 GB/s }
var mark[v in nodes]: integer in 0..3
minimize time_per_sample + sum(v in nodes: mark[v])
subject to
    marked: forall v in nodes: mark[v] >= 2
"""
    (tmp_path / "spec.place").write_text(text, encoding="utf-8")
    spec = load(tmp_path / "spec.place")
    answer = spec.solve(time_limit=60)
    for format_name in SCRIPTS:
        assert script_agrees(spec, answer, format_name, tmp_path).variables == {"mark": {"7": 2, "8": 2}}


def test_there_is_no_such_format() -> None:
    with pytest.raises(UsageError, match="did you mean 'cp-sat'"):
        loads(SPECS["inline"]).emit("cpsat")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "small.place"
    spec.write_text(
        "param room = 6 GiB\n" + SPECS["inline"].replace("memory = 6 GiB", "memory = room"), encoding="utf-8"
    )
    assert cli.main(["emit", str(spec), "--to", "lp", "--set", "room=7 GiB"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("\\ The program of small.place, written by placedsl.\n")
    assert "x.head.gpu_1 <= 7\n" in printed
    target = tmp_path / "small.mps"
    assert cli.main(["emit", str(spec), "--to", "mps", "-o", str(target)]) == 0
    assert target.read_text(encoding="utf-8").endswith("ENDATA\n")
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--to", "mpx"], 2, "there is no format 'mpx'; did you mean 'mps'"),
        ([], 2, "Missing option '--to'"),
        (["--to", "lp", "-o", "nowhere/small.lp"], 2, "'nowhere/small.lp' cannot be written"),
        (["--to", "lp", "--set", "rom=1 GiB"], 2, "no parameter 'rom'"),
    ],
)
def test_the_command_used_wrongly(
    arguments: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "small.place"
    spec.write_text(SPECS["inline"], encoding="utf-8")
    assert cli.main(["emit", str(spec), *arguments]) == code
    out, error = capsys.readouterr()
    assert not out
    assert told in error


UNBOUNDED = """
formulation rewarded {
    schedule pipedream
    var x[v in nodes, d in devices where v.supported[d]]: binary
    var spare[d in devices]: real
    provides v on d          = x[v, d]
    provides time_per_sample = sum(d in devices: 1 ms * x[nodes[1], d]) - sum(d in devices: 1 ms * spare[d])
    subject to
        assigned: forall v in nodes: sum(d in devices: x[v, d]) == 1
}
"""


def test_a_column_without_bounds_is_told_for_cp_sat() -> None:
    """Integers of 64 bits cannot be without bounds; the other formats take such a program."""
    spec = loads(SPECS["no rules"] + UNBOUNDED)
    with pytest.raises(InputError, match="cp-sat needs bounds") as caught:
        spec.emit("cp-sat")
    assert caught.value.diagnostics[0].span is not None
    assert " spare.gpu_1 >= 0\n" in spec.emit("lp")


def test_the_page_shows_what_is_written() -> None:
    """Every line that docs/emit.md shows stands in the file or script, in this order."""
    page = (EXAMPLES.parent / "docs" / "emit.md").read_text(encoding="utf-8")
    for fence, format_name in (("lp", "lp"), ("python", "pyomo")):
        (shown,) = re.findall(rf"^```{fence}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        written = iter(load(EXAMPLES / "inline.place").emit(format_name).split("\n"))
        for line in shown.rstrip("\n").split("\n"):
            assert line == "…" or line in written, line


@pytest.mark.parametrize("format_name", SCRIPTS)
def test_the_page_shows_what_is_printed_and_written(format_name: str, tmp_path: Path) -> None:
    """The spec of the page with variables of its own has one optimum, and the page shows what its scripts say of it."""
    page = (EXAMPLES.parent / "docs" / "emit.md").read_text(encoding="utf-8").partition("**Variables of the spec**")[2]
    shown = dict(re.findall(r"^```(place-fragment|text|json)\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    text = (EXAMPLES / "inline.place").read_text(encoding="utf-8")
    assert "minimize time_per_sample\nsubject to\n" in text
    spec = loads(text.replace("minimize time_per_sample\nsubject to\n", shown["place-fragment"]), EXAMPLES)
    ran, written = run(spec, format_name, tmp_path), json.loads(shown["json"])
    assert ran.placement == written["placement"]
    assert dict(values_written(ran.variables)) == pytest.approx(dict(values_written(written["variables"])), rel=1e-6)
    assert values_shown(shown["text"]) == pytest.approx(dict(values_written(written["variables"])), rel=1e-6)


def test_a_script_for_cp_sat_switches_off_what_is_wrong_in_it() -> None:
    """A presolve step always, and probing where there are intervals, as a run from here does."""
    plain, timed = (loads(SPECS[name]).emit("cp-sat") for name in ("inline", "intervals"))
    for text in (plain, timed):
        assert "    solver.parameters.presolve_inclusion_work_limit = 0\n" in text
    assert "new_fixed_size_interval_var" in timed or "new_optional_fixed_size_interval_var" in timed
    assert "    solver.parameters.cp_model_probing_level = 0\n" in timed
    assert "probing_level" not in plain
