"""The commands and the program of docs/timelines.md print what stands beneath them, and the page names every option."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from support.paths import ROOT

from placedsl.cli.main import main
from placedsl.cli.timing import timeline
from placedsl.simulation.pipeline import SCHEDULES

TEXT = (ROOT / "docs" / "timelines.md").read_text(encoding="utf-8")
FILE = re.compile(r"^<!-- file: ([\w.]+) -->\n```[\w-]+\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```\n```text\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the page, in the current folder."""
    for name, text in FILE.findall(TEXT):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = CONSOLE.findall(TEXT)
    assert len(shown) == 6
    for command, text in shown:
        assert main(shlex.split(command)[1:]) == 0
        assert [line.split() for line in capsys.readouterr().out.splitlines()] == [x.split() for x in text.splitlines()]
    for name in ("timeline.svg", "timeline-shared.svg", "timeline-plan.svg", "timeline-one-sample.svg"):
        assert (folder / "docs" / "pictures" / name).read_text(encoding="utf-8").startswith("<?xml")


def test_the_programs(capsys: pytest.CaptureFixture[str]) -> None:
    programs = PYTHON.findall(TEXT)
    assert len(programs) == 2
    for code, text in programs:
        exec(compile(code, "timelines.md", "exec"), {"__name__": "__main__"})
        assert capsys.readouterr().out == text


def test_every_option_and_schedule_is_on_the_page() -> None:
    quoted = " ".join(re.findall(r"`([^`\n]+)`", TEXT))
    options = [o for p in timeline.params if isinstance(p, click.Option) for o in p.opts]
    assert [name for name in (*options, *SCHEDULES) if name not in quoted] == []
