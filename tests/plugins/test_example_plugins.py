"""The example packages of each kind, installed by pip into a folder of their own, and used by the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import ROOT

EXAMPLES = ROOT / "examples" / "plugins"
TABLE = """operator,milliseconds,memory,output,reads
embed,4,2147483648,8388608,
left,3,1073741824,1048576,embed
right,5,1073741824,1048576,embed
head,3,1073741824,1048576,left right
"""
SPEC = """
graph from "table.csv" { format = "operator-table" }
device gpu[3]: accelerator { memory = 8 GiB }
interconnect { bandwidth = 16 GB/s }
minimize time_per_sample
subject to
    memory
"""

# One worker installs, and runs what needs it.
pytestmark = [pytest.mark.xdist_group("example plug-ins"), pytest.mark.rotates(3)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that pip has installed all five packages into, without a network."""
    target = tmp_path_factory.mktemp("packages")
    projects = [str(p.parent) for p in sorted(EXAMPLES.glob("*/pyproject.toml"))]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    done = subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--target", str(target), *projects],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(projects) == 5
    return target


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "table.csv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "spec.place").write_text(SPEC, encoding="utf-8")
    return tmp_path


def python(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(ROOT), str(installed)))
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def solved(installed: Path, folder: Path, *options: str) -> dict[str, object]:
    done = python(installed, folder, "-m", "placedsl", "solve", "spec.place", "--quiet", "--json", "-", *options)
    assert done.stdout, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer | {"code": done.returncode}


def add_rule(folder: Path, rule: str) -> None:
    (folder / "spec.place").write_text(f"{SPEC}    {rule}\n", encoding="utf-8")


def test_they_are_listed(installed: Path, folder: Path) -> None:
    listed = python(installed, folder, "-m", "placedsl", "plugins").stdout
    for name in ("operator-table", "scipy-milp", "first-fit", "even", "scattered", "dot"):
        assert name in listed
    assert "not used" not in listed
    assert "scipy.optimize.milp" in python(installed, folder, "-m", "placedsl", "solvers").stdout


def test_reader(installed: Path, folder: Path) -> None:
    checked = python(installed, folder, "-m", "placedsl", "check", "spec.place")
    assert checked.stdout == "spec.place: 4 nodes, 3 devices, 1 constraint; no errors\n"
    (folder / "table.csv").write_text(TABLE.replace("left right", "left wrong").replace("left,3", "left,x"))
    refused = python(installed, folder, "-m", "placedsl", "check", "spec.place")
    assert refused.returncode == 1
    assert "table.csv:3:1: error: the time on 'accelerator' is missing or not a number" in refused.stderr
    assert "table.csv:5:1: error: there is no node 'wrong'" in refused.stderr
    (folder / "table.csv").write_text("a,b\n1,2\n")
    refused = python(installed, folder, "-m", "placedsl", "check", "spec.place")
    assert "table.csv:1:1: error: the first line names the columns" in refused.stderr


def test_solver(installed: Path, folder: Path) -> None:
    """It proves the same optimum as a solver that is built in, in a process of its own."""
    for rule in ("contiguous", "few: forall d in devices: count(v in nodes: v on d) <= 2"):
        add_rule(folder, rule)
        own = solved(installed, folder, "--method", "program", "--solver", "scipy-milp")
        other = solved(installed, folder, "--method", "program", "--solver", "highs")
        assert own["solver"] == "scipy-milp"
        assert own["status"]["termination"] == other["status"]["termination"] == "optimal"  # type: ignore[index]
        assert own["objective"]["value"] == pytest.approx(other["objective"]["value"])  # type: ignore[index]
    add_rule(folder, "none: forall d in devices: count(v in nodes: v on d) <= 1")
    nothing = solved(installed, folder, "--solver", "scipy-milp")
    assert (nothing["code"], nothing["placement"]) == (3, None)


def test_algorithm_by_name(installed: Path, folder: Path) -> None:
    """First fit ends with a placement and the simple bound, which are less than a proof."""
    answer = solved(installed, folder, "--method", "first-fit")
    assert (answer["code"], answer["method"], answer["solver"]) == (4, "first-fit", None)
    assert answer["status"]["termination"] == "ended"  # type: ignore[index]
    assert answer["verified"]
    assert answer["objective"]["bound"] == pytest.approx(0.005)  # type: ignore[index]
    add_rule(folder, "contiguous")
    refused = python(installed, folder, "-m", "placedsl", "solve", "spec.place", "--method", "first-fit")
    assert refused.returncode == 2
    assert "method first-fit does not fit: it does not look at contiguous" in refused.stderr
    explained = python(installed, folder, "-m", "placedsl", "explain", "spec.place").stdout
    assert "algorithm 'first-fit' of placedsl-first-fit 0.1.0\n#   does not fit: it does not look at" in explained


def test_algorithm_that_the_planner_tries(installed: Path, folder: Path) -> None:
    """One device: first fit reaches the bound, and no solver has to run."""
    text = SPEC.replace("gpu[3]", "gpu[1]")
    (folder / "spec.place").write_text(text, encoding="utf-8")
    answer = solved(installed, folder)
    assert answer["method"] == "first-fit"
    assert answer["status"]["termination"] == "optimal"  # type: ignore[index]
    assert answer["objective"]["value"] == pytest.approx(0.015)  # type: ignore[index]


def test_constraints(installed: Path, folder: Path) -> None:
    add_rule(folder, "even")
    answer = solved(installed, folder)
    counts = sorted(len(d["nodes"]) for d in answer["devices"])  # type: ignore[attr-defined, index]
    assert counts == [1, 1, 2]
    together = {"embed": "gpu[1]", "left": "gpu[1]", "right": "gpu[1]", "head": "gpu[1]"}
    (folder / "all.json").write_text(json.dumps(together))
    told = python(installed, folder, "-m", "placedsl", "evaluate", "spec.place", "all.json")
    assert told.returncode == 3
    assert "violated even" in told.stdout
    add_rule(folder, "scattered by name")
    assert solved(installed, folder)["verified"]
    add_rule(folder, "scattered")
    missing = python(installed, folder, "-m", "placedsl", "check", "spec.place")
    assert "spec.place:8:5: error: 'scattered' needs an attribute" in missing.stderr
    add_rule(folder, "evn")
    assert "did you mean 'even'?" in python(installed, folder, "-m", "placedsl", "check", "spec.place").stderr


def test_exporter(installed: Path, folder: Path) -> None:
    program = (
        'import placedsl, placedsl.plugins; print(placedsl.plugins.export(placedsl.load("spec.place").solve(), "dot"))'
    )
    done = python(installed, folder, "-c", program)
    lines = done.stdout.rstrip().splitlines()
    assert (lines[0], lines[-1]) == ("digraph placement {", "}")
    assert sum('fillcolor="#' in line for line in lines) == 4
    assert '    "left" -> "head"' in lines
