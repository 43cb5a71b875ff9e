"""The commands as a user runs them: output, files, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from support.commands import finished, run, started
from support.paths import ROOT, child_environment
from support.small_spec import SMALL

import placedsl
from placedsl.cli import commands
from placedsl.cli import main as cli

pytestmark = pytest.mark.rotates(3)

SCHEMA = json.loads((ROOT / "docs" / "answer.schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "small.place"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.mark.parametrize(("command", "code"), [("solve", 0), ("explain", 141)])
def test_a_reader_that_goes_early_is_no_error_of_the_spec(command: str, code: int, spec: Path) -> None:
    with started(command, spec) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=100) == code


def test_solve_and_json(spec: Path, tmp_path: Path) -> None:
    target = tmp_path / "answer.json"
    done = run("solve", spec, "--json", target)
    assert done.returncode == 0, done.stderr
    assert "optimal" in done.stdout
    answer = json.loads(target.read_text(encoding="utf-8"))
    jsonschema.validate(answer, SCHEMA)
    assert answer["status"]["termination"] == answer["status"]["solution"] == "optimal"
    assert answer["method"] == "dp"
    assert answer["verified"]
    assert set(answer["placement"]) == {"a", "b", "c"}
    assert answer["objective"]["value"] == max(d["load"] for d in answer["devices"])
    assert answer["objective"]["gap"] == 0
    assert sorted(n for d in answer["devices"] for n in d["nodes"]) == ["a", "b", "c"]
    again = run("solve", spec, "--json", "-", "--quiet", "--method", "program", "--solver", "cp-sat")
    assert again.stderr == ""
    other = json.loads(again.stdout)
    jsonschema.validate(other, SCHEMA)
    assert other["objective"]["value"] == answer["objective"]["value"]
    assert other["solver"] == "cp-sat"
    assert other["versions"]["cp-sat"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["answer.json", "small.place"]


def test_names_in_brackets_are_shown(spec: Path) -> None:
    """In the objective, and in the note that repeats it."""
    goal = "sum(d in devices: price[d] * count(v in nodes: v on d))"
    text = SMALL.replace("minimize time_per_sample", f"param price[d in devices] = {{gpu: 2, cpu: 1}}\nminimize {goal}")
    spec.write_text(text.replace("    contiguous\n", ""), encoding="utf-8")
    shown = " ".join(run("solve", spec, "--quiet").stdout.split())
    assert shown.count(f"{goal} = ") == 2
    assert "note: the solver started from a placement with sum(d in devices: price[d] *" in shown


def test_progress_goes_to_stderr(spec: Path) -> None:
    """As a process of its own shows it."""
    done = finished(started("solve", spec, "--json", "-"))
    json.loads(done.stdout)
    assert "bound" in done.stderr


def test_parameters(spec: Path) -> None:
    assert json.loads(run("solve", spec, "--json", "-", "--set", "gpus=3").stdout)["devices"][2]["name"] == "gpu[3]"
    for given, words in (
        ("rom=3 GiB", "did you mean 'room'?"),
        ("room=3 ms", "this is a number (time)"), ("room=3 apples", "not a unit"),
        ("gpus=2.5", "declared int"), ("room", "not name=value"),
    ):  # fmt: skip
        done = run("solve", spec, "--set", given)
        assert done.returncode == (1 if given == "gpus=2.5" else 2), given
        assert words in done.stderr, given
        assert done.stdout == ""


def test_infeasible(spec: Path) -> None:
    for options in ([], ["--method", "program"], ["--method", "program", "--solver", "cp-sat"]):
        done = run("solve", spec, "--set", "room=1 MiB", "--json", "-", *options)
        assert done.returncode == 3, done.stderr
        answer = json.loads(done.stdout)
        jsonschema.validate(answer, SCHEMA)
        assert answer["status"]["termination"] == "infeasible"
        assert answer["placement"] is None


def test_errors_in_the_spec(spec: Path, tmp_path: Path) -> None:
    spec.write_text(SMALL.replace("memory\n    cont", "memry\n    cont").replace("6 ms", "6 mss"), encoding="utf-8")
    target = tmp_path / "answer.json"
    for command in (["solve", spec, "--json", target], ["check", spec], ["explain", spec]):
        done = run(*command)
        assert done.returncode == 1
        assert done.stdout == ""
        assert f"{spec}:4:37: error: 'mss' is not a unit" in done.stderr
        assert f"{spec}:15:5: error: there is no constraint 'memry'" in done.stderr
        assert "2 errors" in done.stderr
    assert not target.exists()


def test_usage(spec: Path, tmp_path: Path) -> None:
    for options, words in (
        (["--solver", "higs"], "did you mean 'highs'"), (["--method", "magic"], "known here: alpa, auto, brkga, dp"),
        (["--time-limit", "soon"], "is not a quantity"), (["--time-limit", "0s"], "longer than zero"),
        (["--time-limit", "3 GiB"], "as in 60s"), (["--gap", "200%"], "as in 1%"), (["--workers", "0"], "workers"),
        (["--json", tmp_path / "no" / "a.json"], "there is no folder"), (["--frobnicate"], "frobnicate"),
    ):  # fmt: skip
        done = run("solve", spec, *options)
        assert done.returncode == 2, options
        assert words in done.stderr, options
    missing = run("solve", tmp_path / "smal.place")
    assert missing.returncode == 1
    assert "did you mean 'small.place'?" in missing.stderr


def test_missing_solver(spec: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What was found beforehand is kept, and it is said how to get the solver."""
    monkeypatch.setattr("placedsl.solvers.highs.installed_version", lambda _: None)
    assert cli.main(["solve", str(spec), "--method", "program", "--solver", "highs", "--quiet"]) == 4
    assert "pip install highspy" in capsys.readouterr().out


def test_our_own_fault(spec: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("nobody thought of this")

    monkeypatch.setattr("placedsl.api.spec.load", fail)
    assert cli.main(["solve", str(spec)]) == 70
    said = capsys.readouterr().err
    assert "a fault of placedsl itself" in said
    assert "ZeroDivisionError: nobody thought of this" in said
    assert "Traceback" not in said


def test_check_and_explain(spec: Path, tmp_path: Path) -> None:
    assert run("check", spec).stdout == f"{spec}: 3 nodes, 3 devices, 2 constraints; no errors\n"
    explained = run("explain", spec)
    assert explained.returncode == 0
    assert "# path taken: dynamic programming" in explained.stdout
    assert "exact for this problem" in explained.stdout
    copy = tmp_path / "copy.place"
    copy.write_text(explained.stdout, encoding="utf-8")
    answers = [json.loads(run("solve", path, "--json", "-", "--quiet").stdout) for path in (spec, copy)]
    assert answers[0]["placement"] == answers[1]["placement"]
    against = run("explain", spec, "--method", "program", "--solver", "cp-sat").stdout
    assert "path taken: program with cp-sat" in against


def test_explain_says_why_not(spec: Path) -> None:
    spec.write_text(SMALL.replace("    contiguous\n", ""), encoding="utf-8")
    assert "does not fit: it requires the 'contiguous' constraint" in run("explain", spec).stdout
    spec.write_text(SMALL + "    few: count(v in nodes: v on gpu[1]) <= 1\n", encoding="utf-8")
    assert "as a bound only, for it does not know: few" in run("explain", spec).stdout


def test_evaluate(spec: Path, tmp_path: Path) -> None:
    placement = tmp_path / "placement.json"
    for given, rules in (
        ({"a": "cpu", "b": "gpu[1]", "c": "gpu[2]"}, set()),
        ({"a": "gpu[1]", "b": "gpu[1]", "c": "gpu[1]"}, {"memory"}),
        ({"a": "gpu[1]", "b": "gpu[2]", "c": "gpu[1]"}, {"contiguous"}),
        ({"a": "gpu[1]", "b": "gpu[2]", "c": "cpu"}, {"supported"}),
        ({"a": "gpu[1]", "b": "gpu[2]"}, {"assigned"}),
    ):  # fmt: skip
        placement.write_text(json.dumps(given), encoding="utf-8")
        done = run("evaluate", spec, placement, "--json", "-")
        found = json.loads(done.stdout)
        assert {v["rule"] for v in found["violations"]} == rules, found
        assert done.returncode == (3 if rules else 0)
        assert found["feasible"] == (not rules)
    placement.write_text('{"a": "gpu[9]", "x": "cpu"}', encoding="utf-8")
    done = run("evaluate", spec, placement)
    assert done.returncode == 1
    assert "there is no device 'gpu[9]'" in done.stderr
    assert "the graph has no node 'x'" in done.stderr
    placement.write_text('{"a": "cpu", "a": "gpu[1]"}', encoding="utf-8")
    assert "'a' is there twice" in run("evaluate", spec, placement).stderr
    answer = tmp_path / "answer.json"
    run("solve", spec, "--json", answer)
    assert run("evaluate", spec, answer).returncode == 0


def test_picture(spec: Path, tmp_path: Path) -> None:
    for name in ("a.svg", "a.png"):
        assert run("solve", spec, "--picture", tmp_path / name).returncode == 0
    unknown = run("solve", spec, "--picture", tmp_path / "a.docx")
    assert unknown.returncode == 2
    assert "the name of a picture ends in one of" in unknown.stderr
    drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for word in ("gpu[1]", "gpu[2]", "cpu", "time_per_sample"):
        assert word in drawn
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"


def test_solvers() -> None:
    done = run("solvers")
    assert done.returncode == 0
    for name in ("highs", "cp-sat", "pyomo", "mip", "cvxpy"):
        assert re.search(rf"^{name} +\d", done.stdout, re.MULTILINE), done.stdout


def imported(*arguments: object) -> set[str]:
    """The modules that a command imports in a process of its own, its exit code being 0."""
    code = (
        "import json, sys; from placedsl.cli.main import main; code = main(sys.argv[1:])\n"
        "print(); print(json.dumps([code, *sys.modules]))"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=child_environment())
    code, *modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    return set(modules)


def parts_of(modules: set[str]) -> set[str]:
    """The folders and files directly below ``placedsl`` that modules are in."""
    return {name.split(".")[1] for name in modules if name.startswith("placedsl.")}


#: Packages of solvers, compilers and drawing.
HEAVY = {"highspy", "ortools", "pyomo", "mip", "cvxpy", "numba", "scipy", "matplotlib"}


def test_check_imports_no_solver_and_no_algorithm(spec: Path) -> None:
    modules = imported("check", spec)
    assert not HEAVY & modules
    assert not {"diagnosis", "evaluation", "lowering", "export", "simulation"} & parts_of(modules)
    assert {name for name in modules if name.startswith("placedsl.report.")} <= {
        "placedsl.report.text",
        "placedsl.report.text.heartbeat",
    }
    assert not {name for name in modules if name.startswith("placedsl.algorithms.pipelines")}
    assert {name for name in modules if name.startswith("placedsl.solvers.")} == {"placedsl.solvers.registry"}


def test_dynamic_programming_imports_nothing_of_programs(spec: Path) -> None:
    modules = imported("solve", spec, "--quiet")
    assert not {"highspy", "ortools", "pyomo", "mip", "cvxpy", "matplotlib"} & modules
    assert not {"diagnosis", "grounding", "ir", "lowering", "export", "simulation", "processes"} & parts_of(modules)
    assert {name for name in modules if name.startswith("placedsl.solvers.")} == {"placedsl.solvers.registry"}
    families = {name.split(".")[2] for name in modules if name.startswith("placedsl.algorithms.")}
    assert not {"partitions", "subgraph_calls", "operator_scheduling", "baselines"} & families
    assert not {name for name in modules if name.endswith((".gpipe", ".replicated", ".hierarchical"))}


@pytest.mark.parametrize(("command", "module"), [("solve", "solving"), ("fmt", "editing"), ("methods", "listing")])
def test_a_command_imports_no_other_commands(command: str, module: str) -> None:
    own = {name for name in imported(command, "--help") if name.startswith("placedsl.cli.")}
    assert own <= {f"placedsl.cli.{name}" for name in ("main", "commands", "options", module)}


def test_help_lists_all_commands() -> None:
    shown = re.findall(r"^  (\w+)  +\w", run("--help").stdout.partition("Commands:")[2], re.MULTILINE)
    known = {name.rstrip("_") for names in commands.COMMANDS.values() for name in names}
    assert shown == sorted(known)
    assert "No such command 'slove'" in run("slove").stderr


@pytest.mark.workloads
def test_import(workloads: Path, tmp_path: Path) -> None:
    files = sorted((workloads / "dnn-partitioning" / "throughput-inputs").rglob("*.json"))
    for file in [file for file in files if file.stat().st_size <= 500_000][::3]:
        target = tmp_path / (file.parent.name + file.stem + ".place")
        assert run("import", "dnn-partitioning", file, "-o", target).returncode == 0
        done = run("check", target)
        assert done.returncode == 0, done.stderr
        text = target.read_text(encoding="utf-8")
        assert "contiguous" in text
        free = run("import", "dnn-partitioning", file, "--non-contiguous", "-o", "-").stdout
        assert "contiguous" not in free


@pytest.mark.workloads
def test_import_for_latency(workloads: Path, tmp_path: Path) -> None:
    files = sorted((workloads / "dnn-partitioning" / "latency-inputs").rglob("*.json"))
    assert len(files) == 7
    for file in files:
        target = tmp_path / (file.parent.name + file.stem + ".place")
        assert run("import", "dnn-partitioning", file, "--objective", "latency", "-o", target).returncode == 0
        problem = placedsl.load(target).problem
        root = json.loads(file.read_text(encoding="utf-8"))
        assert problem.execution.name == "calls"
        assert [d.kind for d in problem.machine.devices] == ["accelerator"] * int(root["maxFPGAs"]) + ["host"]
        assert [r.name for r in problem.constraints] == ["memory", "colocated by colorClass"]
        assert [o.name for o in problem.objectives] == ["latency"]


def test_import_of_what_does_not_go_together(spec: Path) -> None:
    done = run("import", "moirai", spec, "--objective", "throughput", "-o", "-")
    assert (done.returncode, done.stderr) == (2, "error: a profile of moirai is for one sample: --objective latency\n")
    for given in (("moirai", spec), ("dnn-partitioning", spec, "--objective", "latency")):
        done = run("import", *given, "--non-contiguous", "-o", "-")
        assert done.returncode == 2
        assert done.stderr.startswith("error: --non-contiguous is for throughput")


def test_import_of_what_is_none(spec: Path, tmp_path: Path) -> None:
    target = tmp_path / "w.place"
    done = run("import", "dnn-partitioning", spec, "-o", target)
    assert done.returncode == 1
    assert not target.exists()


def test_a_split_of_the_forward_part_places_what_shares_its_devices(tmp_path: Path) -> None:
    """The format of the dnn-partitioning project: backward nodes that it leaves out follow their colour class."""
    text = """
graph {
    node a { time = 4 ms, output = 8 MiB, color = 1 }
    node b { time = 6 ms, output = 8 MiB, color = 2 }
    node ga { time = 4 ms, output = 8 MiB, color = 1, backward = true }
    node gb { time = 6 ms, output = 8 MiB, color = 2, backward = true }
    a -> b -> gb -> ga
}
device gpu[2]: accelerator
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
"""
    split = tmp_path / "split.json"
    split.write_text(json.dumps({"cpus": [], "fpgas": [{"load": -1, "nodes": ["a"]}, {"load": -1, "nodes": ["b"]}]}))
    spec = tmp_path / "training.place"
    spec.write_text(text + "subject to\n    colocated by color\n", encoding="utf-8")
    done = run("evaluate", spec, split)
    assert done.returncode == 0, done.stdout + done.stderr
    spec.write_text(text, encoding="utf-8")
    done = run("evaluate", spec, split)
    assert done.returncode == 3
    assert "2 nodes not placed: ga, gb" in done.stdout
