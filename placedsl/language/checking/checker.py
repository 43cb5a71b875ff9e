"""Syntax to resolved expressions: names, types and dimensions, with all errors collected."""

from __future__ import annotations

from placedsl.diagnostics import nearest
from placedsl.language.checking.constant_folding import fold, is_zero, same_dimension
from placedsl.language.checking.names import NameChecker
from placedsl.language.checking.scope import Checked, named
from placedsl.language.checking.vocabulary import ERROR, PLAIN, TEXT, TRUTH, Type, element, number
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.units import DATA, NUMBER, Dimension

_OF_SETS = ("union", "intersect", "except")


class Checker(NameChecker):
    """Checks expressions against a vocabulary.

    ``found`` collects the diagnostics; an expression that is wrong comes back with type ERROR,
    about which nothing further is said.
    """

    # the faces

    def truth(self, node: syntax.Expression) -> core.Expression:
        """A condition (a constraint's body); a binary variable is one that holds where it is one."""
        out, kind = self.check(node)
        if isinstance(out, core.Decision) and self.vocabulary.variables[out.variable].binary:
            return out
        self.expect(node, kind, "truth")
        return out

    def number(self, node: syntax.Expression) -> Checked:
        """A number, with its type."""
        out, kind = self.check(node)
        if kind.kind == "truth":
            return out, PLAIN
        return (out, kind) if self.expect(node, kind, "number") else (core.Constant(0.0, node.at.span), ERROR)

    # expressions

    def check(self, node: syntax.Expression) -> Checked:
        """Resolve any expression but a set."""
        with self.deeper(node) as allowed:
            return self._checked(node) if allowed else (core.Constant(0.0, self.span(node)), ERROR)

    def _checked(self, node: syntax.Expression) -> Checked:
        match node:
            case syntax.Number(problem=problem) if problem:
                return self.error(node, problem)
            case syntax.Number(value=value, dimension=dimension):
                return core.Constant(value, self.span(node)), number(dimension)
            case syntax.Text(value=value):
                return core.Constant(value, self.span(node)), TEXT
            case syntax.Name(name=name):
                return self.by_name(node, name)
            case syntax.Attribute(base=base, name=name):
                return self.attribute(node, base, name)
            case syntax.Index():
                return self.index(node)
            case syntax.Call(name="convex" | "pipeline"):
                return self._set_property(node)
            case syntax.Call(name="no_overlap"):
                return self._no_overlap(node)
            case syntax.Call():
                return self.call(node)
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
            case syntax.Forall(items=items, body=body, quantifier=quantifier):
                span = self.span(node)
                with self.bound():
                    binders = self.binders(items)
                    holds = self.truth(body)
                if quantifier == "forall":
                    return core.Forall(binders, holds, span), TRUTH
                return core.Not(core.Forall(binders, core.Not(holds, span), span), span), TRUTH
            case syntax.Conditional():
                return self._conditional(node)
        return self.error(node, "a value is expected here, this is a set or a list")

    def _set_property(self, node: syntax.Call) -> Checked:
        example = "convex({v in nodes: v on d})"
        with self.bound():
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

    def _no_overlap(self, node: syntax.Call) -> Checked:
        example, span = "as in no_overlap(v in nodes: v on gpu[1] => start(v)..finish(v))", self.span(node)
        if node.body is None:
            return self.error(node, "'no_overlap' needs intervals, and something to range over", example)
        with self.bound():
            binders, body = self.binders(node.arguments), node.body
            presence = None
            if isinstance(body, syntax.Binary) and body.operator == "=>":
                presence, body = self.truth(body.left), body.right
            if not isinstance(body, syntax.Range):
                return self.error(body, "an interval is expected here, from its start to its finish", example)
            start, a = self.number(body.low)
            finish, b = self.number(body.high)
        if "error" in (a.kind, b.kind) or len(binders) < len(node.arguments):
            return core.Constant(True, span), TRUTH
        if not same_dimension(start, a, finish, b):
            return self.error(body, f"an interval from {a} to {b}", "both ends need one dimension")
        return core.NoOverlap(binders, presence, start, finish, span, _either(a, b)), TRUTH

    def _binary(self, node: syntax.Binary) -> Checked:
        span, op = self.span(node), node.operator
        if op in ("and", "or", "=>"):
            return core.Logic(op, (self.truth(node.left), self.truth(node.right)), span), TRUTH
        if op == "<=>":
            return core.Comparison("==", self.truth(node.left), self.truth(node.right), span, "truth"), TRUTH
        if op == "on":
            return self._on(node)
        if op == "in":
            return self._in(node)
        if op in _OF_SETS:
            return self.error(node, "a value is expected here, this is a set")
        left, a = self.number(node.left)
        right, b = self.number(node.right)
        if "error" in (a.kind, b.kind):
            return core.Constant(0.0, span), ERROR
        if op == "mod":
            return self._remainder(node, (left, a), (right, b))
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

    def _remainder(self, node: syntax.Binary, left: Checked, right: Checked) -> Checked:
        """``v.heads mod t``: what is left of a number of data when it is divided."""
        for side, (out, _) in ((node.left, left), (node.right, right)):
            if walks.decided(out):
                return self.error(side, "a remainder of what the placement decides is not linear")
        if not same_dimension(left[0], left[1], right[0], right[1]):
            return self.error(node, f"{left[1]} cannot be divided into parts of {right[1]}", "both need one dimension")
        if is_zero(right[0]):
            return self.error(node.right, "division by zero")
        return fold("mod", left[0], right[0], self.span(node)), right[1]

    def _in(self, node: syntax.Binary) -> Checked:
        """``v in heavy``, ``(u, v) in edges``, ``i in {1, 2, 4}``."""
        span = self.span(node)
        of = self.set(node.right)
        parts = node.left.items if isinstance(node.left, syntax.TupleOf) else (node.left,)
        checked = [self.check(part) for part in parts]
        if of is None or any(kind.kind == "error" for _, kind in checked):
            return core.Constant(0.0, span), ERROR
        sorts = tuple("integer" if kind == PLAIN else kind.sorts[0] if kind.sorts else "" for _, kind in checked)
        if any(kind.kind not in ("element", "number") for _, kind in checked) or of.sorts != sorts:
            what = "a pair" if len(checked) > 1 else str(checked[0][1])
            return self.error(node, f"{what} cannot be in {Type('set', sorts=of.sorts)}")
        return core.Within(tuple(out for out, _ in checked), of, span), TRUTH

    def _on(self, node: syntax.Binary) -> Checked:
        v, kind = self._maybe_quoted(node.left)
        if kind.kind != "error" and kind != element("node"):
            return self.error(node.left, f"a node is expected before 'on', this is {kind}", self.hidden(node.left))
        span = self.span(node)
        name = named(node.right)
        if name is not None and name not in self.slots and name not in self.given:
            members = self._devices_of(name)
            if len(members) > 1 or (members and name in ("accelerators", "hosts")):
                place = self.span(node.right)
                parts = (core.Provided("on", (v, core.Element("device", d, place)), span) for d in members)
                return core.Logic("or", tuple(parts), span), TRUTH
        if self._is_set_of_devices(node.right, name):
            return self.check(_on_one_of(node))
        d, kind = self._maybe_quoted(node.right)
        if kind.kind != "error" and kind != element("device"):
            hint = self.hidden(node.right) or nearest("", self.vocabulary.families)
            first, second = (" ".join(side.at.text.split()) for side in (node.left, node.right))
            if kind == element("cluster"):
                hint = self.hidden(node.right) or f"on one of its devices: inside({first}, {second})"
            if kind == element("node"):
                bound = {named(node.left), name} & self.slots.keys()
                said = (
                    f"forall d in devices: ({first} on d) == ({second} on d)"
                    if bound
                    else f"together({{{first}, {second}}})"
                )
                hint = self.hidden(node.right) or f"nodes that share a device: {said}"
            return self.error(node.right, f"a device is expected after 'on', this is {kind}", hint)
        return core.Provided("on", (v, d), span), TRUTH

    def _is_set_of_devices(self, node: syntax.Expression, name: str | None) -> bool:
        """A set of the spec by its name, or one that is written out; a family of one device is that device."""
        if isinstance(node, syntax.Braces) or (isinstance(node, syntax.Binary) and node.operator in _OF_SETS):
            return True
        own = name is not None and name not in self.slots and name not in self.given
        words = self.vocabulary
        return own and name != "devices" and name not in words.families and words.sets.get(name or "") == ("device",)

    def _devices_of(self, name: str) -> tuple[int, ...]:
        """The devices of a family or kind."""
        words = self.vocabulary
        if name in ("accelerators", "hosts"):
            return tuple(i for i, d in enumerate(words.machine.devices) if f"{d.kind}s" == name)
        return words.families.get(name, ())

    def _maybe_quoted(self, node: syntax.Expression) -> Checked:
        """A node or a device, whose name may stand in quotes."""
        return self.by_name(node, node.value) if isinstance(node, syntax.Text) else self.check(node)

    def _compare(
        self, node: syntax.Compare, op: str, left: syntax.Expression, right: syntax.Expression
    ) -> core.Expression:
        x, a = self.check(left)
        y, b = self.check(right)
        span = left.at.source.span(left.at.start, right.at.end)
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
        return core.Comparison(op, x, y, span, dimension=self.vocabulary.as_written(_either(*numbers)))

    def _unit_hint(self, a: Type, b: Type) -> str:
        if not self.vocabulary.graph.time_in_seconds and "time" in (str(a.dimension), str(b.dimension)):
            return (
                "this graph's times are plain numbers in a unit of its own: compare with a plain number, "
                'or say the unit: graph from "…" { time_unit = 1 ms }'
            )
        traffic = self.vocabulary.quantities.get("traffic")  # none where only constants may stand
        sized = traffic is None or traffic.type.dimension == DATA
        if not sized and DATA in (a.dimension, b.dimension):
            return (
                "this graph gives the time that moving a tensor takes, not its size: traffic and size are in that unit"
            )
        return "both sides need one dimension"

    def _conditional(self, node: syntax.Conditional) -> Checked:
        condition = self.truth(node.condition)
        if walks.decided(condition):
            hint = "for a condition on the placement, write condition => …, or condition * value"
            return self.error(node.condition, "the condition of an 'if' cannot depend on the placement", hint)
        then, a = self.check(node.then)
        otherwise, b = self.check(node.otherwise)
        if a == TRUTH and b == TRUTH:
            span = self.span(node)
            yes = core.Logic("=>", (condition, then), span)
            no = core.Logic("=>", (core.Not(condition, span), otherwise), span)
            return core.Logic("and", (yes, no), span), TRUTH
        a, b = (PLAIN if kind == TRUTH else kind for kind in (a, b))
        if not (self.expect(node.then, a, "number") and self.expect(node.otherwise, b, "number")):
            return core.Constant(0.0, self.span(node)), ERROR
        if "error" not in (a.kind, b.kind) and not same_dimension(then, a, otherwise, b):
            return self.error(node, f"the two branches differ: {a} and {b}")
        kind = ERROR if "error" in (a.kind, b.kind) else b if is_zero(then) else a
        return core.Conditional(condition, then, otherwise, self.span(node)), kind

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
            of = self.set(node.items[0])
            if of is None:
                return core.Constant(0.0, span), ERROR
            binder = core.Binder(tuple(f"·{i}" for i in range(len(of.sorts))), of, None, span)
            return core.Aggregate("count", (binder,), core.Constant(True, span), span), PLAIN
        if node.body is None:
            example = f"{node.operator}(v in nodes: …)"
            return self.error(node, f"'{node.operator}' needs something to range over", f"as in {example}")
        with self.bound():
            binders = self.binders(node.items)
            if node.operator == "count":
                return core.Aggregate("count", binders, self.truth(node.body), span), PLAIN
            body, kind = self.number(node.body)
        return core.Aggregate(node.operator, binders, body, span), kind


def _on_one_of(node: syntax.Binary) -> syntax.Forall:
    """``v on fast``, of a set of devices, as ``exists d in fast: v on d``; the text can have no such name as ``d``."""
    bound = syntax.Name(node.right.at, f"device of {' '.join(node.right.at.text.split())}")
    over = syntax.Binary(node.right.at, "in", bound, node.right)
    return syntax.Forall(node.at, (over,), syntax.Binary(node.at, "on", node.left, bound), "exists")


def _either(left: Type | None, right: Type | None) -> Dimension:
    """The dimension of two numbers of one dimension: a zero may be written without."""
    known = [kind.dimension for kind in (left, right) if kind is not None]
    return next((dimension for dimension in known if dimension != NUMBER), NUMBER)
