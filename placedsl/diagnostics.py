"""Where something stands in a text, what is wrong with it, and how that is shown.

Everything that can be wrong with what a user wrote (a spec, a graph file, a placement)
is told as a :class:`Diagnostic`: one message, one place, what was expected, the nearest
known names.  Several are collected and raised together as :class:`InputError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

from placedsl.records import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the name under which it is known to the user (a path, ``<string>``).

    ``built`` says of a text that Python has built where in Python each line comes from: line number and place.
    ``data`` is what a file holds that is no text; its ``text`` is empty.
    """

    name: str
    text: str
    built: tuple[tuple[int, str], ...] = ()
    data: bytes = b""

    def line(self, number: int) -> str:
        """The line with this number (from 1), without its end; empty past the last."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""

    def lines(self) -> Iterator[tuple[str, Span]]:
        """Each line that is not blank, with the place of what is written in it."""
        for number, line in enumerate(self.text.split("\n"), 1):
            if written := line.strip():
                yield line, Span(self, number, line.index(written) + 1, len(written))

    def span(self, start: int, end: int | None = None) -> Span:
        """The span from character offset ``start`` to ``end`` (default: one character)."""
        start = max(0, min(start, len(self.text)))
        line = self.text.count("\n", 0, start) + 1
        column = start - (self.text.rfind("\n", 0, start) + 1) + 1
        stop = start + 1 if end is None else max(end, start + 1)
        return Span(self, line, column, stop - start)

    def whole(self) -> Span:
        """The first character: the place of what concerns the text as a whole."""
        return Span(self, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a source: line and column from 1, and how many characters are meant."""

    source: Source
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    def __repr__(self) -> str:
        return f"Span({self})"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong: ``message`` at ``span``; ``hint`` says what would be right."""

    message: str
    span: Span | None = None
    hint: str = ""

    def render(self) -> str:
        """The diagnostic as the terminal shows it: place, message, line, underline, hint."""
        if self.span is None:
            return f"error: {self.message}" + (f"\n  {self.hint}" if self.hint else "")
        text = self.span.source.line(self.span.line)
        start = self.span.column - 1
        # A very long line (a JSON file on one line) is shown around the place only.
        shown, offset = text, 0
        if len(text) > 160:
            offset = max(0, start - 40)
            shown = text[offset : offset + 120]
        shown = shown.replace("\t", " ")
        caret = max(0, start - offset)
        length = max(1, min(self.span.length, max(1, len(shown) - caret)))
        gutter = f"{self.span.line:>5} | "
        out = f"{self.span}: error: {self.message}\n{gutter}{shown}\n"
        out += " " * (len(gutter) - 2) + "| " + " " * caret + "^" * length
        if self.hint:
            out += f"\n        {self.hint}"
        place = dict(self.span.source.built).get(self.span.line)
        if place:
            out += f"\n        built at {place}"
        return out


class PlacedslError(Exception):
    """Every error that placedsl raises on purpose; ``exit_code`` is what the command returns."""

    exit_code = 70


class InputError(PlacedslError):
    """A spec, graph or placement that cannot be used, with every diagnostic found in it."""

    exit_code = 1

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__("\n\n".join(d.render() for d in self.diagnostics))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[Diagnostic, ...]]]:
        """From one process to another, as what it was made of."""
        return type(self), (self.diagnostics,)


class UsageError(PlacedslError):
    """A command or call that asks for something that does not exist."""

    exit_code = 2


class LimitError(PlacedslError):
    """A limit was reached before there was any answer."""

    exit_code = 5


def misspelt(word: str, known: Iterable[str]) -> str | None:
    """The known word that this one is but for a slip: a letter too many, too few or another, or two in turn."""
    return next((name for name in sorted({str(k) for k in known}) if word != name and _one_slip(word, name)), None)


def _one_slip(word: str, name: str) -> bool:
    first = next((k for k, (a, b) in enumerate(zip(word, name, strict=False)) if a != b), min(len(word), len(name)))
    rest, other = word[first:], name[first:]
    return (other[:2] == rest[1::-1] and other[2:] == rest[2:]) or rest[1:] in (other, other[1:]) or rest == other[1:]


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint naming the known words nearest to ``word`` ("did you mean …"), or the known ones.

    Returns an empty text when nothing is known.
    """
    names = sorted({str(k) or '""' for k in known})
    close = difflib.get_close_matches(word, names, n=2, cutoff=0.6)
    close = close or [name for name in names if name.lower() == word.lower()]
    if close:
        return "did you mean " + " or ".join(f"'{c}'" for c in close) + "?"
    if not names:
        return ""
    shown: Sequence[str] = names[:12]
    more = f" … ({len(names)} in all)" if len(names) > 12 else ""
    return "known here: " + ", ".join(shown) + more
