"""Binders and sets: the part of checking that says what is ranged over."""

from __future__ import annotations

from abc import abstractmethod

from placedsl.diagnostics import Span, nearest
from placedsl.graph.sections import SECTION
from placedsl.language.checking.constant_folding import known_number
from placedsl.language.checking.scope import Scope, named
from placedsl.language.checking.vocabulary import LAYERS, PLAIN, Type, element
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.expressions import Sort
from placedsl.units import NUMBER

#: Whole numbers below this are exact.
_LARGEST = 2.0**53
_PARTS = {"forward": 0, "backward": 1}


class SetChecker(Scope):
    """Resolves binders and sets."""

    @abstractmethod
    def element(self, node: syntax.Expression, sort: Sort) -> core.Expression:
        """One element of a sort."""

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
                self.slots |= dict.fromkeys(names)
                continue
            if len(names) != len(targets) or len(names) != len(of.sorts):
                letters = ", ".join("uvwxyz"[: len(of.sorts)])
                many = "a pair of" if len(of.sorts) == 2 else str(len(of.sorts))
                shape = "one name" if len(of.sorts) == 1 else f"{many} names like ({letters})"
                self.slots |= dict.fromkeys(names)
                self.error(inner.left, f"{shape} is expected before 'in' here")
                continue
            if len(set(names)) < len(names):
                self.slots |= dict.fromkeys(names)
                self.error(inner.left, "the same name stands twice here")
                continue
            out.append(self.filtered(tuple(names), of, condition, item.at.span))
        return tuple(out)

    def filtered(
        self, names: tuple[str, ...], of: core.SetExpression, condition: syntax.Expression | None, span: Span
    ) -> core.Binder:
        """A binder whose condition may use the attributes of its elements by their bare names."""
        slots = [self.bind(name, sort, span) for name, sort in zip(names, of.sorts, strict=True)]
        checked = None
        if condition is not None:
            self.implicit += [(slot, slot.sort) for slot in slots]
            checked = self.truth(condition)
            del self.implicit[-len(slots) :]
            if walks.decided(checked):
                self.error(condition, "a 'where' cannot depend on the placement", "write the condition after the colon")
                checked = None
        return core.Binder(tuple(slot.name for slot in slots), of, checked, span)

    def set(self, node: syntax.Expression) -> core.SetExpression | None:
        """A set, or None after reporting."""
        with self.deeper(node) as allowed:
            return self._resolved(node) if allowed else None

    def _resolved(self, node: syntax.Expression) -> core.SetExpression | None:
        span, words = node.at.span, self.vocabulary
        name = named(node)
        if name is not None:
            return self._named(node, name)
        match node:
            case (
                syntax.Index(base=syntax.Name(name=family))
                | syntax.Index(base=syntax.Attribute(name=family))
                | syntax.Attribute(name=family)
            ) if words.sets.get(family) == ("cluster",):
                return core.Members(self.element(node, "cluster"), "cluster", ("device",), span)
            case syntax.Call(name="readers", arguments=(argument,)):
                return core.Members(self.element(argument, "tensor"), "tensor", ("node",), span)
            case syntax.Call(name="partition" | "sections" as function, arguments=(of, syntax.Name(name=key))):
                return self._partition(node, of, key, SECTION if function == "sections" else "")
            case syntax.Range(low=low, high=high):
                return self._range(low, high, span)
            case syntax.Binary(operator="union" | "intersect" | "except" as operator, left=left, right=right):
                a, b = self.set(left), self.set(right)
                if a is None or b is None:
                    return None
                if a.sorts != b.sorts:
                    kinds = f"{Type('set', sorts=a.sorts)} and {Type('set', sorts=b.sorts)}"
                    self.error(node, f"'{operator}' takes two sets of one kind, these are {kinds}")
                    return None
                return core.Combined(operator, a, b, span)
            case syntax.Where(item=item, condition=condition):
                return self._filter(item, condition, span)
            case syntax.Braces(pairs=pairs) if pairs and pairs[-1][1] is not None:
                return self._comprehension(node, pairs)
            case syntax.Braces(pairs=pairs):
                return self._listed(node, [item for item, _ in pairs])
        match node:
            case syntax.Attribute(base=base, name="readers"):
                hint = f"as in readers({' '.join(base.at.text.split())})"
            case syntax.Binary(operator="on", left=syntax.Braces(), right=right):
                texts = [" ".join(side.at.text.split()) for side in (node.left, right)]
                hint = f"as in v in {texts[0]}: v on {texts[1]}"
            case _:
                hint = nearest("", words.sets)
        self.error(node, "a set is expected here", hint)
        return None

    def _named(self, node: syntax.Expression, name: str) -> core.SetExpression | None:
        span, words = node.at.span, self.vocabulary
        given = self.given.get(name)
        if given is not None and not isinstance(given, tuple):
            return given
        if given is not None and given[1].kind == "error":  # what it was given was reported
            return None
        if name in self.slots:
            slot = self.slots[name]
            return None if slot is None else self._members(node, core.Slot(slot.name, slot.sort, span), slot.sort)
        if (cluster := words.machine.single_clusters.get(name)) is not None and not words.machine.is_counted(cluster):
            return core.Members(core.Element("cluster", cluster, span), "cluster", ("device",), span)
        if name in words.sets:
            sorts = words.sets[name]
            return None if sorts == ("error",) else core.NamedSet(name, sorts, span)
        if name == LAYERS:
            return self._layers(node)
        known = (*words.sets, LAYERS) if "layer" in words.attributes.get("node", {}) else words.sets
        self.error(node, f"there is no set '{name}'", nearest(name, known))
        return None

    def _members(self, node: syntax.Expression, owner: core.Expression, sort: Sort) -> core.SetExpression | None:
        if sort == "part" or sort.startswith("group:"):
            return core.Members(owner, sort, ("node",), node.at.span)
        if sort == "cluster":
            return core.Members(owner, sort, ("device",), node.at.span)
        self.error(node, f"a {sort} is no set", "a group of partition(nodes, …) or a part is one")
        return None

    def _range(self, low: syntax.Expression, high: syntax.Expression, span: Span) -> core.SetExpression | None:
        ends = []
        for end in (low, high):
            out, kind = self.number(end)
            if kind.kind == "error":
                return None
            if kind.dimension != NUMBER:
                self.error(end, f"whole numbers make a range, this is {kind}")
                return None
            if walks.decided(out):
                self.error(end, "a range cannot depend on the placement")
                return None
            value = known_number(out)
            if value is not None and (not value.is_integer() or abs(value) >= _LARGEST):
                self.error(end, f"a range has whole numbers as its ends, below 2^53; this is {value:g}")
                return None
            ends.append(out)
        return core.Range(ends[0], ends[1], span)

    def _filter(self, item: syntax.Expression, condition: syntax.Expression, span: Span) -> core.SetExpression | None:
        """``nodes where memory > 1 GiB``."""
        of = self.set(item)
        if of is None:
            return None
        with self.bound():
            names = tuple(f"·{i}" for i in range(len(of.sorts)))
            return core.Comprehension((self.filtered(names, of, condition, span),), span)

    def _comprehension(
        self, node: syntax.Expression, pairs: tuple[tuple[syntax.Expression, syntax.Expression | None], ...]
    ) -> core.SetExpression | None:
        """``{v in nodes, d in devices: condition}``."""
        condition = pairs[-1][1]
        assert condition is not None
        if any(body is not None for _, body in pairs[:-1]):
            self.error(node, "one condition at the end is expected here", "as in {v in nodes: memory(v) > 1 GiB}")
            return None
        before = len(self.found)
        with self.bound():
            binders = self.binders(tuple(item for item, _ in pairs))
            checked = self.truth(condition)
            if walks.decided(checked):
                self.error(condition, "which elements a set has cannot depend on the placement")
        if len(self.found) > before or not binders:
            return None
        last = binders[-1]
        if last.condition is not None:
            checked = core.Logic("and", (last.condition, checked), checked.span)
        return core.Comprehension((*binders[:-1], core.Binder(last.slots, last.set, checked, last.span)), node.at.span)

    def _partition(
        self, node: syntax.Expression, of: syntax.Expression, key: str, prefix: str = ""
    ) -> core.SetExpression | None:
        """Groups of nodes by an attribute; ``prefix``: by its sections."""
        if not isinstance(of, syntax.Name) or of.name != "nodes":
            self.error(of, "only nodes can be partitioned", "partition(nodes, attribute)")
            return None
        attribute = self.vocabulary.keys.get(key, key)
        known = {n: a for n, a in self.vocabulary.attributes["node"].items() if not a.per_device}
        if attribute not in known:
            self.error(node, f"nodes have no '{attribute}' to be partitioned by", nearest(attribute, known))
            return None
        return core.NamedSet(f"partition:{prefix}{attribute}", (f"group:{prefix}{attribute}",), node.at.span)

    def _layers(self, node: syntax.Expression) -> core.SetExpression | None:
        """``{g in partition(nodes, layer): g.first has a layer}``: what has none is a group of its own."""
        at, words = node.at, self.vocabulary
        if "layer" not in words.attributes.get("node", {}):
            hint = "its elements are the groups of nodes by an attribute 'layer', which nodes of this graph do not have"
            self.error(node, f"there is no set '{LAYERS}'", hint)
            return None
        groups = syntax.Call(at, "partition", (syntax.Name(at, "nodes"), syntax.Name(at, "layer")), None)
        own = syntax.Attribute(at, syntax.Attribute(at, syntax.Name(at, "·group"), "first"), "layer")
        known = syntax.Compare(at, ("==",), (own, own))  # what has no value equals nothing
        return self.set(syntax.Braces(at, ((syntax.Binary(at, "in", syntax.Name(at, "·group"), groups), known),)))

    def _listed(self, node: syntax.Expression, items: list[syntax.Expression]) -> core.SetExpression | None:
        if not items:
            self.error(node, "an empty list says nothing of what it could hold", "as in {gpu[1], cpu}, {1, 2, 4}")
            return None
        listed: list[tuple[core.Expression, ...]] = []
        shapes: list[tuple[Sort, ...]] = []
        for item in items:
            parts = item.items if isinstance(item, syntax.TupleOf) else (item,)
            checked = [self._listed_element(part) for part in parts]
            if any(c is None for c in checked):
                return None
            listed.append(tuple(c[0] for c in checked if c is not None))
            shapes.append(tuple(c[1] for c in checked if c is not None))
        if len(set(shapes)) > 1:
            self.error(node, "the elements of a list must be of one kind")
            return None
        return core.Listed(tuple(listed), shapes[0], node.at.span)

    def _listed_element(self, node: syntax.Expression) -> tuple[core.Expression, Sort] | None:
        if isinstance(node, syntax.Name) and node.name in _PARTS and node.name not in self.slots:
            return core.Element("part", _PARTS[node.name], node.at.span), "part"
        out, kind = self.check(node)
        if kind.kind == "error":
            return None
        if kind.kind == "element":
            return out, kind.sorts[0]
        if kind == PLAIN and not walks.decided(out):
            value = known_number(out)
            if value is None or (value.is_integer() and abs(value) < _LARGEST):
                return out, "integer"
        hint = "as in {gpu[1], cpu} or {1, 2, 4}"
        self.error(node, f"an element or a whole number is expected in a list, this is {kind}", hint)
        return None


def type_of_element(sort: Sort) -> Type:
    """The type of an element: a whole number where it is one of a range."""
    return PLAIN if sort == "integer" else element(sort)
