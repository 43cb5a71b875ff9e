"""What a path stands for: nothing where the system refuses to say, as for a name that is too long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def is_file(path: Path) -> bool:
    """Whether it is a regular file, or leads to one."""
    return _said(path.is_file)


def is_folder(path: Path) -> bool:
    """Whether it is a folder, or leads to one."""
    return _said(path.is_dir)


def exists(path: Path) -> bool:
    """Whether there is anything."""
    return _said(path.exists)


def beside(path: Path) -> list[Path]:
    """What is in the same folder; nothing where there is no such folder, or the system does not tell."""
    try:
        return list(path.parent.iterdir())
    except OSError:
        return []


def _said(ask: Callable[[], bool]) -> bool:
    try:
        return ask()
    except OSError:
        return False
