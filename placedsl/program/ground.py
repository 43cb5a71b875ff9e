"""Grounding of constraints: expressions that must hold become rows and global constraints.

A *frame* is a relation over the bound variables: one integer array a variable, one row a combination.
``forall``/``sum``/``where`` are joins of frames with sets; nothing here loops over terms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from placedsl import expressions as core
from placedsl.diagnostics import Diagnostic, InputError, Span
from placedsl.program import affine
from placedsl.program.affine import Affine
from placedsl.program.frames import Frame
from placedsl.program.numbers import Numbers, membership_columns, rows_of, single_columns, stack
from placedsl.program.program import NODE, Convex, Floats, Implication, Integers, Pipeline


class Grounder(Numbers):
    """Grounds the constraints of one universe.

    ``pairs`` are the node pairs along which a pipeline runs forward, ``edges`` the graph's; ``alike`` a class
    number a device where devices may be exchanged for each other (empty: they may not).
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        none = np.zeros(0, dtype=np.int64)
        self.pairs: tuple[Integers, Integers] = (none, none)
        self.edges: tuple[Integers, Integers] = (none, none)
        self.alike: Integers = none

    def require(self, node: core.Expression, frame: Frame, name: str, span: Span) -> None:
        """Add rows and global constraints that make the condition hold in every row of the frame."""
        self.subject = name
        self.origin = origin = self.origin_of(name, span, frame)
        none, zero, one = np.full(frame.size, np.inf), np.zeros(frame.size), np.ones(frame.size)
        if not isinstance(node, core.Forall | core.SetProperty):
            known = self.truth_of_data(node, frame)
            if known is not None:
                self.columns.impossible += [(origin, int(i)) for i in np.flatnonzero(~known)]
                return
        match node:
            case core.Forall(binders=binders, body=body):
                inner, _ = self.expand(frame, binders)
                self.require(body, inner, name, span)
            case core.Logic(operator="and", parts=parts):
                for part in parts:
                    self.require(part, frame, name, span)
            case core.Logic(operator="=>", parts=(left, right)):
                self._imply(left, right, frame, name, span)
            case core.Logic(operator="or", parts=parts):
                self._clause(list(parts), frame)
            case core.Not(part=core.Logic(operator="=>", parts=(left, right))):
                self.require(left, frame, name, span)
                self.require(core.Not(right, right.span), frame, name, span)
            case core.Not(part=part):
                self.columns.add_rows(origin, self.indicator(part, frame), zero, zero)
            case core.Comparison(of="truth", operator=op, left=left, right=right):
                a, b = self.indicator(left, frame), self.indicator(right, frame)
                if op == "==":
                    self.columns.add_rows(origin, a - b, zero, zero)
                else:
                    self.columns.add_rows(origin, a + b, one, one)
            case core.Comparison():
                self.columns.add_rows(origin, *self._comparison(node, frame))
            case core.SetProperty():
                self._set_property(node, frame)
            case _:
                self.columns.add_rows(origin, self.indicator(node, frame), one, none)

    def _comparison(self, node: core.Comparison, frame: Frame) -> tuple[Affine, Floats, Floats]:
        """What lies between which bounds when a comparison of numbers holds."""
        body = self.value(node.left, frame) - self.value(node.right, frame)
        none, zero = np.full(body.size, np.inf), np.zeros(body.size)
        match node.operator:
            case "<=":
                return body, -none, zero
            case ">=":
                return body, zero, none
            case "==":
                return body, zero, zero
        if self.whole_numbered(body):
            match node.operator:
                case "<":
                    return body, -none, zero - 1.0
                case ">":
                    return body, zero + 1.0, none
                case "!=":
                    return self.indicator(node, frame), zero + 1.0, none
        message = f"'{node.operator}' between numbers that depend on the placement cannot be stated"
        raise InputError([Diagnostic(message, node.span, "use <=, >= or ==")])

    def _clause(self, parts: list[core.Expression], frame: Frame) -> None:
        total = affine.data(np.zeros(frame.size))
        for part in parts:
            total = total + self._sufficient(part, frame)
        self.columns.add_rows(self.origin_at(frame), total, np.ones(frame.size), np.full(frame.size, np.inf))

    def _sufficient(self, part: core.Expression, frame: Frame) -> Affine:
        """0/1 that may be 1 only where the part holds (it need not be)."""
        if self.truth_of_data(part, frame) is not None:
            return self.indicator(part, frame)
        match part:
            case core.Logic(operator="=>", parts=(left, right)):
                return self._sufficient(core.Logic("or", (core.Not(left, left.span), right), part.span), frame)
            case core.Logic(operator="or", parts=parts):
                total = affine.data(np.zeros(frame.size))
                for one in parts:
                    total = total + self._sufficient(one, frame)
                return self._at_most(total, np.arange(frame.size), frame, "any")
            case core.Logic(operator="and", parts=parts):
                every = np.tile(np.arange(frame.size), len(parts))
                return self._at_most(stack([self._sufficient(one, frame) for one in parts]), every, frame, "all")
            case core.Forall(binders=binders, body=body):
                inner, parent = self.expand(frame, binders)
                return self._at_most(self._sufficient(body, inner), parent, frame, "every")
        if isinstance(part, core.Comparison) and part.of == "number":
            column = self.columns.add(frame.size, 0, 1, True, self.auxiliary("holds", frame))
            self._require_where(column, part, frame)
            return affine.of_columns(column)
        return self.indicator(part, frame)

    def _at_most(self, body: Affine, parent: Integers, frame: Frame, what: str) -> Affine:
        """New 0/1 columns, one a row of the frame, each at most every row of the body that belongs to it."""
        column = affine.of_columns(self.columns.add(frame.size, 0, 1, True, self.auxiliary(what, frame)))
        none = np.full(body.size, np.inf)
        origin = self.origin_at(frame).take(parent)
        self.columns.add_rows(origin, body - column.take(parent), np.zeros(body.size), none)
        return column

    def _require_where(self, literal: Integers, node: core.Comparison, frame: Frame) -> None:
        """The comparison holds in each row whose literal, a 0/1 column, is one."""
        origin = self.origin_at(frame)
        rows = rows_of(origin, *self._comparison(node, frame))
        every, true = np.arange(frame.size), np.ones(frame.size, dtype=bool)
        self.columns.constraints.append(Implication(origin, every, literal, true, rows))

    def _imply(self, left: core.Expression, right: core.Expression, frame: Frame, name: str, span: Span) -> None:
        known = self.truth_of_data(left, frame)
        if known is not None:
            rows = np.flatnonzero(known)
            if len(rows):
                self.require(right, frame.take(rows), name, span)
            return
        if isinstance(right, core.Comparison) and right.of == "number":
            literal = single_columns(self.indicator(left, frame))
            if literal is not None:
                self._require_where(literal, right, frame)
                return
        self._clause([core.Not(left, left.span), right], frame)

    def _set_property(self, node: core.SetProperty, frame: Frame) -> None:
        """``convex`` and ``pipeline``: sets by a 0/1 column a node."""
        outer, _ = self.expand(frame, node.outer)
        inner, parent = self.expand(outer, (node.inner,))
        column = membership_columns(self.indicator(node.membership, inner))
        if column is None:
            raise InputError(
                [Diagnostic("the condition must be a single decision such as v on d", node.membership.span)]
            )
        origin = self.origin_at(outer)
        origin = replace(origin, labels={**origin.labels, NODE: self.universe.labels["node"]})
        nodes = self.universe.sizes["node"]
        positions = inner.slots[node.inner.slots[0]]
        members = np.full((outer.size, nodes), -1, dtype=np.int64)
        members[parent, positions] = column
        present = np.zeros((outer.size, nodes), dtype=bool)
        present[parent, positions] = True
        if node.property == "pipeline":
            before, after = self.pairs
            alike = np.full(outer.size, -1, dtype=np.int64)
            devices = outer.slots.get(node.outer[0].slots[0]) if node.outer else None
            if devices is not None and len(self.alike) and node.outer[0].sorts == ("device",):
                alike = self.alike[devices]
            self.columns.constraints.append(Pipeline(origin, members, before, after, alike))
            return
        # Paths of a part run within the part: one constraint for each different range of nodes.
        patterns, back = np.unique(present, axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            rows = np.flatnonzero(back == k)
            source, target = self.edges
            kept = pattern[source] & pattern[target]
            self.columns.constraints.append(Convex(origin.take(rows), members[rows], source[kept], target[kept]))
