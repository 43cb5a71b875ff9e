"""Syntax to resolved expressions: names, types and dimensions, with all errors collected."""

from __future__ import annotations

from placedsl import expressions as core
from placedsl.diagnostics import nearest
from placedsl.expressions import Sort
from placedsl.language import syntax
from placedsl.language.constants import fold, is_zero, same_dimension
from placedsl.language.sets import Bound, Checked, SetChecker
from placedsl.language.vocabulary import ERROR, PLAIN, TEXT, TRUTH, Type, element, number
from placedsl.units import NUMBER


class Checker(SetChecker):
    """Checks the expressions of one text against a vocabulary.

    ``found`` collects the diagnostics; an expression that is wrong comes back with type ERROR,
    about which nothing further is said.
    """

    # the faces

    def truth(self, node: syntax.Expression) -> core.Expression:
        """A condition (a constraint's body)."""
        out, kind = self.check(node)
        self.expect(node, kind, "truth")
        return out

    def number(self, node: syntax.Expression) -> Checked:
        """A number, with its type."""
        out, kind = self.check(node)
        if kind.kind == "truth":
            return out, PLAIN
        self.expect(node, kind, "number")
        return out, kind

    def binder_of_set(self, node: syntax.Expression) -> core.Binder | None:
        """The right side of ``set name = …`` as a binder of one unnamed slot."""
        item, condition = (node.item, node.condition) if isinstance(node, syntax.Where) else (node, None)
        of = self.set(item)
        if of is None:
            return None
        slots = tuple(f"·{i}" for i in range(len(of.sorts)))
        return self.filtered(slots, of, condition, self.span(node))

    # expressions

    def check(self, node: syntax.Expression) -> Checked:
        """Resolve any expression but a set."""
        match node:
            case syntax.Number(problem=problem) if problem:
                return self.error(node, problem)
            case syntax.Number(value=value, dimension=dimension):
                return core.Constant(value, self.span(node)), number(dimension)
            case syntax.Text(value=value):
                return core.Constant(value, self.span(node)), TEXT
            case syntax.Name():
                return self._name(node)
            case syntax.Attribute(base=base, name=name):
                return self._attribute(node, base, name, None)
            case syntax.Index():
                return self._index(node)
            case syntax.Call():
                return self._call(node)
            case syntax.Unary(operator=operator, operand=operand):
                if operator == "not":
                    return core.Not(self.truth(operand), self.span(node)), TRUTH
                out, kind = self.number(operand)
                zero = core.Constant(0.0, self.span(node))
                return fold("-", zero, out, self.span(node)), kind
            case syntax.Binary():
                return self._binary(node)
            case syntax.Compare(operators=operators, operands=operands):
                parts = [
                    self._compare(node, op, left, right)
                    for op, left, right in zip(operators, operands, operands[1:], strict=False)
                ]
                if len(parts) == 1:
                    return parts[0], TRUTH
                return core.Logic("and", tuple(parts), self.span(node)), TRUTH
            case syntax.Match(subject=subject, pattern=pattern):
                out, kind = self.check(subject)
                self.expect(subject, kind, "text")
                return core.Glob(out, pattern, self.span(node)), TRUTH
            case syntax.Aggregate():
                return self._aggregate(node)
            case syntax.Forall(items=items, body=body):
                with Bound(self):
                    binders = self.binders(items)
                    return core.Forall(binders, self.truth(body), self.span(node)), TRUTH
            case syntax.Conditional():
                return self._conditional(node)
        return self.error(node, "a value is expected here, this is a set or a list")

    def _name(self, node: syntax.Name) -> Checked:
        name = node.name
        words = self.vocabulary
        span = self.span(node)
        if self.slots.get(name) == "error":
            return core.Constant(0.0, span), ERROR  # its binder was reported
        if name in self.slots:
            return core.Slot(name, self.slots[name], span), element(self.slots[name])
        if name in self.parameters:
            value, kind = self.parameters[name]
            return core.Constant(value, span), kind
        for slot, sort in reversed(self.implicit):
            known = words.attributes.get(sort, {}).get(name)
            if known is not None and not known.per_device:
                return core.Attribute(name, sort, core.Slot(slot, sort, span), None, span), known.type
        if name in words.families:
            members = words.families[name]
            if len(members) == 1:
                return core.Element("device", members[0], span), element("device")
            return core.Constant(0.0, span), Type("set", sorts=("device",))
        quantity = words.quantities.get(name)
        if quantity is not None:
            if quantity.arguments:
                shape = ", ".join(quantity.arguments)
                return self.error(node, f"'{name}' needs what it is about: {name}({shape})", quantity.meaning)
            return core.Provided(name, (), span), quantity.type
        if name in ("true", "false"):
            return core.Constant(name == "true", span), TRUTH
        if name in words.sets:
            return core.Constant(0.0, span), Type("set", sorts=words.sets[name])
        if name in words.node_positions:
            return core.Element("node", words.node_positions[name], span), element("node")
        known_names = [*self.slots, *self.parameters, *words.sets, *words.quantities]
        known_names += [a for _, sort in self.implicit for a in words.attributes.get(sort, {})]
        known_names += list(words.node_positions)[:5000]
        return self.error(node, f"there is no '{name}' here", nearest(name, known_names))

    def _attribute(
        self, node: syntax.Expression, base: syntax.Expression, name: str, device: syntax.Expression | None
    ) -> Checked:
        owner, kind = self.check(base)
        if kind.kind == "error":
            return owner, ERROR
        if kind.kind != "element":
            return self.error(base, f"this is {kind}, which has no attributes", "attributes belong to one element")
        return self._attribute_of(node, owner, kind.sorts[0], name, device)

    def _attribute_of(
        self,
        node: syntax.Expression,
        owner: core.Expression,
        sort: Sort,
        name: str,
        device: syntax.Expression | None,
    ) -> Checked:
        span = self.span(node)
        if sort.startswith("group:") and name == "first":
            return core.Attribute(name, sort, owner, None, span), element("node")
        known = self.vocabulary.attributes.get(sort, {})
        if name not in known:
            what = sort.partition(":")[0]
            return self.error(node, f"a {what} has no '{name}'", nearest(name, known))
        attribute = known[name]
        if attribute.per_device:
            if device is None:
                return self.error(node, f"'{name}' depends on the device", f"write it as {name}[d]")
            where = self._device(device)
            return core.Attribute(name, sort, owner, where, span), attribute.type
        if device is not None:
            return self.error(node, f"'{name}' does not depend on a device", f"write it as {name}")
        return core.Attribute(name, sort, owner, None, span), attribute.type

    def _device(self, node: syntax.Expression) -> core.Expression:
        """A device, or a family standing for any of its devices (their times are the same)."""
        if isinstance(node, syntax.Name) and node.name not in self.slots:
            members = self.vocabulary.families.get(node.name)
            if members:
                return core.Element("device", members[0], self.span(node))
        out, kind = self.check(node)
        if kind.kind != "error" and kind != element("device"):
            self.error(node, f"a device is expected here, this is {kind}", nearest("", self.vocabulary.families))
        return out

    def _index(self, node: syntax.Index) -> Checked:
        base, span = node.base, self.span(node)
        words = self.vocabulary
        if isinstance(base, syntax.Attribute):
            return self._attribute(node, base.base, base.name, node.arguments[0])
        if not isinstance(base, syntax.Name):
            return self.error(base, "this cannot be indexed")
        name = base.name
        if name in words.variables:
            return self._decision(node, name)
        for slot, sort in reversed(self.implicit):
            known = words.attributes.get(sort, {}).get(name)
            if known is not None and known.per_device:
                owner = core.Slot(slot, sort, self.span(base))
                return self._attribute_of(node, owner, sort, name, node.arguments[0])
        if name in words.families:
            members = words.families[name]
            position = self.integer(node.arguments[0], 1, len(members), f"'{name}'")
            if position is None:
                return core.Constant(0.0, span), ERROR
            return core.Element("device", members[position - 1], span), element("device")
        if name == "nodes" and isinstance(node.arguments[0], syntax.Text):
            key = node.arguments[0].value
            if key not in words.node_positions:
                return self.error(
                    node.arguments[0], f"the graph has no node '{key}'", nearest(key, words.node_positions)
                )
            return core.Element("node", words.node_positions[key], span), element("node")
        if name in words.sets:
            sorts = words.sets[name]
            position = self.integer(node.arguments[0], 1, None, f"'{name}'")
            if position is None:
                return core.Constant(0.0, span), ERROR
            if len(sorts) != 1:
                return self.error(node, f"'{name}' holds pairs: take them apart with (u, v) in {name}")
            of = core.NamedSet(name, sorts, self.span(base))
            return core.Pick(of, position, sorts[0], span), element(sorts[0])
        return self.error(base, f"there is no '{name}' to index", nearest(name, [*words.sets, *words.variables]))

    def integer(self, node: syntax.Expression, low: int, high: int | None, what: str) -> int | None:
        """A constant integer within bounds, or None after reporting."""
        out, kind = self.number(node)
        if kind.kind == "error":
            return None
        if not isinstance(out, core.Constant) or isinstance(out.value, bool | str) or kind.dimension != NUMBER:
            self.error(node, "a whole number known beforehand is expected here")
            return None
        if out.value != int(out.value) or out.value < low or (high is not None and out.value > high):
            bounds = f"{low}..{high}" if high is not None else f"{low} or more"
            self.error(node, f"{out.value:g} is out of range", f"{what} takes {bounds}")
            return None
        return int(out.value)

    def _decision(self, node: syntax.Index, name: str) -> Checked:
        sorts = self.vocabulary.variables[name]
        if len(node.arguments) != len(sorts):
            return self.error(node, f"'{name}' has {len(sorts)} indices, here are {len(node.arguments)}")
        arguments = tuple(self.element(a, s) for a, s in zip(node.arguments, sorts, strict=True))
        return core.Decision(name, arguments, self.span(node)), PLAIN

    def element(self, node: syntax.Expression, sort: Sort) -> core.Expression:
        """One element of a sort."""
        out, kind = self.check(node)
        if kind.kind != "error" and kind != element(sort):
            self.error(node, f"a {sort} is expected here, this is {kind}")
        return out

    def _call(self, node: syntax.Call) -> Checked:
        name, words = node.name, self.vocabulary
        span = self.span(node)
        if name in ("convex", "pipeline"):
            return self._set_property(node)
        if node.body is not None:
            return self.error(node, f"'{name}' is nothing that ranges over a set", "known: sum, count, max, min")
        quantity = words.quantities.get(name)
        if quantity is None:
            known = [n for n, q in words.quantities.items() if q.arguments and n != "on"]
            return self.error(node, f"there is no '{name}(…)'", nearest(name, [*known, "sum", "count", "max", "min"]))
        if len(quantity.arguments) != len(node.arguments):
            shape = f"{name}({', '.join(quantity.arguments)})" if quantity.arguments else name
            return self.error(node, f"'{name}' is written {shape}", quantity.meaning)
        arguments = tuple(self.element(a, s) for a, s in zip(node.arguments, quantity.arguments, strict=True))
        return core.Provided(name, arguments, span), quantity.type

    def _set_property(self, node: syntax.Call) -> Checked:
        example = "convex({v in nodes: v on d})"
        with Bound(self):
            outer: tuple[core.Binder, ...] = ()
            body: syntax.Expression | None
            if node.name == "pipeline":
                example, outer, body = "pipeline(d in devices: {v in nodes: v on d})", (), node.body
                outer = self.binders(node.arguments)
            else:
                body = node.arguments[0] if len(node.arguments) == 1 else None
            if not isinstance(body, syntax.Braces) or len(body.pairs) != 1 or body.pairs[0][1] is None:
                return self.error(node, f"'{node.name}' takes a set of nodes by a condition", f"as in {example}")
            (inner,) = self.binders((body.pairs[0][0],)) or (None,)
            membership = self.truth(body.pairs[0][1])
        if inner is None:
            return core.Constant(0.0, self.span(node)), ERROR
        return core.SetProperty(node.name, outer, inner, membership, self.span(node)), TRUTH

    def _binary(self, node: syntax.Binary) -> Checked:
        span, op = self.span(node), node.operator
        if op in ("and", "or", "=>"):
            return core.Logic(op, (self.truth(node.left), self.truth(node.right)), span), TRUTH
        if op == "on":
            return self._on(node)
        if op == "in":
            out, kind = self.check(node.left)
            of = self.set(node.right)
            if of is None or kind.kind == "error":
                return core.Constant(0.0, span), ERROR
            if kind.kind != "element" or of.sorts != kind.sorts:
                return self.error(node, f"{kind} cannot be in {Type('set', sorts=of.sorts)}")
            return core.Within(out, of, span), TRUTH
        left, a = self.number(node.left)
        right, b = self.number(node.right)
        if "error" in (a.kind, b.kind):
            return core.Constant(0.0, span), ERROR
        if op in "+-":
            if not same_dimension(left, a, right, b):
                verb = "added to" if op == "+" else "taken from"
                x, y = (a, b) if op == "+" else (b, a)
                return self.error(node, f"{x} cannot be {verb} {y}", "both sides of + and - need one dimension")
            dimension = b.dimension if is_zero(left) else a.dimension
        else:
            dimension = a.dimension * b.dimension if op == "*" else a.dimension / b.dimension
        if op == "/" and is_zero(right):
            return self.error(node.right, "division by zero")
        return fold(op, left, right, span), number(dimension)

    def _on(self, node: syntax.Binary) -> Checked:
        v, kind = self.check(node.left)
        if kind.kind != "error" and kind != element("node"):
            return self.error(node.left, f"a node is expected before 'on', this is {kind}")
        span = self.span(node)
        if isinstance(node.right, syntax.Name) and node.right.name not in self.slots:
            members = self.vocabulary.families.get(node.right.name, ())
            if len(members) > 1:
                place = self.span(node.right)
                parts = (core.Provided("on", (v, core.Element("device", d, place)), span) for d in members)
                return core.Logic("or", tuple(parts), span), TRUTH
        d, kind = self.check(node.right)
        if kind.kind != "error" and kind != element("device"):
            return self.error(
                node.right, f"a device is expected after 'on', this is {kind}", nearest("", self.vocabulary.families)
            )
        return core.Provided("on", (v, d), span), TRUTH

    def _compare(
        self, node: syntax.Compare, op: str, left: syntax.Expression, right: syntax.Expression
    ) -> core.Expression:
        x, a = self.check(left)
        y, b = self.check(right)
        span = self.source.span(left.at[0], right.at[1])
        if "error" in (a.kind, b.kind):
            return core.Constant(True, span)
        if a.kind == b.kind and a.kind in ("text", "element", "truth"):
            if op not in ("==", "!="):
                self.error(node, f"{a} can only be compared with == and !=")
            if a.kind == "element" and a.sorts != b.sorts:
                self.error(node, f"{a} is never {b}")
            return core.Comparison(op, x, y, span, a.kind)
        numbers = [t if t.kind == "number" else PLAIN if t.kind == "truth" else None for t in (a, b)]
        if numbers[0] is None or numbers[1] is None:
            self.error(node, f"{a} cannot be compared with {b}")
        elif not same_dimension(x, numbers[0], y, numbers[1]):
            self.error(node, f"{numbers[0]} cannot be compared with {numbers[1]}", self._unit_hint(a, b))
        return core.Comparison(op, x, y, span)

    def _unit_hint(self, a: Type, b: Type) -> str:
        if not self.vocabulary.graph.time_in_seconds and "time" in (str(a.dimension), str(b.dimension)):
            return (
                "this graph's times are plain numbers in a unit of its own: compare with a plain number, "
                'or say the unit: graph from "…" { time_unit = 1 ms }'
            )
        return "both sides need one dimension"

    def _conditional(self, node: syntax.Conditional) -> Checked:
        condition = self.truth(node.condition)
        then, a = self.number(node.then)
        otherwise, b = self.number(node.otherwise)
        if "error" not in (a.kind, b.kind) and not same_dimension(then, a, otherwise, b):
            return self.error(node, f"the two branches differ: {a} and {b}")
        return core.Conditional(condition, then, otherwise, self.span(node)), a

    def _aggregate(self, node: syntax.Aggregate) -> Checked:
        span = self.span(node)
        if node.body is None and node.operator in ("max", "min"):
            checked = [self.number(i) for i in node.items]
            kinds = [k for _, k in checked]
            if any(k.kind == "error" for k in kinds):
                return core.Constant(0.0, span), ERROR
            if any(not same_dimension(checked[0][0], kinds[0], x, k) for x, k in checked[1:]):
                return self.error(node, f"the arguments of '{node.operator}' differ in dimension")
            return core.Largest(node.operator, tuple(x for x, _ in checked), span), kinds[0]
        if node.body is None and node.operator == "count" and len(node.items) == 1:
            inner = node.items[0].item if isinstance(node.items[0], syntax.Where) else node.items[0]
            if isinstance(inner, syntax.Binary) and inner.operator == "in":
                return self.error(
                    node, "'count' needs a condition here", "as in count(v in nodes: v on cpu), or count(nodes)"
                )
            with Bound(self):
                binder = self.binder_of_set(node.items[0])
            if binder is None:
                return core.Constant(0.0, span), ERROR
            return core.Aggregate("count", (binder,), core.Constant(True, span), span), PLAIN
        if node.body is None:
            example = f"{node.operator}(v in nodes: …)"
            return self.error(node, f"'{node.operator}' needs something to range over", f"as in {example}")
        with Bound(self):
            binders = self.binders(node.items)
            if node.operator == "count":
                return core.Aggregate("count", binders, self.truth(node.body), span), PLAIN
            body, kind = self.number(node.body)
        return core.Aggregate(node.operator, binders, body, span), kind
