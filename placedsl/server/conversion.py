"""What was found out of a text, in the types of the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from lsprotocol import types

from placedsl.diagnostics import Diagnostic, Source, Span
from placedsl.language.syntax import statements as syntax
from placedsl.server.analysis import offsets
from placedsl.server.completion import Completion
from placedsl.server.outline import Entry
from placedsl.server.positions import Positions
from placedsl.server.reading import Place, Reading, place
from placedsl.system import paths

_ITEM = types.CompletionItemKind
_ITEM_KINDS = {
    "keyword": _ITEM.Keyword, "parameter": _ITEM.Constant, "set": _ITEM.Class, "device": _ITEM.Module,
    "node": _ITEM.Value, "variable": _ITEM.Variable, "decision": _ITEM.Variable, "quantity": _ITEM.Function,
    "function": _ITEM.Function, "attribute": _ITEM.Field, "entry": _ITEM.Property, "unit": _ITEM.Unit,
    "file": _ITEM.File, "constraint": _ITEM.Interface, "word": _ITEM.EnumMember,
    "part": _ITEM.Class,
}  # fmt: skip
_SYMBOL = types.SymbolKind
_SYMBOL_KINDS = {
    "parameter": _SYMBOL.Constant, "set": _SYMBOL.Array, "device": _SYMBOL.Module, "node": _SYMBOL.Object,
    "constraint": _SYMBOL.Interface, "formulation": _SYMBOL.Class, "part": _SYMBOL.Class,
    "variable": _SYMBOL.Variable,
    "rule": _SYMBOL.Boolean, "definition": _SYMBOL.Function, "statement": _SYMBOL.Namespace,
}  # fmt: skip


def text_range(positions: Positions, at: Place) -> types.Range:
    """Offsets as a range."""
    return types.Range(*(types.Position(*positions.position(offset)) for offset in at))


def location(source: Source, at: Place, encoding: str) -> types.Location:
    """A place in a file."""
    return types.Location(Path(source.name).resolve().as_uri(), text_range(Positions(source.text, encoding), at))


def diagnostics(reading: Reading, found: Iterable[Diagnostic], encoding: str) -> list[types.Diagnostic]:
    """Diagnostics as ``placedsl check`` tells them: the message, and in the next line what would be right."""
    positions = Positions(reading.source.text, encoding)
    return [_diagnostic(reading, positions, one, encoding) for one in found]


def _diagnostic(reading: Reading, positions: Positions, one: Diagnostic, encoding: str) -> types.Diagnostic:
    message = f"{one.message}\n{one.hint}" if one.hint else one.message
    related = None
    if one.span is not None and one.span.source == reading.source:
        at = offsets(one.span)
    elif one.span is not None:
        # In a graph file, or in a file of models/: told where the spec names the graph.
        at = _graph_file(reading)
        message = f"{one.span}: {message}"
        related = _related(one.span, one.message, encoding)
    else:
        at = (0, max(1, reading.source.text.find("\n")))
    return types.Diagnostic(
        range=text_range(positions, at), message=message, severity=types.DiagnosticSeverity.Error, source="placedsl",
        related_information=related,
    )  # fmt: skip


def _graph_file(reading: Reading) -> Place:
    files = (place(s.path.at) for s in reading.module.statements if isinstance(s, syntax.GraphFile))
    return next(files, (0, max(1, reading.source.text.find("\n"))))


def _related(span: Span, message: str, encoding: str) -> list[types.DiagnosticRelatedInformation] | None:
    if not paths.exists(Path(span.source.name)):
        return None
    return [types.DiagnosticRelatedInformation(location(span.source, offsets(span), encoding), message)]


def completion_items(positions: Positions, found: Sequence[Completion]) -> list[types.CompletionItem]:
    """Completions in the order in which they were thought of."""
    return [
        types.CompletionItem(
            label=one.label,
            kind=_ITEM_KINDS.get(one.kind, _ITEM.Text),
            detail=one.detail,
            sort_text=f"{i:05}",
            filter_text=one.label,
            text_edit=types.TextEdit(text_range(positions, one.at), one.label),
        )
        for i, one in enumerate(found)
    ]


def document_symbols(positions: Positions, entries: Sequence[Entry]) -> list[types.DocumentSymbol]:
    """The outline."""
    return [
        types.DocumentSymbol(
            name=one.name,
            detail=one.kind,
            kind=_SYMBOL_KINDS[one.kind],
            range=text_range(positions, one.at),
            selection_range=text_range(positions, one.name_at),
            children=document_symbols(positions, one.children),
        )
        for one in entries
    ]


def replaced(positions: Positions, new: str) -> list[types.TextEdit]:
    """The edit that makes another text of one; lines that stay at its ends are left alone."""
    old = positions.text
    if new == old:
        return []
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    start = sum(map(len, before[:head]))
    stop = len(old) - sum(map(len, before[len(before) - tail :]))
    text = "".join(after[head : len(after) - tail])
    return [types.TextEdit(text_range(positions, (start, stop)), text)]
