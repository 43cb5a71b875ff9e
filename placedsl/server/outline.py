"""What a text declares, as a tree for the editor's outline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from placedsl.language.syntax import statements as syntax
from placedsl.server.reading import Place, Reading, place


@dataclass(frozen=True)
class Entry:
    """One line of the outline: where the whole of it stands, where its name stands, and what is in it."""

    name: str
    kind: str
    at: Place
    name_at: Place
    children: tuple[Entry, ...] = field(default=())


_KINDS = {
    "Param": "parameter", "SetOf": "set", "DeviceFamily": "device", "Node": "node",
    "ConstraintDefinition": "constraint", "Formulation": "formulation", "Variable": "variable", "Rule": "rule",
    "Define": "definition", "Cluster": "device", "Part": "part", "Alias": "formulation",
}  # fmt: skip


def outline(reading: Reading) -> list[Entry]:
    """The statements of a text that can be read."""
    statements = sorted(reading.module.statements, key=lambda s: s.at)
    # A statement ends before the next one begins, wherever its syntax says that it ends.
    return _entries(reading, statements, len(reading.source.text))


def _entries(reading: Reading, parts: Sequence[Any], end: int) -> list[Entry]:
    """One each, the last one up to ``end``."""
    ends = [*(part.at[0] for part in parts[1:]), end]
    out = [_entry(reading, part, stop) for part, stop in zip(parts, ends, strict=False)]
    return [entry for entry in out if entry is not None]


def _entry(reading: Reading, node: Any, end: int) -> Entry | None:
    if isinstance(node, syntax.Chain):
        return None
    start = node.at[0]
    stop = max([t.end for t in reading.tokens_in((start, end)) if t.type != "COMMENT"], default=node.at[1])
    at = (start, max(stop, node.at[1]))
    braces = [t.start for t in reading.tokens_in(at) if t.text == "}"]
    parts = getattr(node, "items", ()) if isinstance(node, syntax.GraphInline) else ()
    parts = parts or getattr(node, "rules", ()) or getattr(node, "clauses", ())
    inside = braces[-1] if braces and not isinstance(node, syntax.Subject | syntax.Tight) else at[1]
    children = tuple(_entries(reading, parts, inside))
    kind = _KINDS.get(type(node).__name__)
    word = getattr(node, "name", None)
    if kind is not None and isinstance(word, syntax.Word):
        return Entry(word.text or "?", kind, (min(at[0], word.at[0]), max(at[1], word.at[1])), place(word.at), children)
    heading = _heading(reading, at)
    return Entry(heading, "statement", at, (start, start + len(heading)), children) if heading else None


def _heading(reading: Reading, at: Place) -> str:
    """The first line of a statement up to its block."""
    line = reading.source.text[at[0] : at[1]].partition("\n")[0]
    return line.partition("{")[0].partition("#")[0].rstrip()
