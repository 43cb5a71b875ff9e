"""Binders and sets: the part of checking that says what is ranged over."""

from __future__ import annotations

from abc import ABC, abstractmethod

from placedsl import expressions as core
from placedsl.diagnostics import Diagnostic, Source, Span, nearest
from placedsl.expressions import Sort
from placedsl.language import syntax
from placedsl.language.vocabulary import ERROR, Type, Value, Vocabulary

Checked = tuple[core.Expression, Type]


class SetChecker(ABC):
    """What checking of expressions and of sets share: the text, the vocabulary, the bound variables."""

    def __init__(
        self,
        source: Source,
        vocabulary: Vocabulary,
        parameters: dict[str, Value],
        found: list[Diagnostic],
    ) -> None:
        self.source = source
        self.vocabulary = vocabulary
        self.parameters = parameters
        self.found = found
        self.slots: dict[str, Sort] = {}
        self.implicit: list[tuple[str, Sort]] = []

    @abstractmethod
    def check(self, node: syntax.Expression) -> Checked:
        """Resolve any expression but a set."""

    @abstractmethod
    def truth(self, node: syntax.Expression) -> core.Expression:
        """A condition (a constraint's body)."""

    @abstractmethod
    def integer(self, node: syntax.Expression, low: int, high: int | None, what: str) -> int | None:
        """A constant integer within bounds, or None after reporting."""

    @abstractmethod
    def element(self, node: syntax.Expression, sort: Sort) -> core.Expression:
        """One element of a sort."""

    # errors

    def span(self, node: syntax.Expression | syntax.Word) -> Span:
        """Where a node stands."""
        return self.source.span(*node.at)

    def error(self, node: syntax.Expression | syntax.Word, message: str, hint: str = "") -> Checked:
        """Report, and give back what nothing more is said about."""
        self.found.append(Diagnostic(message, self.span(node), hint))
        return core.Constant(0.0, self.span(node)), ERROR

    def expect(self, node: syntax.Expression, got: Type, kind: str) -> bool:
        """Report what is not of the expected kind."""
        if got.kind in (kind, "error"):
            return True
        words = {"truth": "a condition", "number": "a number", "text": "a text"}
        self.error(node, f"{words.get(kind, kind)} is expected here, this is {got}")
        return False

    # binders and sets

    def binders(self, items: tuple[syntax.Expression, ...]) -> tuple[core.Binder, ...]:
        """``v in nodes where …, (u, v) in edges``: each binds its slots for what follows."""
        out = []
        for item in items:
            inner, condition = (item.item, item.condition) if isinstance(item, syntax.Where) else (item, None)
            if not isinstance(inner, syntax.Binary) or inner.operator != "in":
                self.error(item, "a variable and the set it ranges over are expected here", "as in v in nodes")
                continue
            targets = inner.left.items if isinstance(inner.left, syntax.TupleOf) else (inner.left,)
            of = self.set(inner.right)
            names = [t.name for t in targets if isinstance(t, syntax.Name)]
            if of is None:
                self.slots |= dict.fromkeys(names, "error")
                continue
            if len(names) != len(targets) or len(names) != len(of.sorts):
                shape = "one name" if len(of.sorts) == 1 else "a pair of names like (u, v)"
                self.slots |= dict.fromkeys(names, "error")
                self.error(inner.left, f"{shape} is expected before 'in' here")
                continue
            out.append(self.filtered(tuple(names), of, condition, self.span(item)))
        return tuple(out)

    def filtered(
        self, slots: tuple[str, ...], of: core.SetExpression, condition: syntax.Expression | None, span: Span
    ) -> core.Binder:
        """A binder whose condition may use the attributes of its elements by their bare names."""
        self.slots |= dict(zip(slots, of.sorts, strict=True))
        checked = None
        if condition is not None:
            self.implicit += zip(slots, of.sorts, strict=True)
            checked = self.truth(condition)
            del self.implicit[-len(slots) :]
        return core.Binder(slots, of, checked, span)

    def set(self, node: syntax.Expression) -> core.SetExpression | None:
        """A set, or None after reporting."""
        span, words = self.span(node), self.vocabulary
        match node:
            case syntax.Name(name=name):
                if self.slots.get(name) == "error":
                    return None
                if name in self.slots:
                    return self._members(node, core.Slot(name, self.slots[name], span), self.slots[name])
                if name in words.sets:
                    return core.NamedSet(name, words.sets[name], span)
                self.error(node, f"there is no set '{name}'", nearest(name, words.sets))
                return None
            case syntax.Call(name="readers", arguments=(argument,)):
                return core.Members(self.element(argument, "tensor"), "tensor", ("node",), span)
            case syntax.Call(name="partition", arguments=(of, syntax.Name(name=key))):
                return self._partition(node, of, key)
            case syntax.Braces(pairs=pairs):
                return self._enumerated(node, [item for item, _ in pairs])
        self.error(node, "a set is expected here", nearest("", words.sets))
        return None

    def _members(self, node: syntax.Expression, owner: core.Expression, sort: Sort) -> core.SetExpression | None:
        if sort == "part" or sort.startswith("group:"):
            return core.Members(owner, sort, ("node",), self.span(node))
        self.error(node, f"a {sort} is no set", "a group of partition(nodes, …) or a part is one")
        return None

    def _partition(self, node: syntax.Expression, of: syntax.Expression, key: str) -> core.SetExpression | None:
        if not isinstance(of, syntax.Name) or of.name != "nodes":
            self.error(of, "only nodes can be partitioned", "partition(nodes, attribute)")
            return None
        attribute = self.vocabulary.keys.get(key, key)
        known = {n: a for n, a in self.vocabulary.attributes["node"].items() if not a.per_device}
        if attribute not in known:
            self.error(node, f"nodes have no '{attribute}' to be partitioned by", nearest(attribute, known))
            return None
        return core.NamedSet(f"partition:{attribute}", (f"group:{attribute}",), self.span(node))

    def _enumerated(self, node: syntax.Expression, items: list[syntax.Expression]) -> core.SetExpression | None:
        span = self.span(node)
        parts = {"forward": 0, "backward": 1}
        if items and all(isinstance(i, syntax.Name) and i.name in parts for i in items):
            positions = tuple(parts[i.name] for i in items if isinstance(i, syntax.Name))
            return core.Enumerated(positions, ("part",), span)
        elements: list[core.Element] = []
        for item in items:
            out, kind = self.check(item)
            if kind.kind == "error":
                return None
            if not isinstance(out, core.Element):
                self.error(item, "an element known by name is expected in a list", "as in {gpu[1], cpu}")
                return None
            elements.append(out)
        if len({e.sort for e in elements}) != 1:
            self.error(node, "the elements of a list must be of one kind")
            return None
        return core.Enumerated(tuple(e.position for e in elements), (elements[0].sort,), span)


class Bound:
    """Forgets, on leaving, the slots that were bound inside."""

    def __init__(self, checker: SetChecker) -> None:
        self.checker = checker

    def __enter__(self) -> None:
        self.saved = dict(self.checker.slots)

    def __exit__(self, *_: object) -> None:
        self.checker.slots = self.saved
