"""What checking knows: the vocabulary, what is bound, and where errors go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from placedsl.diagnostics import Diagnostic, Span
from placedsl.language.checking.vocabulary import ERROR, Type, Value, Vocabulary
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expressions as core
from placedsl.problem.expressions import Sort

#: A resolved expression and its type.
Checked = tuple[core.Expression, Type]
#: What a definition may be used by: ``define`` and ``constraint``.
Definition = syntax.Define | syntax.ConstraintDefinition


class Scope(ABC):
    """The names that an expression may use, and the errors found so far.

    ``slots``     bound variables by the name that the text uses; None: its binder was reported
    ``given``     what a definition was called with
    ``implicit``  variables whose attributes may be written without them (in ``nodes where memory > 1 GiB``)
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        parameters: dict[str, Value],
        found: list[Diagnostic],
        definitions: Mapping[str, Definition] | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.parameters = parameters
        self.found = found
        self.definitions: Mapping[str, Definition] = definitions or {}
        self.slots: dict[str, core.Slot | None] = {}
        self.given: dict[str, Checked | core.SetExpression] = {}
        self.implicit: list[tuple[core.Slot, Sort]] = []
        self.unfolding: list[str] = []
        self._names: dict[str, int] = {}

    @abstractmethod
    def check(self, node: syntax.Expression) -> Checked:
        """Resolve any expression but a set."""

    @abstractmethod
    def truth(self, node: syntax.Expression) -> core.Expression:
        """A condition (a constraint's body)."""

    @abstractmethod
    def number(self, node: syntax.Expression) -> Checked:
        """A number, with its type."""

    @abstractmethod
    def set(self, node: syntax.Expression) -> core.SetExpression | None:
        """A set, or None after reporting."""

    # errors

    def span(self, node: syntax.Expression | syntax.Word) -> Span:
        """Where a node stands."""
        return node.at.span

    def error(self, node: syntax.Expression | syntax.Word, message: str, hint: str = "") -> Checked:
        """Report, and give back what nothing more is said about."""
        self.found.append(Diagnostic(message, node.at.span, hint))
        return core.Constant(0.0, node.at.span), ERROR

    def expect(self, node: syntax.Expression, got: Type, kind: str) -> bool:
        """Report what is not of the expected kind."""
        if got.kind in (kind, "error"):
            return True
        words = {"truth": "a condition", "number": "a number", "text": "a text"}
        self.error(node, f"{words.get(kind, kind)} is expected here, this is {got}")
        return False

    # bound variables

    def bind(self, name: str, sort: Sort, span: Span) -> core.Slot:
        """A new variable; one that hides another (or would be hidden within a definition) has a name of its own."""
        count = self._names.get(name, 0)
        taken = name in self.slots or self.unfolding
        if taken:
            self._names[name] = count + 1
        slot = core.Slot(f"{name}'{count + 1}" if taken else name, sort, span)
        self.slots[name] = slot
        return slot

    @contextmanager
    def bound(self) -> Iterator[None]:
        """Forgets, on leaving, the variables that were bound inside."""
        saved = dict(self.slots)
        yield
        self.slots = saved

    @contextmanager
    def inside(self, name: str, given: dict[str, Checked | core.SetExpression]) -> Iterator[None]:
        """The body of a definition sees what it is given, and nothing of its surroundings."""
        saved = self.slots, self.implicit, self.given
        self.slots, self.implicit, self.given = {}, [], given
        self.unfolding.append(name)
        yield
        self.unfolding.pop()
        self.slots, self.implicit, self.given = saved


def named(node: syntax.Expression) -> str | None:
    """The name that a piece of syntax is; names that are not plain words stand in quotes."""
    match node:
        case syntax.Name(name=name):
            return name
        case syntax.Text(value=value):
            return value
    return None
