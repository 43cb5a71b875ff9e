"""Plan files: combinations that are no product, in TOML (an entry is a product of its own) or CSV (a row a run)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from placedsl.diagnostics import Diagnostic, InputError, Source, Span, nearest
from placedsl.graph.readers import load
from placedsl.language.elaboration.external_values import parsed_toml
from placedsl.sweeps.runs import FIELDS, PARAMETER, ValueProblem, ranged, typed

#: Entries of a plan: the axes of each, and where it stands.
Entries = list[tuple[dict[str, tuple[str, ...]], Span]]


def read(path: Path) -> Entries:
    """The entries of a plan file; InputError with all that is wrong in it.  File names start from its folder."""
    source = load(path)
    if path.suffix == ".toml":
        entries, found = _toml(source)
    elif path.suffix == ".csv":
        entries, found = _csv(source)
    else:
        raise InputError([Diagnostic(f"'{path}' is no plan", None, "a plan is a .toml or a .csv file")])
    for axes, span in entries:
        for name, values in axes.items():
            found += _wrong(name, values, span)
    if not entries and not found:
        hint = 'as in [[run]] with spec = "a.place"' if path.suffix == ".toml" else "a heading, then a row a run"
        found.append(Diagnostic("the plan has no runs", source.whole(), hint))
    if found:
        raise InputError(found)
    for axes, _ in entries:
        for name in ("spec", "data"):
            if name in axes:
                axes[name] = tuple(str(path.parent / value) for value in axes[name])
    return entries


def _wrong(name: str, values: tuple[str, ...], span: Span) -> list[Diagnostic]:
    """What is wrong with the values of an axis that is no parameter."""
    out = []
    for value in values if name in FIELDS else ():
        try:
            typed(name, value)
        except ValueProblem as problem:
            out.append(Diagnostic(str(problem), span))
    return out


def _toml(source: Source) -> tuple[Entries, list[Diagnostic]]:
    root = parsed_toml(source)
    found = [
        Diagnostic(f"a plan has no '{name}'", _at(source, name, 0), nearest(name, ["run"]))
        for name in root.keys() - {"run"}
    ]
    listed = root.get("run", [])
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise InputError([Diagnostic("runs are written as [[run]]", source.whole())])
    entries: Entries = []
    start = 0
    for entry in listed:
        span = _at(source, "[[run]]", start)
        start = sum(len(line) + 1 for line in source.text.split("\n")[: span.line])
        axes: dict[str, tuple[str, ...]] = {}
        parameters = entry.get("set", {})
        pairs = [(name, value, name) for name, value in entry.items() if name != "set"]
        if not isinstance(parameters, Mapping):
            found.append(Diagnostic("'set' holds parameters", _at(source, "set", start), "as in set = { gpus = 4 }"))
        else:
            pairs += [(name, value, PARAMETER + name) for name, value in parameters.items()]
        for name, value, axis in pairs:
            place = _at(source, name, start)
            if axis not in FIELDS and not axis.startswith(PARAMETER):
                hint = nearest(name, [*FIELDS, "set"])
                found.append(Diagnostic(f"a run has no '{name}'", place, f"{hint}; parameters stand in set = {{ … }}"))
                continue
            try:
                axes[axis] = values(value)
            except ValueProblem as problem:
                found.append(Diagnostic(str(problem), place))
        entries.append((axes, span))
    return entries, found


def values(value: object) -> tuple[str, ...]:
    """The values of an entry: a value, a range as a text, or a list of both."""
    if isinstance(value, list):
        if not value:
            raise ValueProblem("the list is empty: at least one value is expected")
        return tuple(v for part in value for v in values(part))
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if isinstance(value, int | float):
        return (repr(value),)
    if isinstance(value, str):
        return ranged(value)
    raise ValueProblem("a number, a text, true or false is expected here, or a list of such")


def _at(source: Source, word: str, start: int) -> Span:
    """Where a word stands at the beginning of a line or after a blank, from a place on; else that place."""
    text = source.text
    for at in (text.find(word, start), text.find(word)):
        if at >= 0:
            return source.span(at, at + len(word))
    return source.span(start)


def _csv(source: Source) -> tuple[Entries, list[Diagnostic]]:
    lines = csv.reader(io.StringIO(source.text), skipinitialspace=True)
    heading: list[str] | None = None
    entries: Entries = []
    found: list[Diagnostic] = []
    while True:
        try:
            cells = next(lines, None)
        except csv.Error as problem:
            found.append(Diagnostic(f"this is not CSV: {problem}", Span(source, lines.line_num, 1)))
            break
        if cells is None:
            break
        span = Span(source, lines.line_num, 1, max(1, len(source.line(lines.line_num))))
        row = [cell.strip() for cell in cells]
        if not any(row):
            continue
        if heading is None:
            heading = [name if name in FIELDS or name.startswith(PARAMETER) else PARAMETER + name for name in row]
            for name in {name for name in row if row.count(name) > 1}:
                found.append(Diagnostic(f"the column '{name}' stands there twice", span))
            if "" in row:
                found.append(Diagnostic("a column has no name", span))
        elif len(row) != len(heading):
            found.append(Diagnostic(f"{len(row)} values are given for {len(heading)} columns", span))
        else:
            entries.append(({n: (value,) for n, value in zip(heading, row, strict=True) if value}, span))
    return entries, found
