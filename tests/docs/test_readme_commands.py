"""The commands of the README from a model to a setting of its runtime print what is shown there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.commands import run
from support.paths import ROOT

pytestmark = pytest.mark.rotates(2)


def test_from_a_model_to_a_setting(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    part = text.split("## From a model to a setting of its runtime\n", 1)[1].split("\n## ", 1)[0]
    block, shown = re.findall(r"^```(?:console)?\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    first, *commands = [line.removeprefix("$ ") for line in block.splitlines()]
    assert first.startswith("cd ")
    folder = tmp_path / "example"
    shutil.copytree(ROOT / first.removeprefix("cd "), folder)
    assert 1 <= len(commands) <= 4
    printed = ""
    for command in commands:
        program, *words = command.split()
        assert program == "placedsl"
        ended = run(*words, folder=folder)
        assert ended.returncode == 0, ended.stderr
        printed = ended.stdout
    assert printed == shown
    assert (folder / "page.html").stat().st_size > 10_000
