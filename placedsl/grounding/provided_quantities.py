"""Quantities of the vocabulary, through the definitions of a formulation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from placedsl.arrays import Integers
from placedsl.diagnostics import Diagnostic, InputError
from placedsl.grounding.expressions import ExpressionGrounder
from placedsl.grounding.frames import Columns, Frame
from placedsl.grounding.universe import Universe
from placedsl.ir.affine import Affine
from placedsl.problem import expressions as core
from placedsl.problem.formulation import Formulation


class ProvidedQuantities:
    """The quantities that a formulation provides, over the universe that it is grounded over.

    ``expressions`` grounds the bodies of its definitions, which may ask for further quantities.
    """

    def __init__(self, formulation: Formulation, universe: Universe, columns: Columns) -> None:
        self.formulation = formulation
        self.universe = universe
        self.expressions = ExpressionGrounder(universe, columns, {}, {}, self, missing_is_zero=True)
        self._scalars: dict[str, Affine] = {}

    def of(self, node: core.Provided, arguments: list[Integers], size: int) -> Affine:
        """A quantity for each of ``size`` rows; ``arguments`` holds an array of positions per index."""
        sorts = self.sorts(node)
        if not arguments:
            return self._scalar(node.name).take(np.zeros(size, dtype=np.int64))
        sizes = [self.universe.sizes[s] for s in sorts]
        key = np.ravel_multi_index(arguments, sizes) if size else np.zeros(0, dtype=np.int64)
        known, back = np.unique(key, return_inverse=True)
        slots = np.unravel_index(known, sizes)
        return self.definition(node.name, tuple(np.asarray(s) for s in slots)).take(back)

    def sorts(self, node: core.Provided) -> tuple[core.Sort, ...]:
        """The sorts of a quantity's arguments; InputError when the formulation does not provide it."""
        if node.name not in self.formulation.provides:
            word = "v on d" if node.name == "on" else node.name
            hidden = ("on",) if self.universe.sizes["cluster"] else ("on", "inside")
            provided = ", ".join(n for n in self.formulation.provides if n not in hidden)
            message = f"'{word}' is not provided under this objective and schedule"
            raise InputError(
                [Diagnostic(message, node.span, f"formulation '{self.formulation.name}' provides {provided}")]
            )
        return self.formulation.provides[node.name].sorts

    def _scalar(self, name: str) -> Affine:
        """A quantity without arguments; grounded once."""
        if name not in self._scalars:
            self._scalars[name] = self.definition(name, ())
        return self._scalars[name]

    def definition(self, name: str, arguments: tuple[Integers, ...]) -> Affine:
        """The body of a definition for these arguments."""
        definition = self.formulation.provides[name]
        size = len(arguments[0]) if arguments else 1
        frame = Frame(size, dict(zip(definition.slots, arguments, strict=True)),
                      dict(zip(definition.slots, definition.sorts, strict=True)))  # fmt: skip
        with self.expressions.origins.quantity(name):
            return self.expressions.value(definition.body, frame)


class QuantitiesOfUnits:
    """The same quantities, asked for elements of the problem as written.

    ``crossing`` maps these to the elements that the formulation is grounded over, by sort (absent: the same positions).
    """

    def __init__(self, provided: ProvidedQuantities, crossing: Mapping[core.Sort, Integers]) -> None:
        self.provided = provided
        self.crossing = crossing

    def of(self, node: core.Provided, arguments: list[Integers], size: int) -> Affine:
        """A quantity for each of ``size`` rows; ``arguments`` holds an array of positions per index."""
        sorts = self.provided.sorts(node)
        across = [self.crossing[s][a] if s in self.crossing else a for s, a in zip(sorts, arguments, strict=True)]
        try:
            return self.provided.of(node, across, size)
        except InputError as problem:
            raise _where_it_is_asked_for(problem, node) from None


def _where_it_is_asked_for(problem: InputError, node: core.Provided) -> InputError:
    """What is wrong within a definition, at the place where the spec asks for the quantity; what says what to do, as it
    is."""
    inside = problem.diagnostics[0]
    if inside.span is None or inside.span.source is node.span.source or inside.hint:
        return problem
    name = "/".join(inside.span.source.name.replace("\\", "/").rsplit("/", 2)[1:])
    line = inside.span.source.line(inside.span.line).strip()
    message = f"'{node.name}' has no value here: {inside.message}"
    return InputError([Diagnostic(message, node.span, f"{name}, line {inside.span.line}: {line}")])
