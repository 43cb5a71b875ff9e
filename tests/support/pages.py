"""HTML pages read back: balanced elements, attributes, texts, islands of JSON."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

_VOID = frozenset({"meta", "input", "br", "hr", "img", "link"})


class Page(HTMLParser):
    """The elements of a page; AssertionError where they are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[tuple[str, dict[str, str]]] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = tag, {name: value or "" for name, value in attrs}
        assert len(own[1]) == len(attrs), f"an attribute of {tag} stands twice"
        self.elements.append(own)
        if tag not in _VOID:
            self._open.append(own)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open
        assert self._open[-1][0] == tag, (tag, self._open[-1])
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.append((self._open[-1][1].get("id", self._open[-1][0]), data))

    def named(self, key: str) -> list[str]:
        """The values of an attribute, in order."""
        return [attributes[key] for _, attributes in self.elements if key in attributes]

    def island(self, own: str) -> Any:
        """The JSON in a script element."""
        return json.loads("".join(text for name, text in self.texts if name == own))

    def words(self) -> str:
        """All text but scripts and styles."""
        hidden = {"script", "style", "answer", "chart"}
        return " ".join(" ".join(text for name, text in self.texts if name not in hidden).split())
