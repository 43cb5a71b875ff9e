"""The commands of the guides give what stands beneath them (seconds apart; ``...`` stands for any lines)."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from support.paths import ROOT
from support.shown_output import plain

from placedsl.cli.main import main

pytestmark = pytest.mark.rotates(2)

GUIDES = {
    name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("tutorial", "first-formulation", "decoder")
}
FILE = re.compile(r"^<!-- file: ([\w.]+)(.*?) -->\n```[\w-]+\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
COMMANDS = [
    (guide, *pair)
    for guide, text in GUIDES.items()
    for block in CONSOLE.findall(text)
    for pair in COMMAND.findall(block)
    if not pair[0].startswith("pip")
]


def written(guide: str, folder: Path) -> None:
    """Every file that a guide has its reader write."""
    whole = ""
    for name, how, body in FILE.findall(GUIDES[guide]):
        text = body
        if "the end of first.place" in how:
            text = whole[: whole.index("subject to")] + body
        for old, new in re.findall(r'with "(.*?)" as "(.*?)"', how):
            text = text.replace(old, new)
        (folder / name).write_text(text, encoding="utf-8")
        whole = whole or text
    shutil.copytree(ROOT / "examples", folder / "examples")


def ran(guide: str, command: str, folder: Path) -> None:
    """Every script that a guide has run before a command."""
    for block in CONSOLE.findall(GUIDES[guide]):
        for earlier, _ in COMMAND.findall(block):
            if earlier == command:
                return
            if earlier.startswith("python"):
                script(earlier, folder)


def script(command: str, folder: Path) -> str:
    """What a script writes."""
    program = [sys.executable, *shlex.split(command)[1:]]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cases(published: bool) -> list[ParameterSet]:
    """The commands that need a published workload, or the others."""
    return [pytest.param(*case, id=f"{case[0]}: {case[1]}") for case in COMMANDS if ("bert3" in case[1]) == published]


@pytest.mark.parametrize(("guide", "command", "shown"), cases(published=False))
def test_command(guide: str, command: str, shown: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(guide, folder)
    ran(guide, command, folder)
    compare(command, shown, folder, capsys)


@pytest.mark.workloads
@pytest.mark.parametrize(("guide", "command", "shown"), cases(published=True))
def test_command_on_a_workload(
    guide: str, command: str, shown: str, folder: Path, capsys: pytest.CaptureFixture[str], workloads: Path
) -> None:
    written(guide, folder)
    published = workloads / "dnn-partitioning" / "throughput-inputs" / "OperatorGraphs"
    shutil.copy(published / "bert_l-3_inference.json", folder)
    compare(command, shown, folder, capsys)


def compare(command: str, shown: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run one command of a guide and compare what it says with what the page shows."""
    program, *arguments = shlex.split(command)
    if program == "python":
        output = script(command, folder)
    else:
        assert program == "placedsl"
        before = {path: path.read_text(encoding="utf-8") for path in folder.glob("*.place")}
        code = main(arguments)
        out, err = capsys.readouterr()
        output = err if code in (1, 2) else out
        assert {path: path.read_text(encoding="utf-8") for path in folder.glob("*.place")} == before
    if arguments == ["solvers"]:
        names = {line.split()[0] for line in shown.split("\n") if line and not line.startswith(" ")}
        assert names <= {line.split()[0] for line in output.split("\n") if line}
        return
    pieces = [re.escape(plain(piece)) for piece in re.split(r"^ *\.\.\.\n", shown, flags=re.MULTILINE)]
    pattern = r" ?.*? ?".join(pieces)
    if "--solver" in arguments:  # whichever of the processes beside the solver is first has proven it
        pattern = re.sub(r"proven\\ by\\ [a-z\\-]+", r"proven by [a-z -]+?", pattern)
    assert re.fullmatch(pattern, plain(output)), output


def test_the_tutorial_shows_every_command() -> None:
    tutorial = [command for guide, command, _ in COMMANDS if guide == "tutorial"]
    used = {c.split()[1] for c in tutorial if c.startswith("placedsl")}
    assert used == {"solve", "conflict", "check", "explain", "evaluate", "import", "solvers"}
    solvers = {c.split("--solver ")[1] for c in tutorial if "--solver " in c}
    assert solvers == {"highs", "cp-sat", "pyomo", "mip", "cvxpy"}
