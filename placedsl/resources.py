"""Where the grammar and the formulations lie: inside the wheel, or at the top of a checkout."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=4)
def folder(name: str) -> Path:
    """The folder ``grammars`` or ``models`` that belongs to this installation."""
    here = Path(__file__).resolve().parent
    for candidate in (here / name, here.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"this installation of placedsl lacks its '{name}' folder: install it again")


@lru_cache(maxsize=1)
def grammar_text() -> str:
    """The text of the grammar."""
    return (folder("grammars") / "place.lark").read_text(encoding="utf-8")


def model_files() -> list[Path]:
    """The formulations and constraint definitions that come with placedsl, sorted by name."""
    return sorted(folder("models").glob("*.place"))
