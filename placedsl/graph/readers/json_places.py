"""Where a value stands in a JSON text, found only when there is something to say about it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from placedsl.diagnostics import Source, Span

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def place_of(source: Source, path: Sequence[str | int]) -> Span:
    """The span of the value under ``path`` (keys and positions); of the deepest part that exists."""
    text = source.text
    at = _skip(text, 0)
    for step in path:
        found = _member(text, at, step) if isinstance(step, str) else _element(text, at, step)
        if found is None:
            break
        at = found
    if at >= len(text):
        return source.whole()
    end = at + 1 if text[at] in "[{" else _DECODER.raw_decode(text, at)[1]
    return source.span(at, end)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _member(text: str, at: int, name: str) -> int | None:
    if text[at] != "{":
        return None
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        if key == name:
            return at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return None


def _element(text: str, at: int, position: int) -> int | None:
    if text[at] != "[":
        return None
    at = _skip(text, at + 1)
    while text[at] != "]":
        if position == 0:
            return at
        position -= 1
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return None
