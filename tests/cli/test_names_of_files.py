"""Names that the system refuses, of files and of the folders that they are in: a diagnostic, wherever they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from placedsl.cli.main import main

LONG = "x" * 5000
NAMES = [LONG, f"{LONG}/a.json", f"a.json/{LONG}", f"{LONG}/{LONG}", "a/" * 3000 + "b"]
SPEC = "graph { node a { time = {accelerator: 1 ms} } }\ndevice gpu: accelerator\nminimize time_per_sample\n"


@pytest.mark.parametrize("name", NAMES, ids=["file", "folder", "within a file", "both", "deep"])
@pytest.mark.parametrize("place", ["graph", "profile", "import", "spec", "data", "answer", "certificate"])
def test_names_that_are_too_long(
    name: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text("{}", encoding="utf-8")
    Path("a.place").write_text(SPEC, encoding="utf-8")
    texts = {
        "graph": SPEC.replace(SPEC.partition("\n")[0], f'graph from "{name}"'),
        "profile": SPEC.replace(SPEC.partition("\n")[0], f'graph from "a.json" {{ profile = "{name}" }}'),
        "import": f'import "{name}"\n{SPEC}',
    }
    commands = {
        "spec": ["check", name], "data": ["check", "a.place", "--data", name],
        "answer": ["verify", name, "a.json"], "certificate": ["verify", "a.json", name],
    }  # fmt: skip
    if place in texts:
        Path("b.place").write_text(texts[place], encoding="utf-8")
    assert main(commands.get(place, ["check", "b.place"])) == 1
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert "error: " in told
