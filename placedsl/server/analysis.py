"""The diagnostics of a text, and what it means as far as that can be told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from placedsl.api.spec import Spec
from placedsl.diagnostics import Diagnostic, InputError, PlacedslError, Source, Span
from placedsl.graph.graph import Graph
from placedsl.graph.readers import read as read_graph
from placedsl.graph.readers.sizes import Sizes
from placedsl.language.elaboration.elaborate import Elaborated, elaborate
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.parser import parse
from placedsl.server.reading import Place, Reading

#: Names of what stands in for a missing statement; nobody can write them.
STAND_IN = "·"
_ROUNDS = 8
_Stamp = tuple[int, int]


class Graphs:
    """Graph files read before, until they change (by time and size); the last few are kept."""

    def __init__(self, most: int = 4) -> None:
        self.most = most
        self.known: dict[tuple[Path, str | None, tuple[tuple[str, int], ...]], tuple[_Stamp, Graph]] = {}

    def read(self, path: Path, form: str | None = None, sizes: Sizes | None = None) -> Graph:
        """The graph of a file; raises what the readers raise."""
        key = (path, form, tuple((name, size.value) for name, size in (sizes or {}).items()))
        try:
            status = path.stat()
        except OSError:
            self.known.pop(key, None)
            return read_graph(path, form, sizes)
        stamp = (status.st_mtime_ns, status.st_size)
        found = self.known.pop(key, None)
        if found is None or found[0] != stamp:
            found = (stamp, read_graph(path, form, sizes))
        self.known[key] = found  # the latest is last
        while len(self.known) > self.most:
            self.known.pop(next(iter(self.known)))
        return found[1]


@dataclass(frozen=True)
class Analysis:
    """What is wrong with a text, and its meaning; without what is wrong, where something is."""

    diagnostics: tuple[Diagnostic, ...]
    elaborated: Elaborated | None


def analyse(reading: Reading, folder: Path, graphs: Graphs) -> Analysis:
    """Check a text as ``placedsl check`` does: syntax, names, types, units, data, and that it can be stated.

    ``folder`` is where its file names start from.  Nothing is solved.
    """
    found: list[Diagnostic] = list(reading.errors)
    complete: Elaborated | None = None
    if not found and _is_library(reading.module):
        return Analysis((), None)
    if not found:
        try:
            complete = elaborate(reading.module, folder, read=graphs.read)
            Spec(complete).check()
        except InputError as problem:
            found += problem.diagnostics
        except PlacedslError as problem:
            found.append(Diagnostic(str(problem)))
    return Analysis(tuple(found), complete or partial(reading.module, found, folder, graphs))


def _is_library(module: syntax.Module) -> bool:
    """Nothing but definitions, as the files of ``models/``: no spec, and nothing is missing for one."""
    parts = module.statements
    library = syntax.Formulation | syntax.Alias | syntax.Part | syntax.Define | syntax.ConstraintDefinition
    return bool(parts) and all(isinstance(s, library) for s in parts)


def partial(module: syntax.Module, found: Sequence[Diagnostic], folder: Path, graphs: Graphs) -> Elaborated | None:
    """What a spec means without the parts that something is wrong with; None where too little is left."""
    statements: list[Any] = list(module.statements)
    wrong = list(found)
    for _ in range(_ROUNDS):
        statements = _without(statements, [d.span for d in wrong if d.span is not None], module.source)
        try:
            return elaborate(syntax.Module(module.source, tuple(_completed(statements))), folder, read=graphs.read)
        except InputError as problem:
            wrong = list(problem.diagnostics)
        except PlacedslError:
            return None
    return None


def offsets(span: Span) -> Place:
    """Character offsets of a span in its text."""
    start = 0
    for _ in range(span.line - 1):
        start = span.source.text.find("\n", start) + 1
    return start + span.column - 1, start + span.column - 1 + span.length


def _without(statements: list[Any], spans: Iterable[Span], source: Source) -> list[Any]:
    """The statements without the smallest parts that the spans lie in; errors elsewhere are those of the graph file."""
    for span in spans:
        if span.source != source:
            statements = [s for s in statements if not isinstance(s, syntax.GraphFile)]
            continue
        place = offsets(span)[0]
        # Where a statement ends its syntax does not say; it ends where the next one begins.
        holder = max((s for s in statements if s.at[0] <= place), key=lambda s: s.at, default=None)
        if holder is not None:
            statements = [r for s in statements for r in ([s] if s is not holder else _pruned(s, place))]
    return statements


def _pruned(statement: Any, place: int) -> list[Any]:
    """A statement without the entry, rule or graph item at a place; none where that is all of it."""
    for field in ("block", "options", "rules", "items"):
        parts = () if isinstance(statement, syntax.Variable) else getattr(statement, field, ())
        holder = max((p for p in parts if p.at[0] <= place), key=lambda p: p.at, default=None)
        whole = field in ("items", "options")  # with parts of their own
        if holder is None or (not whole and place >= holder.at[1]):
            continue
        kept = _pruned(holder, place) if whole else []
        return [replace(statement, **{field: tuple(r for p in parts for r in ([p] if p is not holder else kept))})]
    return []


def _completed(statements: list[Any]) -> list[Any]:
    """With a stand-in for each statement that no spec can be without."""
    empty = [s for s in statements if isinstance(s, syntax.GraphInline) and not s.items]
    out = [s for s in statements if s not in empty]
    graphs = (syntax.GraphFile, syntax.GraphInline)
    for one in _stand_ins():
        kinds = graphs if isinstance(one, graphs) else (type(one),)
        if not any(isinstance(s, kinds) for s in out):
            out.append(one)
    return out


@lru_cache(maxsize=1)
def _stand_ins() -> tuple[syntax.Statement, ...]:
    text = f"""graph {{
        node "{STAND_IN}" {{ time = 1 s }}
    }}
    device "{STAND_IN}": host
    interconnect {{ bandwidth = 1 B/s }}
    minimize devices_used"""
    return parse(Source("", text)).statements
