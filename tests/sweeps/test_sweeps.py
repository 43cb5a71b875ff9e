"""A sweep runs every combination once, keeps each answer, and tells what is wrong before anything is run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.paths import ROOT
from support.small_spec import SMALL
from support.sweep_specs import answers

import placedsl
from placedsl.cli.main import main
from placedsl.sweeps import processes
from placedsl.sweeps.engine import planned
from placedsl.sweeps.jobs import jobs_of
from placedsl.sweeps.runs import Run, count, product, ranged, several
from placedsl.sweeps.table import Row, Table, table_of
from placedsl.sweeps.tasks import Task
from placedsl.sweeps.worker import solved

pytestmark = pytest.mark.rotates(2)

SCHEMA = json.loads((ROOT / "docs" / "answer.schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "small.place"
    path.write_text(SMALL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and words of a sweep that is not begun."""
    code = main(["sweep", *arguments])
    told = capsys.readouterr()
    assert told.out == ""
    assert not Path("runs").exists()
    return code, told.err


@pytest.fixture
def run(spec: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Exit code, stdout and stderr of a sweep in the spec's folder."""

    def sweep(*arguments: str) -> tuple[int, str, str]:
        code = main(["sweep", *arguments])
        told = capsys.readouterr()
        return code, told.out, told.err

    return sweep


# what is asked for


def test_lists_and_ranges() -> None:
    assert several("1..3,8") == (("1", "2", "3", "8"), [])
    assert several("8 GiB, 16 GiB") == (("8 GiB", "16 GiB"), [])
    assert several("-1..1")[0] == ("-1", "0", "1")
    assert several("4..2,,5") == (("5",), [
        "the range '4..2' is empty: its end lies before its beginning",
        "'4..2,,5' lacks a value: values are separated by commas, as in 1..4,8",
    ])  # fmt: skip
    assert ranged("a..b") == ("a..b",)


def test_every_combination_is_a_run() -> None:
    axes = {"spec": ("a", "b"), "set.gpus": ("1", "2", "3"), "method": ("dp", "program"), "seed": ("0", "1")}
    runs = product(axes)
    assert len(runs) == count(axes) == 24
    assert len({r.words() for r in runs}) == 24
    assert runs[0] == Run("a", {"gpus": "1"}, method="dp", seed=0)
    assert runs[-1] == Run("b", {"gpus": "3"}, method="program", seed=1)


def test_a_plan_in_toml_is_a_product_an_entry(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[[run]]\nset = { gpus = "1..3", room = ["8 GiB", "16 GiB"] }\n\n'
        '[[run]]\nspec = "b.place"\nmethod = ["dp", "program"]\nset.pinned = true\nseed = 7\n',
        encoding="utf-8",
    )
    runs, wrong = planned({"spec": ("a.place",), "seed": ("1",), "time_limit": ("2 min",)}, plan)
    assert wrong == []
    assert len(runs) == 8
    assert runs[5] == Run("a.place", {"gpus": "3", "room": "16 GiB"}, seed=1, time_limit=120.0)
    last = Run(str(tmp_path / "b.place"), {"pinned": "true"}, method="program", seed=7, time_limit=120.0)
    assert runs[7] == last


def test_a_plan_in_csv_is_a_run_a_row(tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    text = 'spec,gpus,room,method,gap,set.seed\na.place,2,"8 GiB",dp,1%,\n\na.place,4,,program,,3\n'
    plan.write_text(text, encoding="utf-8")
    runs, wrong = planned({}, plan)
    spec = str(tmp_path / "a.place")
    assert wrong == []
    assert runs == [
        Run(spec, {"gpus": "2", "room": "8 GiB"}, method="dp", gap=0.01),
        Run(spec, {"gpus": "4", "seed": "3"}, method="program"),
    ]


def test_numbers_of_thousands_of_digits_are_refused(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    digits = "9" * 5000
    plan.write_text(f'[[run]]\nspec = "a.place"\nseed = "{digits}"\nworkers = "1..{digits}"\n', encoding="utf-8")
    with pytest.raises(placedsl.InputError) as caught:
        planned({}, plan)
    told = [(d.message, d.span.line) for d in caught.value.diagnostics if d.span]
    assert told == [
        (f"a number of the range '1..{'9' * 37}…' has too many digits", 4),
        (f"seed '{'9' * 40}…': a whole number is expected, 0 or more", 1),
    ]


def test_errors_of_a_plan_stand_where_they_are(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[run]]\nspec = "a.place"\n\n[[run]]\nmehtod = "dp"\nseed = -1\n', encoding="utf-8")
    with pytest.raises(placedsl.InputError) as caught:
        planned({}, plan)
    told = [(d.message, d.span.line) for d in caught.value.diagnostics if d.span]
    assert told == [("a run has no 'mehtod'", 5), ("seed '-1': a whole number is expected, 0 or more", 4)]
    assert "did you mean 'method'?" in str(caught.value)
    plan = tmp_path / "plan.csv"
    plan.write_text("spec,gpus,gpus\na.place,2\n", encoding="utf-8")
    with pytest.raises(placedsl.InputError, match=r"plan\.csv:2:1: error: 2 values are given for 3 columns") as caught:
        planned({}, plan)
    assert "the column 'gpus' stands there twice" in str(caught.value)


# before anything is run


def test_all_that_is_wrong_is_told_at_once(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = refused(
        capsys, "small.place", "smal.place", "--vary", "gpsu=1..3", "--vary", "room=6 ms,3 apples,1 GiB",
        "--vary", "gpus=2.5,x,7..5", "--set", "k=1", "--vary", "k=2", "--vary", "schedule=gpipi",
        "--method", "dp,progam", "--solver", "higsh",
        "--seed", "-1", "--time-limit", "3 GiB",
    )  # fmt: skip
    assert code == 1  # one of the files is not there
    for words in (
        "there is no file 'smal.place'", "did you mean 'small.place'?", "no parameter 'gpsu' (did you mean 'gpus'?)",
        "room=6 ms: parameter 'room' is a number (data), this is a number (time)", "'apples' is not a unit",
        "parameter 'gpus' is declared int, its value is 2.5", "gpus=x: 'x' is not a quantity",
        "--vary gpus: the range '7..5' is empty", "--vary k: it is given twice",
        "no schedule 'gpipi'\n  did you mean 'gpipe'",
        "no method 'progam'\n  did you mean 'program'", "no solver 'higsh'\n  did you mean 'highs'",
        "seed '-1': a whole number is expected", "time_limit '3 GiB': as in 60s",
    ):  # fmt: skip
        assert words in told, words


def test_what_only_is_asked_wrongly_is_a_usage_error(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "small.place", "--method", "progam")[0] == 2
    assert refused(capsys, "small.place", "--vary", "gpus")[0] == 2
    code, told = refused(capsys, "small.place", "--jobs", "2", "--dask", "tcp://127.0.0.1:8786")
    assert (code, "--jobs is for processes of this machine" in told) == (2, True)
    code, told = refused(capsys)
    assert (code, told) == (2, "error: no spec is given: placedsl sweep SPEC …, or a spec in each entry of the plan\n")


def test_values_that_only_elaboration_refuses(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each value is elaborated once, beside the first values of the others."""
    code, told = refused(capsys, "small.place", "--vary", "gpus=2,-1", "--vary", "room=6 GiB,-3 GiB")
    assert code == 1
    assert "(with gpus=2, room=-3 GiB)" in told
    assert "(with gpus=-1, room=6 GiB)" in told


def test_too_many_runs_are_refused_unless_allowed(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = refused(capsys, "small.place", "--vary", "gpus=1..3000", "--seed", "0..40")
    assert code == 2
    assert "this asks for 123,000 runs (3,000 gpus x 41 seed), more than 10,000" in told
    assert "--most 123000" in told
    code, told = refused(capsys, "small.place", "--seed", "0..999999999999")
    assert "has 1,000,000,000,000 values, more than 10,000" in told


def test_the_key_follows_what_is_read_and_asked_for(tmp_path: Path) -> None:
    (tmp_path / "cluster.place").write_text("device gpu[2]: accelerator\ndevice cpu: host\n", encoding="utf-8")
    nodes = '"nodes": [{"id": "a", "time": {"accelerator": %s, "host": 9}}], "edges": []'
    graph = '{"format": "placedsl-graph", "version": 1, ' + nodes + "}"
    (tmp_path / "one.json").write_text(graph % 1, encoding="utf-8")
    text = 'import "cluster.place"\ngraph from "one.json" { time_unit = 1 ms }\nparam x = 1\nminimize time_per_sample\n'
    (tmp_path / "one.place").write_text(text, encoding="utf-8")
    (tmp_path / "x.json").write_text('{"x": 2}', encoding="utf-8")
    asked = Run(str(tmp_path / "one.place"), {"x": "3"}, data=str(tmp_path / "x.json"), method="dp")

    def key(run: Run = asked) -> str:
        return jobs_of([run])[0].key

    keys = [key(), key(Run(asked.spec, {"x": "4"}, data=asked.data, method="dp"))]
    keys += [key(Run(asked.spec, {"x": "3"}, data=asked.data, method="dp", seed=1)), key(Run(asked.spec, {"x": "3"}))]
    assert key() == keys[0]
    for name, changed in (
        ("one.json", graph % 2), ("cluster.place", "device gpu[3]: accelerator\ndevice cpu: host\n"),
        ("x.json", '{"x": 5}'), ("one.place", f"# the same\n{text}"),
    ):  # fmt: skip
        (tmp_path / name).write_text(changed, encoding="utf-8")
        keys.append(key())
    assert len(set(keys)) == len(keys) == 8


# running


def test_a_sweep_and_its_folder(spec: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    """Two pools' worth of runs, then the same command, then a wider one, then another spec of the same name."""
    command = ("small.place", "--vary", "gpus=1..3", "--vary", "room=6 GiB,1 MiB", "--method", "dp", "--jobs", "1")
    code, out, err = run(*command)
    assert code == 0, err
    assert err.startswith("6 runs (3 gpus x 2 room), 1 at a time\n")
    assert "6 of 6 done, 0 running, best so far 7.04858 ms (small.place gpus=3 room=6 GiB method=dp)\n" in err
    assert [line.split()[:5] for line in out.splitlines()[1:3]] == [
        ["1", "6", "GiB", "11.5243", "ms"], ["1", "1", "MiB", "-", "7.5"],
    ]  # fmt: skip
    runs = spec.parent / "runs"
    first = answers(runs)
    assert len(first) == 6
    for name in first:
        document = json.loads((runs / name).read_text(encoding="utf-8"))
        jsonschema.validate(document, SCHEMA)
        assert document["run"]["spec"] == "small.place"
        assert document["run"]["key"].startswith(name.removeprefix("small-").removesuffix(".json"))
    code, again, err = run(*command)
    assert (code, again, err) == (0, out, "6 runs (3 gpus x 2 room), 6 of them there already\n")
    assert answers(runs) == first
    assert run("--table", "runs") == (0, out, "")
    wider = [word.replace("1..3", "1..4") for word in command]
    code, _, err = run(*wider, "--quiet")
    assert (code, err) == (0, "")
    assert {name: answers(runs)[name] for name in first} == first
    assert len(answers(runs)) == 8
    spec.write_text(SMALL.replace("time = {accelerator: 6 ms", "time = {accelerator: 7 ms"), encoding="utf-8")
    code, changed, err = run(*command)
    assert err.startswith("6 runs (3 gpus x 2 room), 1 at a time\n")
    assert changed != out
    assert len(answers(runs)) == 14


def test_a_run_that_fails_stops_no_other_and_is_tried_again(
    spec: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    command = ("small.place", "--method", "local-search,dp", "--vary", "gpus=1,2", "--jobs", "1")
    for _ in range(2):
        code, out, err = run(*command)
        assert code == 1
        assert "failed: small.place gpus=1 method=local-search and 1 more: method local-search does not fit" in err
        assert out.count("failed") == out.count("optimal") == 2
    assert "4 runs (2 gpus x 2 method), 2 of them there already" in err
    (failure, _) = sorted((spec.parent / "runs").glob("*.failed.json"))
    told = json.loads(failure.read_text(encoding="utf-8"))
    assert told["exit_code"] == 2
    assert told["answer"] is None
    assert told["message"].startswith("method local-search does not fit")
    spec.write_text(SMALL.replace("    contiguous\n", ""), encoding="utf-8")
    code, out, _ = run(*command, "--out", "others")
    assert (code, out.count("ended")) == (1, 2)  # dp does not fit now, local search does


def test_a_failure_that_is_cured_leaves_no_message(spec: Path) -> None:
    placedsl.sweep("small.place", method="dp", jobs=1)
    (answer,) = Path("runs").glob("small-*.json")
    failure = answer.with_name(answer.name.replace(".json", ".failed.json"))
    document = json.loads(answer.read_text(encoding="utf-8"))
    answer.write_text('{"half a', encoding="utf-8")
    told = {"run": document["run"], "exit_code": 70, "message": "killed", "answer": None}
    failure.write_text(json.dumps(told), encoding="utf-8")
    assert [row.termination for row in table_of(Path("runs"))] == ["failed"]
    assert [row.termination for row in placedsl.sweep("small.place", method="dp")] == ["optimal"]
    assert not failure.exists()
    assert json.loads(answer.read_text(encoding="utf-8"))["placement"] == document["placement"]


def test_from_python(spec: Path) -> None:
    heard: list[tuple[float | None, int, int]] = []
    table = placedsl.sweep(
        spec, vary={"gpus": range(1, 3), "schedule": ["pipedream", "gpipe"]}, method="auto", solver="highs",
        parameters={"room": "6 GiB"}, jobs=2, progress=lambda row, done, total: heard.append((row.value, done, total)),
    )  # fmt: skip
    assert [row.termination for row in table] == ["optimal"] * 4
    assert table.exit_code == 0
    assert table.varied() == ["gpus", "schedule"]
    assert sorted(h[1:] for h in heard) == [(1, 4), (2, 4), (3, 4), (4, 4)]
    records = table.to_records()
    assert [(r["gpus"], r["room"], r["schedule"]) for r in records] == [
        ("1", "6 GiB", "pipedream"), ("1", "6 GiB", "gpipe"), ("2", "6 GiB", "pipedream"), ("2", "6 GiB", "gpipe"),
    ]  # fmt: skip
    for record in records:
        wanted = placedsl.loads(
            SMALL + f"schedule {record['schedule']}\n", parameters={"gpus": record["gpus"]}
        ).solve(method="auto", solver="highs")  # fmt: skip
        assert record["value"] == pytest.approx(wanted.value, rel=1e-6)
    read = list(csv.DictReader(io.StringIO(table.csv())))
    assert [float(row["value"]) for row in read] == [r["value"] for r in records]
    assert (Path("runs") / "table.csv").read_text(encoding="utf-8") == table.csv()
    assert placedsl.sweep(spec, vary={"gpus": 2}, parameters={"room": "6 GiB"}).rows[0].earlier is False


def test_what_a_run_says_counts_more_than_the_spec(spec: Path) -> None:
    """Seed and schedule of the spec hold where the sweep says nothing."""
    spec.write_text(
        f"{SMALL}schedule gpipe\nsolve {{ seed = 5, solver = highs, method = program }}\n", encoding="utf-8"
    )
    table = placedsl.sweep(spec, vary={"schedule": "pipedream"}, seed=[3], method="dp")
    (row,) = table
    assert (row.termination, row.method) == ("optimal", "dp")
    plain = placedsl.sweep(spec)
    documents = [json.loads(Path(t.rows[0].file).read_text(encoding="utf-8")) for t in (table, plain)]
    assert [d["seed"] for d in documents] == [3, 5]
    assert plain.rows[0].solver == "highs"


def test_no_more_threads_than_processors(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither the run nor the spec says how many."""
    monkeypatch.setattr(processes, "processors", lambda: 8)
    assert [processes.Processes(size).workers for size in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]
    given: list[int | None] = []
    solve = placedsl.Spec.solve

    def noted(self: placedsl.Spec, **wanted: Any) -> placedsl.Answer:
        given.append(wanted["workers"])
        return solve(self, **wanted)

    monkeypatch.setattr(placedsl.Spec, "solve", noted)
    for text, own in ((SMALL, None), (SMALL, 3), (f"{SMALL}solve {{ workers = 2 }}\n", None)):
        spec.write_text(text, encoding="utf-8")
        (job,) = jobs_of([Run("small.place", method="dp", workers=own)])
        assert solved(Task(job.run, job.texts, 4)).exit_code == 0
    assert given == [4, 3, None]


def test_a_fault_in_a_run_is_told(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise raised.pop()

    raised: list[Exception] = []
    monkeypatch.setattr(placedsl.Spec, "solve", broken)
    (job,) = jobs_of([Run("small.place")])
    for problem, words in (
        (MemoryError(), "the memory of the machine was not enough"),
        (ZeroDivisionError("by zero"), "a fault of placedsl itself: ZeroDivisionError: by zero (test_sweeps.py:"),
    ):
        raised.append(problem)
        result = solved(Task(job.run, job.texts, 1))
        assert (result.exit_code, result.document) == (70, None)
        assert words in result.message


# the table


def test_exit_codes_of_a_table() -> None:
    def code(*ended: tuple[str, int | None], stopped: bool = False) -> int:
        return Table(tuple(Row(Run("a"), t, exit_code=c) for t, c in ended), stopped).exit_code

    solved, nothing, failed = ("optimal", 0), ("time_limit", 5), ("failed", 70)
    assert code(solved, ("infeasible", 3), ("time_limit", 4)) == 0
    assert code(solved, nothing) == 5
    assert code(solved, nothing, failed) == 1
    assert code(solved, failed, ("not run", None)) == 4
    assert code(solved, stopped=True) == 4


def test_a_parameter_that_bears_the_name_of_a_column() -> None:
    rows = tuple(Row(Run("a", {"value": str(k)}, method="dp"), "optimal", value=k / 2) for k in range(2))
    table = Table(rows)
    assert table.varied() == ["set.value"]
    assert [(r["set.value"], r["value"], r["asked_method"]) for r in table.to_records()] == [
        ("0", 0.0, "dp"), ("1", 0.5, "dp"),
    ]  # fmt: skip


def test_no_table_where_there_was_no_sweep(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--table", "."]) == 2
    assert "holds no sweep" in capsys.readouterr().err


def test_no_cell_of_a_table_is_a_formula() -> None:
    parameters = {"a": "=1+1", "b": "-3 ms", "c": "@x", "d": -3, "=e": "+1", "f": "-1e-3"}
    table = Table((Row(Run("=SUM(A1).place", parameters=parameters)),))
    head, row = csv.reader(io.StringIO(table.csv()))
    cells = dict(zip(head, row, strict=True))
    assert cells["spec"] == "'=SUM(A1).place"
    assert [cells[n] for n in ("a", "b", "c", "d", "'=e", "f")] == ["'=1+1", "'-3 ms", "'@x", "-3", "+1", "-1e-3"]
