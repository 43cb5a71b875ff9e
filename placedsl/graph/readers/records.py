"""Reading fields out of JSON records, with every wrong one reported at its place."""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Mapping
from typing import Any

from placedsl.diagnostics import Diagnostic, InputError, Source, Span, nearest
from placedsl.graph.readers.json_places import place_of
from placedsl.graph.readers.json_text import parsed

#: So many defects are told; a file with more is wrong as a whole.
_MOST = 100
_LARGEST = sys.float_info.max
_EXPECTED = "a finite number, 0 or more, is expected"
_WORDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


def word(value: object) -> str:
    """What a JSON value is, in words."""
    return _WORDS.get(type(value), "a number")


class Document:
    """A parsed JSON text; ``found`` collects what is wrong with it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: list[Diagnostic] = []
        #: Where keys are missing that misspelt ones stand for, which are told of already.
        self.meant: set[tuple[str | int, ...]] = set()
        self.root: Any = parsed(source)
        if not isinstance(self.root, dict):
            raise InputError([Diagnostic(f"an object is expected, this is {word(self.root)}", source.whole())])

    def span(self, *path: str | int) -> Span:
        """Where the value under this path stands."""
        return place_of(self.source, path)

    def error(self, path: tuple[str | int, ...], message: str, hint: str = "") -> None:
        """Something is wrong with the value under this path; raises when there is too much."""
        self.found.append(Diagnostic(message, self.span(*path), hint))
        if len(self.found) >= _MOST:
            self.stop()

    def missing(self, path: tuple[str | int, ...], key: str, message: str, hint: str = "") -> None:
        """An object has no such key: told where no misspelt one has been told of."""
        if (*path, key) not in self.meant:
            self.error(path, message, hint)

    def stop(self) -> None:
        """Raise what was found so far, if anything."""
        if self.found:
            raise InputError(self.found)

    def records(self, name: str) -> list[Mapping[str, Any]]:
        """The list of objects under a key."""
        value = self.root.get(name)
        if not isinstance(value, list):
            what = "is missing" if name not in self.root else f"is {word(value)}"
            self.missing((), name, f"'{name}' {what}: a list is expected", nearest(name, self.root))
            self.stop()
            return []
        for i, entry in enumerate(value):
            if not isinstance(entry, dict):
                self.error((name, i), f"an object is expected, this is {word(entry)}")
        self.stop()
        return value

    def number(
        self, path: tuple[str | int, ...], record: Mapping[str, Any], key: str, default: float | None = None
    ) -> float:
        """A finite number, 0 or more (0 is given back for what was reported); ``default`` where it may be absent."""
        value = record.get(key, default)
        if type(value) in (float, int) and 0 <= value <= _LARGEST:
            return float(value)
        if value is None and key not in record:
            self.missing(path, key, f"this has no '{key}'", nearest(key, record))
            return 0.0
        return self.amount((*path, key), value, key)

    def amount(self, path: tuple[str | int, ...], value: object, name: str) -> float:
        """The value under a path as a finite number, 0 or more; 0 is given back for what was reported."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.error(path, f"'{name}' is a number, this is {word(value)}", _EXPECTED)
            return 0.0
        try:
            found = float(value)
        except OverflowError:  # a whole number of hundreds of digits
            found = math.inf
        if not 0 <= found < math.inf:
            what = "not a number" if math.isnan(found) else "negative" if found < 0 else "infinite, or too large"
            self.error(path, f"'{name}' is {what}", _EXPECTED)
            return 0.0
        return found

    def identifier(self, path: tuple[str | int, ...], record: Mapping[str, Any], key: str) -> int | str:
        """An id: a whole number or a text."""
        value = record.get(key)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int | str):
            if key not in record:
                self.missing(path, key, f"this has no '{key}'", nearest(key, record))
            else:
                self.error((*path, key), f"'{key}' is a whole number or a text, this is {word(value)}")
            return ""
        return value

    def truth(self, path: tuple[str | int, ...], record: Mapping[str, Any], key: str, default: bool) -> bool:
        """true, false, 1 or 0."""
        value = record.get(key, default)
        if value not in (True, False, 0, 1):
            self.error((*path, key), f"'{key}' is true or false, this is {word(value)}")
        return bool(value)

    def text(self, path: tuple[str | int, ...], record: Mapping[str, Any], key: str, default: str) -> str:
        """A text."""
        value = record.get(key, default)
        if not isinstance(value, str):
            self.error((*path, key), f"'{key}' is a text, this is {word(value)}")
            return default
        return value

    def known(self, path: tuple[str | int, ...], record: Mapping[str, Any], keys: tuple[str, ...]) -> None:
        """Report keys that mean nothing."""
        for key in record:
            if key not in keys:
                left = [known for known in keys if known not in record]
                self.meant.update((*path, close) for close in difflib.get_close_matches(key, left, n=1))
                self.error((*path, key), f"'{key}' means nothing here", nearest(key, left))
