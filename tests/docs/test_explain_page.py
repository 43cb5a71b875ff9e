"""docs/explain.md shows what the command prints (seconds apart), and names every key of the JSON."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from support.paths import ROOT
from support.shown_output import settled

from placedsl import loads
from placedsl.cli.main import main

TEXT = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
FILE = re.compile(r"^<!-- file: ([\w.]+) -->\n```[\w-]+\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the page."""
    for name, text in FILE.findall(TEXT):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plain(text: str) -> list[str]:
    """Line by line, without what grounding took."""
    return settled(text).split("\n")


def test_the_page_shows_what_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ((command, shown),) = CONSOLE.findall(TEXT)
    assert main(shlex.split(command)[1:]) == 0
    printed = capsys.readouterr().out
    assert plain(printed) == plain(shown)
    assert len(plain(printed)[-3]) <= 120
    assert loads(shown).explain(solver="highs").split("# graph")[0] == shown.split("# graph")[0]


def test_every_key_is_on_the_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "staged.place", "--data", "prices.json", "--solver", "highs", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    table = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", TEXT, re.MULTILINE))
    assert table.keys() == told.keys()
    for key in ("dynamic_programming", "program"):
        assert told[key].keys() <= set(re.findall(r"`(\w+)`", table[key]))
    for key in ("parts", "lowerings", "warnings"):
        assert told[key]
        assert told[key][0].keys() <= set(re.findall(r"`(\w+)`", table[key]))
