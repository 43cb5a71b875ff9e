"""Which versions of what took part, as far as that is known without importing anything."""

from __future__ import annotations

import platform
from importlib import metadata


def version(package: str) -> str | None:
    """The installed version of a distribution, or None."""
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
