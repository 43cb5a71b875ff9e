"""Minimal sets of parts that cannot hold together, by divide and conquer and by deletion.

Whoever answers ``together`` may also say None for "not known"; the set is then still one that cannot hold
together, but perhaps not a minimal one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Part = TypeVar("Part")
Together = Callable[[Sequence[Part]], bool | None]


def minimal(parts: Sequence[Part], together: Together[Part]) -> tuple[list[Part], bool]:
    """Of parts that cannot hold together, some that cannot and of which none can be spared.

    The second value says whether that is proven.  Halves are tried first (Junker's QuickXplain: about k log(n/k)
    questions for k of n parts), and then each part of the outcome is left out once, so that nothing rests on the
    assumption that fewer parts are easier to satisfy.
    """
    found = _halved([], False, list(parts), together)
    if len(found) < len(parts) and together(found) is not False:
        found = list(parts)
    proven, waiting = True, list(found)
    while waiting:
        part = waiting.pop()
        rest = [p for p in found if p is not part]
        held = together(rest)
        if held is False:
            found, waiting, proven = rest, list(rest), True
        proven = proven and held is not None
    return found, proven


def _halved(background: list[Part], grown: bool, parts: list[Part], together: Together[Part]) -> list[Part]:
    """Those of the parts that are needed beside the background, with which they cannot hold together."""
    if grown and together(background) is False:
        return []
    if len(parts) < 2:
        return parts
    first, second = parts[: len(parts) // 2], parts[len(parts) // 2 :]
    needed = _halved([*background, *first], True, second, together)
    return _halved([*background, *needed], bool(needed), first, together) + needed
