"""The statements of a spec with all that it imports, and what is wrong with them as far as it is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.language.elaboration.imports import first_at, imported
from placedsl.language.syntax import statements as syntax

S = TypeVar("S", bound=syntax.Statement)


class SpecStatements:
    """The statements by kind.  ``found`` collects errors until :meth:`fail` raises them."""

    def __init__(self, module: syntax.Module, base: Path, held: Mapping[Path, Source]) -> None:
        self.module, self.held = module, held
        self.found: list[Diagnostic] = []
        self.texts = imported(module, base, self.found, held)

    def all(self, kind: type[S]) -> list[S]:
        """Those of one kind, in the order of the text."""
        return [s for s in self.texts.statements if isinstance(s, kind)]

    def one(self, kind: type[S], what: str, example: str) -> S | None:
        """The single statement of a kind; a missing or second one is reported."""
        statements = self.all(kind)
        for extra in statements[1:]:
            self.error(extra.at, f"there is a second '{what}'", first_at(extra.at, statements[0].at))
        if not statements:
            self.error(self.end, f"the spec has no '{what}'", f"as in {example}")
            return None
        return statements[0]

    @property
    def families(self) -> list[syntax.DeviceFamily | syntax.Cluster]:
        """Declarations of devices and clusters, those within clusters left out."""
        return [s for s in self.texts.statements if isinstance(s, syntax.DeviceFamily | syntax.Cluster)]

    @property
    def graphs(self) -> list[syntax.GraphFile | syntax.GraphInline]:
        """Every statement that gives a graph, in the order of the text."""
        given = [s for s in self.texts.statements if isinstance(s, syntax.GraphFile | syntax.GraphInline)]
        return sorted(given, key=lambda s: s.at)

    @property
    def nodes(self) -> dict[str, syntax.Word]:
        """The names of the nodes that the spec itself declares."""
        items = [item for graph in self.all(syntax.GraphInline) for item in graph.items]
        return {item.name.text: item.name for item in items if isinstance(item, syntax.Node)}

    @property
    def definitions(self) -> list[syntax.Define | syntax.ConstraintDefinition]:
        """Every ``define`` and ``constraint``."""
        return [s for s in self.texts.statements if isinstance(s, syntax.Define | syntax.ConstraintDefinition)]

    @property
    def names(self) -> list[str]:
        """Names that the spec gives a meaning itself, whatever else they may mean."""
        kinds = (syntax.Param, syntax.SetOf, syntax.Variable, syntax.Define, syntax.ConstraintDefinition)
        return [*(s.name.text for s in self.texts.statements if isinstance(s, kinds)), *self.nodes]

    @property
    def graph_at(self) -> syntax.At:
        """Where the graph is given."""
        first = self.graphs[0]
        return first.path.at if isinstance(first, syntax.GraphFile) else first.at

    @property
    def end(self) -> syntax.At:
        """The last character of the spec."""
        end = len(self.module.source.text.rstrip())
        return syntax.At(max(0, end - 1), end, self.module.source)

    def error(self, at: syntax.At, message: str, hint: str = "") -> None:
        """Report something at its place."""
        self.found.append(Diagnostic(message, at.span, hint))

    def fail(self) -> None:
        """Raise what has been found so far, in the order of the text."""
        if self.found:
            unique = dict.fromkeys(self.found)
            places = {d: (d.span.line, d.span.column) if d.span else (math.inf, 0) for d in unique}
            raise InputError(sorted(unique, key=places.__getitem__))
