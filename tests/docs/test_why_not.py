"""The commands of docs/why-not.md give what stands beneath them (seconds apart)."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import ROOT
from support.shown_output import plain

from placedsl.cli.main import main

pytestmark = pytest.mark.rotates(2)

TEXT = (ROOT / "docs" / "why-not.md").read_text(encoding="utf-8")
WHOLE = re.compile(r"^<!-- file: ([\w.]+) -->\n```[\w-]+\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
CHANGED = re.compile(r"^<!-- file: ([\w.]+), full.place (.*?) -->\n", re.MULTILINE)
CONSOLE = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
CASES = CONSOLE.findall(TEXT)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every file that the page has its reader write."""
    files = dict(WHOLE.findall(TEXT))
    for name, how in CHANGED.findall(TEXT):
        text = files["full.place"]
        for old, new in re.findall(r'with "(.*?)" as "(.*?)"', how):
            assert old in text
            text = text.replace(old, new)
        for gone in re.findall(r'"(\w+)"', how.partition(" with ")[0]) if how.startswith("without") else ():
            text, count = re.subn(rf"^    {gone}: .*\n", "", text, flags=re.MULTILINE)
            assert count == 1
        files[name] = text
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("command", "shown"), CASES, ids=[command for command, _ in CASES])
def test_command(command: str, shown: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, *arguments = shlex.split(command)
    if program == "python":
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        run = [sys.executable, *arguments]
        output = subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
    else:
        main(arguments)
        output = capsys.readouterr().out
    assert plain(output) == plain(shown)


def test_the_page_shows_both_questions() -> None:
    assert len(CASES) == 5
    assert any("--why" in command for command, _ in CASES)
    assert any("--instances" in command for command, _ in CASES)
