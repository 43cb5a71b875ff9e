"""The text of a spec line by line, with what an answer says of its lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placedsl.language.syntax.pygments_lexer import PlaceLexer

#: Kinds of Pygments as classes of pages; what is none of these has no colour.
_CLASSES = (("Comment", "c"), ("Keyword.Type", "u"), ("Keyword", "k"), ("Literal.Number", "n"), ("Literal.String", "s"),
            ("Name.Function", "d"), ("Name.Builtin", "d"), ("Name.Variable", "d"))  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A line: its pieces as (class, text), what marks it (empty: nothing), and why, in words."""

    number: int
    pieces: tuple[tuple[str, str], ...]
    mark: str
    notes: tuple[str, ...]


def spec_lines(text: str, places: Mapping[str, int], document: Mapping[str, Any]) -> list[Line]:
    """Every line; ``places``: the lines of objectives and constraints in this text, by name."""
    marks = _marks(places, document)
    out, number, held = list[Line](), 1, list[tuple[str, str]]()
    for kind, piece in PlaceLexer(stripnl=False, ensurenl=False).get_tokens(text):
        shown = next((own for name, own in _CLASSES if str(kind).startswith(f"Token.{name}")), "")
        first, *further = piece.split("\n")
        held += [(shown, first)] if first else []
        for rest in further:
            out.append(_line(number, held, marks))
            number, held = number + 1, [(shown, rest)] if rest else []
    return [*out, _line(number, held, marks)] if held else out


def _line(number: int, pieces: list[tuple[str, str]], marks: Mapping[int, list[tuple[str, str]]]) -> Line:
    found = marks.get(number, [])
    order = ("conflict", "binding", "objective")
    mark = next((kind for kind in order if any(own == kind for own, _ in found)), "")
    return Line(number, tuple(pieces), mark, tuple(text for _, text in found))


def _marks(places: Mapping[str, int], document: Mapping[str, Any]) -> dict[int, list[tuple[str, str]]]:
    out: dict[int, list[tuple[str, str]]] = {}

    def mark(name: str, kind: str, text: str) -> None:
        if name in places:
            out.setdefault(places[name], []).append((kind, text))

    for one in (document.get("conflict") or {"constraints": []})["constraints"]:
        mark(one["name"], "conflict", f"{one['name']} is part of the conflict")
    for one in (document.get("why") or {"binding": []})["binding"]:
        if one["instances"]:
            count = f", {len(one['instances'])} of {one['of']} instances" if one["of"] > 1 else ""
            mark(one["name"], "binding", f"{one['name']} has no slack{count}")
    for goal in document["objectives"]:
        mark(goal["name"], "objective", f"objective {goal['name']}")
    return out
