"""What checking knows: the vocabulary, what is bound, and where errors go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from placedsl import limits
from placedsl.diagnostics import Diagnostic, Span
from placedsl.language.checking.vocabulary import ERROR, Type, Value, Vocabulary
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.expressions import Sort

#: A resolved expression and its type.
Checked = tuple[core.Expression, Type]
#: What a definition may be used by: ``define`` and ``constraint``.
Definition = syntax.Define | syntax.ConstraintDefinition
#: Definitions that stand for a constraint under some execution models: specs do not name them.
_VARIANTS = frozenset((
    "boundaries_in_turn", "colocated_in_turn", "congestion_by_link", "congestion_by_port", "contiguous_in_clusters",
    "contiguous_in_turn",
))  # fmt: skip


def for_specs(name: str) -> bool:
    """Whether specs are to name a definition: others are variants or parts of those that they name."""
    part = name.startswith("exportable_") and not name.startswith("exportable_to_")
    return name not in _VARIANTS and not part and not name.endswith("_without_hosts")


class Expansion:
    """How much definitions have grown in a spec, for all of its checkers.

    A definition that uses another twice, which uses a third twice …, doubles with each step.
    """

    def __init__(self) -> None:
        self.unfolded = 0
        self.deep = False
        #: What walks over an expression recurses; so deep it stays far within Python's own limit.
        self.deepest = limits.count("nesting")
        #: Sizes of expressions by identity; the expressions are kept, so that no other has the same.
        self._parts: dict[int, tuple[object, int]] = {}

    def parts(self, node: core.Expression | core.SetExpression | core.Binder) -> int:
        """The number of parts of an expression; a part that stands in several places counts in each."""
        stack = [node]
        while stack:
            top = stack[-1]
            inner = walks.children(top)
            unknown = [part for part in inner if id(part) not in self._parts]
            if unknown:
                stack += unknown
            else:
                self._parts[id(top)] = top, 1 + sum(self._parts[id(part)][1] for part in inner)
                stack.pop()
        return self._parts[id(node)][1]


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
        self.expansion = Expansion()
        #: Definitions without parameters that were used already.
        self.unfolded: dict[str, Checked] = {}
        self._level = 0
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

    @contextmanager
    def deeper(self, node: syntax.Expression) -> Iterator[bool]:
        """One level further down; whether that is still allowed (reported where it is not)."""
        self._level += 1
        if self._level == 1:
            self._outermost = node
        if self._level == self.expansion.deepest and not self.expansion.deep:
            self.expansion.deep = True  # told once; what uses such a definition is as deep
            hint = limits.hint("write it with fewer steps: sums as sum(v in …: …), unions as one list", "nesting")
            message = f"with its definitions in place, this is nested more than {self.expansion.deepest} deep"
            self.error(self._outermost, message, hint)
        yield self._level < self.expansion.deepest
        self._level -= 1

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
