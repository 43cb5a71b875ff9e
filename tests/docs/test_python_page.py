"""docs/python.md, block by block: each prints what stands beneath it."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.paths import ROOT

PAGE = ROOT / "docs" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def run(block: str, names: dict[str, Any]) -> str:
    """What a block prints; its lines can be had by its name, as in a notebook."""
    linecache.cache["python.md"] = (len(block), None, block.splitlines(keepends=True), "python.md")
    paper = io.StringIO()
    with contextlib.redirect_stdout(paper):
        exec(compile(block, "python.md", "exec"), names)
    return paper.getvalue()


def test_every_block_prints_what_stands_beneath_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) >= 9
    for block, shown in blocks:
        assert [line.rstrip() for line in run(block, names).rstrip().split("\n")] == [
            line.rstrip() for line in shown.rstrip().split("\n")
        ]


def test_the_plug_in_page_quotes_its_examples() -> None:
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^```(?:python|toml)\n(.*?)^```\n", page, re.MULTILINE | re.DOTALL)
    sources = [p for p in (ROOT / "examples" / "plugins").rglob("*") if p.suffix in (".py", ".toml")]
    files = [p.read_text(encoding="utf-8") for p in sources]
    assert len(quoted) == 2
    assert all(any(block in text for text in files) for block in quoted)
