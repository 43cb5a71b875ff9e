"""This installation: its grammar and formulations (inside the wheel, or at the top of a checkout), and its versions."""

from __future__ import annotations

import os
import platform
from functools import cache, lru_cache
from pathlib import Path


@lru_cache(maxsize=4)
def folder(name: str) -> Path:
    """The folder ``grammars`` or ``models`` that belongs to this installation."""
    here = Path(__file__).resolve().parents[1]
    for candidate in (here / name, here.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"this installation of placedsl lacks its '{name}' folder: install it again")


def import_root() -> str:
    """The folder that child processes need on ``sys.path`` to import this very placedsl."""
    return str(Path(__file__).resolve().parents[2])


@lru_cache(maxsize=1)
def grammar_text() -> str:
    """The text of the grammar."""
    return (folder("grammars") / "place.lark").read_text(encoding="utf-8")


def model_files() -> list[Path]:
    """The formulations and constraint definitions that come with placedsl, sorted by name."""
    return sorted(folder("models").glob("*.place"))


def cache_folder() -> Path | None:
    """The user's cache folder for placedsl, made if need be; None where there can be none."""
    chosen = os.environ.get("PLACEDSL_CACHE") or os.environ.get("XDG_CACHE_HOME")
    path = Path(chosen) / "placedsl" if chosen else Path.home() / ".cache" / "placedsl"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return path if os.access(path, os.W_OK) else None


@cache
def version(package: str) -> str | None:
    """The installed version of a distribution, or None."""
    # Not for every run: nothing else at the start of the program needs it.
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def package_version() -> str:
    """placedsl's own; a checkout that is not installed has none."""
    return version("placedsl") or "of a checkout that is not installed"


def versions() -> dict[str, str]:
    """placedsl's own version, Python's and numpy's."""
    own = {"placedsl": version("placedsl") or "0", "python": platform.python_version()}
    return own | {"numpy": version("numpy") or ""}
