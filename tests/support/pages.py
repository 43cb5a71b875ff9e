"""HTML pages read back: balanced elements, attributes, texts, islands of JSON."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import placedsl

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


def large_answer(folder: Path, nodes: int) -> tuple[placedsl.api.spec.Spec, placedsl.planner.answer.Answer]:
    """A chain of so many nodes, ten a layer, in eight stages; nothing searched for them."""
    made = [
        {"id": f"model.layers.{k // 10}.operator{k % 10}", "time": 1 + k % 7, "memory": 4096 + k, "output": 64,
         "attributes": {"layer": f"model.layers.{k // 10}", "module": f"model.layers.{k // 10}.mlp"}}
        for k in range(nodes)
    ]  # fmt: skip
    edges = [{"from": a["id"], "to": b["id"]} for a, b in pairwise(made)]
    graph = {"format": "placedsl-graph", "version": 1, "time_unit": "ms", "nodes": made, "edges": edges}
    (folder / "g.json").write_text(json.dumps(graph), encoding="utf-8")
    text = 'graph from "g.json"\ndevice gpu[8]: accelerator\ninterconnect { bandwidth = 1 GiB/s }\n'
    spec = placedsl.loads(text + "minimize time_per_sample\n", folder)
    placed = {node["id"]: f"gpu[{1 + k * 8 // nodes}]" for k, node in enumerate(made)}
    found = spec.evaluate(placed)
    places = tuple(k * 8 // nodes for k in range(nodes))
    answer = placedsl.planner.answer.Answer(
        spec.problem, "ended", "", places, found, (0.0,), "none", "", 0,
        {"read": 0.0, "build": 0.0, "solve": 0.0, "verify": 0.0, "total": 0.0}, {},
    )  # fmt: skip
    return spec, answer
