"""Values of a JSON document that somebody else wrote, asked for with a type and refused at their place."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.graph.readers.json_places import place_of
from placedsl.graph.readers.records import word


@dataclass(frozen=True)
class Document:
    """What is read: its name in messages, the keys that lead to it in the text, and where its form is described."""

    name: str
    path: tuple[str | int, ...]
    hint: str


@dataclass(frozen=True)
class Entry:
    """A value in a JSON document, and the keys and positions that lead to it.

    Whatever is asked of it raises InputError, at its place, where the value is of another type.
    """

    value: object
    path: tuple[str | int, ...]
    source: Source | None
    document: Document

    def wrong(self, what: str) -> InputError:
        """What is wrong with the value."""
        span = None if self.source is None else place_of(self.source, (*self.document.path, *self.path))
        message = f"{self.document.name} cannot be read: {self._name()} {what}"
        return InputError([Diagnostic(message, span, self.document.hint)])

    def _name(self) -> str:
        """As in ``'stages[0].devices'``."""
        steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path]
        return f"'{''.join(steps).removeprefix('.')}'" if steps else "it"

    def _expected(self, what: str) -> InputError:
        return self.wrong(f"is {word(self.value)}: {what} is expected")

    def fields(self) -> Mapping[str, Entry]:
        """The entries of an object."""
        if not isinstance(self.value, Mapping):
            raise self._expected("an object")
        return {
            str(key): Entry(value, (*self.path, str(key)), self.source, self.document)
            for key, value in self.value.items()
        }

    def at(self, key: str) -> Entry:
        """An entry that an object has."""
        found = self.fields().get(key)
        if found is None:
            raise Entry(None, (*self.path, key), self.source, self.document).wrong("is missing")
        return found

    def get(self, key: str) -> Entry | None:
        """An entry that an object may have."""
        return self.fields().get(key)

    def each(self) -> Iterator[Entry]:
        """The entries of a list."""
        if not isinstance(self.value, list | tuple):
            raise self._expected("a list")
        return (Entry(value, (*self.path, i), self.source, self.document) for i, value in enumerate(self.value))

    def some(self) -> list[Entry]:
        """The entries of a list that is not empty."""
        found = list(self.each())
        if not found:
            raise self.wrong("is empty: one entry at least is expected")
        return found

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            raise self._expected("a text")
        return self.value

    def one_of(self, words: tuple[str, ...]) -> Any:
        """One of these texts."""
        if not isinstance(self.value, str) or self.value not in words:
            raise self.wrong(f"is one of {', '.join(words)}")
        return self.value

    def id(self) -> int | str:
        """A whole number or a text."""
        return self.value if isinstance(self.value, str) else self.whole("a whole number or a text")

    def whole(self, expected: str = "a whole number") -> int:
        """A whole number."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self._expected(expected)
        return self.value

    def positive(self) -> int:
        """A whole number, 1 or more."""
        if self.whole() < 1:
            raise self.wrong("is a whole number, 1 or more")
        return self.whole()

    def number(self) -> float:
        """A finite number."""
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self._expected("a number")
        if not abs(self.value) <= sys.float_info.max:
            raise self.wrong("is no finite number")
        return self.value

    def truth(self) -> bool:
        """true or false."""
        if not isinstance(self.value, bool):
            raise self._expected("true or false")
        return self.value
