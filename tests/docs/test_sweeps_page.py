"""The commands of docs/sweeps.md print what stands beneath them (seconds apart), and the page names what there is."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest
from support.paths import ROOT
from support.shown_output import settled

from placedsl.cli.main import main
from placedsl.cli.sweeping import sweep
from placedsl.sweeps.runs import FIELDS
from placedsl.sweeps.table import RESULTS

TEXT = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
FILE = re.compile(r"^<!-- file: ([\w.]+) -->\n```[\w-]+\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def plain(text: str) -> list[list[str]]:
    """The words of each line, without the seconds at its end."""
    return [line.split() for line in settled("\n".join(line.rstrip() for line in text.splitlines())).splitlines()]


@pytest.mark.parametrize(("command", "shown"), CONSOLE.findall(TEXT), ids=["product", "plan"])
def test_command(
    command: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(ROOT / "examples" / "kv-cache.place", tmp_path)
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "data")
    for name, text in FILE.findall(TEXT):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 0
    assert plain(capsys.readouterr().out) == plain(shown)


def test_every_option_and_column_is_on_the_page() -> None:
    quoted = " ".join(re.findall(r"`([^`\n]+)`", TEXT))
    options = [o for p in sweep.params if isinstance(p, click.Option) for o in p.opts]
    assert [o for o in options if o not in quoted] == []
    assert [name for name in (*FIELDS, *RESULTS) if not re.search(rf"\b{name}\b", quoted)] == []
