"""Each folder of ``examples/`` with a page: its commands print what stands beneath them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import ROOT

pytestmark = pytest.mark.rotates(2)

FOLDERS = sorted(page.parent for page in (ROOT / "examples").glob("*/README.md"))
CONSOLE = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def said(command: str, folder: Path) -> str:
    """What a command writes to both streams, one space between words."""
    program, *words = shlex.split(command)
    assert program == "placedsl"
    done = subprocess.run(
        [sys.executable, "-m", "placedsl", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=300, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return " ".join(done.stdout.split())


def test_there_are_folders() -> None:
    assert len(FOLDERS) >= 5


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_commands_print_what_the_page_shows(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / folder.name
    shutil.copytree(folder, own)
    commands = CONSOLE.findall((folder / "README.md").read_text(encoding="utf-8"))
    assert commands
    for command, shown in commands:
        printed = said(command, own)
        for line in shown.splitlines():
            assert " ".join(line.split()) in printed, (command, printed)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_files_of_a_page_are_there(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (folder / target).exists(), target
    assert f"({folder.name}/README.md)" in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")


def test_the_network_is_that_of_the_paper() -> None:
    """He et al. 2016, table 1: 3.8 billion multiplications; 25.5 million weights."""
    import placedsl

    graph = placedsl.load(ROOT / "examples" / "resnet-50" / "pipeline.place").problem.graph
    assert graph.memory.sum() / 4 == pytest.approx(25.53e6, rel=1e-3)
    assert graph.attributes["flops"].sum() / 64 == pytest.approx(2 * 4.1e9, rel=0.02)


def test_the_network_of_the_phone_is_that_of_the_paper() -> None:
    """Sandler et al. 2018: 300 million multiplications, 3.4 million weights."""
    import placedsl

    graph = placedsl.load(ROOT / "examples" / "phone" / "split.place").problem.graph
    assert graph.attributes["flops"].sum() / 2 == pytest.approx(300e6, rel=0.01)
    assert graph.memory.sum() == pytest.approx(3.4e6, rel=0.04)
