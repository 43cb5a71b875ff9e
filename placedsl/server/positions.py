"""Character offsets of a text as the protocol counts them: lines, and code units within a line."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

_LINE_END = re.compile(r"\r\n|\n|\r")
_UNITS: dict[str, Callable[[str], int]] = {
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "utf-16": lambda text: len(text) + sum(ord(c) > 0xFFFF for c in text),
    "utf-32": len,
}


class Positions:
    """Offsets of one text to (line, character) and back, both from 0.

    ``encoding`` is what client and server agreed to count: utf-16 (the protocol's default), utf-8 or utf-32.
    """

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self.units = _UNITS[encoding]
        ends = [m.span() for m in _LINE_END.finditer(text)]
        self.starts = [0, *(stop for _, stop in ends)]
        self.stops = [*(start for start, _ in ends), len(text)]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and character of an offset; past the ends is at the ends."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self.starts, offset) - 1
        return line, self.units(self.text[self.starts[line] : min(offset, self.stops[line])])

    def offset(self, line: int, character: int) -> int:
        """The offset of a place; past the end of a line is its end, past the last line the end of the text."""
        if line < 0:
            return 0
        if line >= len(self.starts):
            return len(self.text)
        start, stop = self.starts[line], self.stops[line]
        content = self.text[start:stop]
        if content.isascii():
            return start + max(0, min(character, len(content)))
        counted = 0
        for i, letter in enumerate(content):
            if counted >= character:
                return start + i
            counted += self.units(letter)
        return stop
