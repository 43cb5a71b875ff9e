"""A stand-in for the program that Scotch brings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def partitioner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for Scotch's program that deals vertices out in turn; the folder where it notes what it is given."""
    fake = tmp_path / "scotch_gpart"
    seen = tmp_path / "seen"
    fake.write_text(
        f'#!/bin/sh\n(echo "$1"; cat "$2") > "{seen}"\n'
        'awk -v parts="$1" \'NR == 2 { print $1; for (i = 0; i < $1; i++) print i, i % parts }\' "$2" > "$3"\n',
        encoding="utf-8",
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path
