"""Grounding of constraints: expressions that must hold become rows and global constraints.

A *frame* is a relation over the bound variables: one integer array a variable, one row a combination.
``forall``/``sum``/``where`` are joins of frames with sets; nothing here loops over terms.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.diagnostics import Diagnostic, InputError, Span
from placedsl.grounding.expressions import ExpressionGrounder
from placedsl.grounding.frames import ROOT, Frame, rows_of
from placedsl.grounding.indicators import exclusive
from placedsl.grounding.sets import truth_of_sides
from placedsl.ir import affine
from placedsl.ir.affine import Affine
from placedsl.ir.program import NODE, Convex, Implication, NoOverlap, Pipeline
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core

#: Rows of a comparison are grounded so many at a time: arrays of more are slow to fill.
_MANY = 1 << 17
_NO_PAIRS = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


class ConstraintGrounder:
    """Grounds the constraints of one universe.

    ``precedence`` are the node pairs along which a pipeline runs forward, ``edges`` the graph's; ``interchangeable`` is
    a class number per device where devices may be exchanged for each other (None: they may not).
    """

    def __init__(
        self,
        expressions: ExpressionGrounder,
        *,
        precedence: tuple[Integers, Integers] = _NO_PAIRS,
        edges: tuple[Integers, Integers] = _NO_PAIRS,
        interchangeable: Integers | None = None,
    ) -> None:
        self.expressions = expressions
        self.sets = expressions.sets
        self.indicators = expressions.indicators
        self.columns = expressions.columns
        self.origins = expressions.origins
        self.precedence = precedence
        self.edges = edges
        self.interchangeable = interchangeable
        #: Of one clause: what may be 1 only where a condition holds, by the condition and its frame, which is kept.
        self.literals: dict[tuple[core.Expression, int], tuple[Frame, Affine]] = {}

    def require(self, node: core.Expression, frame: Frame, name: str, span: Span) -> None:
        """Add rows and global constraints that make the condition hold in every row of the frame."""
        origin = self.origins.begin(name, span, frame)
        if frame is ROOT:
            self.expressions.begin()
        sides = None
        none, zero, one = np.full(frame.size, np.inf), np.zeros(frame.size), np.ones(frame.size)
        if isinstance(node, core.Forall):
            node = guarded(node)
        elif not isinstance(node, core.SetProperty | core.NoOverlap):
            if isinstance(node, core.Comparison) and node.of == "number":
                sides = self.expressions.value(node.left, frame), self.expressions.value(node.right, frame)
                known = truth_of_sides(node.operator, *sides)
            else:
                known = self.sets.truth_of_data(node, frame)
            if known is not None:
                self.columns.impossible += [(origin, int(i)) for i in np.flatnonzero(~known)]
                return
        match node:
            case core.Forall(binders=binders, body=body):
                most = _MANY if isinstance(body, core.Comparison) else None
                for some in self.sets.expand_in_parts(frame, binders, most):
                    self.require(body, some, name, span)
            case core.Logic(operator="and", parts=parts):
                for part in parts:
                    self.require(part, frame, name, span)
            case core.Logic(operator="=>", parts=(left, right)):
                self._imply(left, right, frame, name, span)
            case core.Logic(operator="or", parts=parts):
                self._clause(list(parts), frame)
            case core.Not(part=part) if not isinstance(negated(part), core.Not):
                self.require(negated(part), frame, name, span)
            case core.Not(part=core.Forall()):
                self._clause([node], frame)
            case core.Not(part=part):
                self.columns.add_rows(origin, self.indicators.of(part, frame), zero, zero)
            case core.Comparison(of="truth", left=left, right=right) if compares(left) or compares(right):
                for premise, follows in both_ways(node):
                    self._clause([core.Not(premise, premise.span), follows], frame)
            case core.Comparison(of="truth", operator=op, left=left, right=right):
                a, b = self.indicators.of(left, frame), self.indicators.of(right, frame)
                if op == "==":
                    self.columns.add_rows(origin, a - b, zero, zero)
                else:
                    self.columns.add_rows(origin, a + b, one, one)
            case core.Comparison():
                assert sides is not None
                difference = sides[0] - sides[1]
                either = self._either(node, difference)
                if either is not None:
                    self._clause(either, frame)
                else:
                    self.columns.add_rows(origin, *self._comparison(node, difference, frame))
            case core.SetProperty():
                self._set_property(node, frame)
            case core.NoOverlap():
                self._no_overlap(node, frame)
            case _:
                self.columns.add_rows(origin, self.indicators.of(node, frame), one, none)

    def _difference(self, node: core.Comparison, frame: Frame) -> Affine:
        """The left side of a comparison of numbers less its right side."""
        return self.expressions.value(node.left, frame) - self.expressions.value(node.right, frame)

    def _either(self, node: core.Comparison, body: Affine) -> list[core.Expression] | None:
        """``a != b`` of real numbers as ``a < b`` or ``a > b``; ``body`` is their difference."""
        if node.operator != "!=" or self.columns.whole_numbered(body):
            return None
        return [core.Comparison(op, node.left, node.right, node.span) for op in ("<", ">")]

    def _comparison(self, node: core.Comparison, body: Affine, frame: Frame) -> tuple[Affine, Floats, Floats, bool]:
        """What lies between which bounds when a comparison of numbers holds, and whether it keeps off them.

        ``body`` is the difference of its sides.
        """
        none, zero = np.full(body.size, np.inf), np.zeros(body.size)
        match node.operator:
            case "<=":
                return body, -none, zero, False
            case ">=":
                return body, zero, none, False
            case "==":
                return body, zero, zero, False
        if self.columns.whole_numbered(body):
            match node.operator:
                case "<":
                    return body, -none, zero - 1.0, False
                case ">":
                    return body, zero + 1.0, none, False
        if node.operator == "!=":
            return self.indicators.of(node, frame), zero + 1.0, none, False
        return (body, -none, zero, True) if node.operator == "<" else (body, zero, none, True)

    def _clause(self, parts: list[core.Expression], frame: Frame) -> None:
        """At least one part holds in each row of the frame."""
        self.literals.clear()
        total = affine.data(np.zeros(frame.size))
        for part in parts:
            total = total + self._sufficient(part, frame)
        self.columns.add_rows(self.origins.at(frame), total, np.ones(frame.size), np.full(frame.size, np.inf))

    def _sufficient(self, part: core.Expression, frame: Frame) -> Affine:
        """0/1 that may be 1 only where the part holds (it need not be).

        Equivalences ask for both sides and their opposites: within a clause each is grounded once.
        """
        known = self.literals.get((part, id(frame)))
        if known is None:
            known = frame, self._grounded_sufficient(part, frame)
            self.literals[part, id(frame)] = known
        return known[1]

    def _grounded_sufficient(self, part: core.Expression, frame: Frame) -> Affine:
        if self.sets.truth_of_data(part, frame) is not None:
            return self.indicators.of(part, frame)
        match part:
            case core.Logic(operator="=>", parts=(left, right)):
                return self._sufficient(core.Logic("or", (core.Not(left, left.span), right), part.span), frame)
            case core.Not(part=inside) if not isinstance(negated(inside), core.Not):
                return self._sufficient(negated(inside), frame)
            case core.Not(part=core.Forall(binders=binders, body=body)):
                inner, parent = self.sets.expand(frame, binders)
                some = self._sufficient(core.Not(body, body.span), inner).summed(parent, frame.size)
                return self._at_most(some, np.arange(frame.size), frame, "some")
            case core.Comparison(of="truth", left=left, right=right) if compares(left) or compares(right):
                ways = tuple(
                    core.Logic("or", (core.Not(one, one.span), other), part.span) for one, other in both_ways(part)
                )
                return self._sufficient(core.Logic("and", ways, part.span), frame)
            case core.Logic(operator="or", parts=parts) if exclusive(list(parts)):
                return self.indicators.of(part, frame)
            case core.Logic(operator="or", parts=parts):
                total = affine.data(np.zeros(frame.size))
                for one in parts:
                    total = total + self._sufficient(one, frame)
                return self._at_most(total, np.arange(frame.size), frame, "any")
            case core.Logic(operator="and", parts=parts):
                every = np.tile(np.arange(frame.size), len(parts))
                return self._at_most(affine.stack([self._sufficient(one, frame) for one in parts]), every, frame, "all")
            case core.Forall(binders=binders, body=body):
                inner, parent = self.sets.expand(frame, binders)
                return self._at_most(self._sufficient(body, inner), parent, frame, "every")
        if isinstance(part, core.Comparison) and part.of == "number":
            difference = self._difference(part, frame)
            either = self._either(part, difference)
            if either is not None:
                return self._sufficient(core.Logic("or", tuple(either), part.span), frame)
            column = self.columns.add(frame.size, 0, 1, True, self.origins.auxiliary("holds", frame))
            self._require_where(column, part, difference, frame)
            return affine.of_columns(column)
        return self.indicators.of(part, frame)

    def _at_most(self, body: Affine, parent: Integers, frame: Frame, what: str) -> Affine:
        """New 0/1 columns, one a row of the frame, each at most every row of the body that belongs to it."""
        column = affine.of_columns(self.columns.add(frame.size, 0, 1, True, self.origins.auxiliary(what, frame)))
        none = np.full(body.size, np.inf)
        origin = self.origins.at(frame).take(parent)
        self.columns.add_rows(origin, body - column.take(parent), np.zeros(body.size), none)
        return column

    def _require_where(self, literal: Integers, node: core.Comparison, body: Affine, frame: Frame) -> None:
        """The comparison, whose sides differ by ``body``, holds in each row whose literal, a 0/1 column, is one."""
        origin = self.origins.at(frame)
        body, low, high, strict = self._comparison(node, body, frame)
        rows = replace(rows_of(origin, body, low, high), strict=strict)
        every, true = np.arange(frame.size), np.ones(frame.size, dtype=bool)
        self.columns.constraints.append(Implication(origin, every, literal, true, rows))

    def _imply(self, left: core.Expression, right: core.Expression, frame: Frame, name: str, span: Span) -> None:
        known = self.sets.truth_of_data(left, frame)
        if known is not None:
            rows = np.flatnonzero(known)
            if len(rows):
                self.require(right, frame.take(rows), name, span)
            return
        plain = isinstance(right, core.Comparison) and right.of == "number" and right.operator != "!="
        if isinstance(right, core.Comparison) and plain and not compares(left):
            literal = affine.single_columns(self.indicators.of(left, frame))
            if literal is not None:
                self._require_where(literal, right, self._difference(right, frame), frame)
                return
        self._clause([core.Not(left, left.span), right], frame)

    def _no_overlap(self, node: core.NoOverlap, frame: Frame) -> None:
        """Intervals that do not overlap, a group of them each row of the frame."""
        inner, group = self.sets.expand(frame, node.binders)
        present = np.full(inner.size, -1)
        known = None if node.presence is None else self.sets.truth_of_data(node.presence, inner)
        if known is not None:
            inner, group = inner.take(np.flatnonzero(known)), group[known]
            present = present[known]
        elif node.presence is not None:
            there = self.indicators.of(node.presence, inner)
            ever = np.flatnonzero((np.bincount(there.row, minlength=inner.size) > 0) | (there.constant != 0.0))
            inner, group = inner.take(ever), group[ever]
            present = self.expressions.literals(there.take(ever), inner)
        start = self.expressions.value(node.start, inner)
        length = (self.expressions.value(node.finish, inner) - start).merged()
        origin = self.origins.at(inner)
        constraint = NoOverlap(
            origin, group, present, self.expressions.defined(start, inner), length.constant, length.row, length.column,
            length.coefficient,
        )  # fmt: skip
        self.columns.constraints.append(constraint)

    def _set_property(self, node: core.SetProperty, frame: Frame) -> None:
        """``convex`` and ``pipeline``: sets by a 0/1 column a node."""
        if node.property == "pipeline" and frame.size > 1:
            for row in range(frame.size):
                self._set_property(node, frame.take(np.array([row])))
            return
        outer, _ = self.sets.expand(frame, node.outer)
        inner, parent = self.sets.expand(outer, (node.inner,))
        column = affine.membership_columns(self.indicators.of(node.membership, inner))
        if column is None:
            raise InputError(
                [Diagnostic("the condition must be a single decision such as v on d", node.membership.span)]
            )
        origin = self.origins.at(outer)
        origin = replace(origin, labels={**origin.labels, NODE: self.expressions.universe.labels["node"]})
        nodes = self.expressions.universe.sizes["node"]
        positions = inner.slots[node.inner.slots[0]]
        members = np.full((outer.size, nodes), -1, dtype=np.int64)
        members[parent, positions] = column
        present = np.zeros((outer.size, nodes), dtype=bool)
        present[parent, positions] = True
        if node.property == "pipeline":
            before, after = self.precedence
            alike = np.full(outer.size, -1, dtype=np.int64)
            devices = outer.slots.get(node.outer[0].slots[0]) if node.outer else None
            if devices is not None and self.interchangeable is not None and node.outer[0].sorts == ("device",):
                alike = self.interchangeable[devices]
            self.columns.constraints.append(Pipeline(origin, members, before, after, alike))
            return
        # Paths of a part run within the part: one constraint for each different range of nodes.
        patterns, back = np.unique(present, axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            rows = np.flatnonzero(back == k)
            source, target = self.edges
            kept = pattern[source] & pattern[target]
            self.columns.constraints.append(Convex(origin.take(rows), members[rows], source[kept], target[kept]))


_OPPOSITE = {"<=": ">", ">": "<=", ">=": "<", "<": ">=", "==": "!=", "!=": "=="}


def negated(node: core.Expression) -> core.Expression:
    """The opposite of a condition, with ``not`` moved one step inwards where that is possible."""
    match node:
        case core.Not(part=part):
            return part
        case core.Logic(operator="=>", parts=(left, right)):
            return core.Logic("and", (left, core.Not(right, right.span)), node.span)
        case core.Logic(operator=operator, parts=parts):
            other = "or" if operator == "and" else "and"
            return core.Logic(other, tuple(core.Not(p, p.span) for p in parts), node.span)
        case core.Comparison(of="number" | "truth", operator=operator):
            return replace(node, operator=_OPPOSITE[operator])
    return core.Not(node, node.span)


def both_ways(node: core.Comparison) -> tuple[tuple[core.Expression, core.Expression], ...]:
    """``a == b`` of truths as the pairs of what implies what; ``a != b`` likewise."""
    left, right = node.left, node.right
    if node.operator == "!=":
        return (left, core.Not(right, right.span)), (core.Not(left, left.span), right)
    return (left, right), (right, left)


def compares(node: core.Expression) -> bool:
    """Whether a condition compares numbers that depend on the placement."""
    return any(isinstance(p, core.Comparison) and p.of == "number" and walks.decided(p) for p in walks.every(node))


def guarded(node: core.Forall) -> core.Forall:
    """``forall v in s: data => body`` as ``forall v in s where data: body``."""
    while isinstance(node.body, core.Logic) and node.body.operator == "=>" and node.binders:
        left, right = node.body.parts
        if walks.decided(left):
            break
        last = node.binders[-1]
        both = left if last.condition is None else core.Logic("and", (last.condition, left), left.span)
        binders = (*node.binders[:-1], replace(last, condition=both))
        node = core.Forall(binders, right, node.span)
    return node
