"""Folders of the checkout, and the environment of child processes that import placedsl and these helpers."""

from __future__ import annotations

import os
from pathlib import Path

import placedsl

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"


def child_environment() -> dict[str, str]:
    """The environment in which a child process imports the placedsl under test, and ``support``."""
    package = Path(placedsl.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(package), str(ROOT / "tests")))}
