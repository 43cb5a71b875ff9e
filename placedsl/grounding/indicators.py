"""Grounding of truths as 0/1 numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError
from placedsl.grounding.frames import Frame, rows_of
from placedsl.ir import affine
from placedsl.ir.affine import Affine
from placedsl.ir.program import Implication
from placedsl.problem import expressions as core

if TYPE_CHECKING:
    from placedsl.grounding.expressions import ExpressionGrounder


class IndicatorGrounder:
    """Conditions that depend on decisions, as affine arrays that are 0 or 1."""

    def __init__(self, expressions: ExpressionGrounder) -> None:
        self.expressions = expressions
        self.sets = expressions.sets
        self.columns = expressions.columns
        self.origins = expressions.origins

    def of(self, node: core.Expression, frame: Frame) -> Affine:
        """An expression that is 1 where the condition holds and 0 where it does not."""
        known = self.sets.truth_of_data(node, frame)
        if known is not None:
            return affine.data(known.astype(float))
        match node:
            case core.Provided() | core.Decision():
                return self.expressions.value(node, frame)
            case core.Not(part=part):
                return affine.data(np.ones(frame.size)) - self.of(part, frame)
            case core.Logic(operator="=>", parts=(left, right)):
                return self._any([core.Not(left, left.span), right], frame)
            case core.Logic(operator="or", parts=parts):
                return self._any(list(parts), frame)
            case core.Logic(operator="and", parts=parts):
                negated: list[core.Expression] = [core.Not(p, p.span) for p in parts]
                return affine.data(np.ones(frame.size)) - self._any(negated, frame)
            case core.Comparison(of="truth", operator=op, left=left, right=right):
                if op == "!=":
                    same = core.Comparison("==", left, right, node.span, "truth")
                    return affine.data(np.ones(frame.size)) - self.of(same, frame)
                return self._same(self.of(left, frame), self.of(right, frame), frame)
            case core.Comparison():
                return self._reified(node, frame)
            case core.Forall(binders=binders, body=body):
                inner, parent = self.sets.expand(frame, binders)
                failing = (affine.data(np.ones(inner.size)) - self.of(body, inner)).summed(parent, frame.size)
                count = np.bincount(parent, minlength=frame.size).astype(float)
                out = self.columns.add(frame.size, 0, 1, True, self.origins.auxiliary("every", frame))
                y = affine.of_columns(out)
                # y = 1 means none fails; y = 0 means at least one does.
                high = np.full(frame.size, np.inf)
                origin = self.origins.at(frame)
                self.columns.add_rows(origin, failing + y.scaled(count), -high, count)
                self.columns.add_rows(origin, failing + y, np.ones(frame.size), high)
                return y
        raise InputError([Diagnostic("this cannot be part of a logical combination", node.span)])

    def _any(self, parts: list[core.Expression], frame: Frame) -> Affine:
        """1 where at least one part holds."""
        if exclusive(parts):  # a node is on one device: the sum is 0 or 1
            total = affine.data(np.zeros(frame.size))
            for part in parts:
                total = total + self.expressions.value(part, frame)
            return total
        values = [self.of(p, frame) for p in parts]
        y = affine.of_columns(self.columns.add(frame.size, 0, 1, True, self.origins.auxiliary("any", frame)))
        high = np.full(frame.size, np.inf)
        total, origin = affine.data(np.zeros(frame.size)), self.origins.at(frame)
        for value in values:
            total = total + value
            self.columns.add_rows(origin, y - value, np.zeros(frame.size), high)
        self.columns.add_rows(origin, total - y, np.zeros(frame.size), high)
        return y

    def _same(self, one: Affine, other: Affine, frame: Frame) -> Affine:
        """1 where two truths are the same; each stands in the rows once, so that nested ones do not double."""
        y = affine.of_columns(self.columns.add(frame.size, 0, 1, True, self.origins.auxiliary("same", frame)))
        origin, ones, high = self.origins.at(frame), np.ones(frame.size), np.full(frame.size, np.inf)
        self.columns.add_rows(origin, y - one - other, -ones, high)
        self.columns.add_rows(origin, y + one + other, ones, high)
        self.columns.add_rows(origin, y + one - other, -high, ones)
        self.columns.add_rows(origin, y - one + other, -high, ones)
        return y

    def _reified(self, node: core.Comparison, frame: Frame) -> Affine:
        """A 0/1 column for a comparison of whole-numbered sides."""
        body = self.expressions.value(node.left, frame) - self.expressions.value(node.right, frame)
        if node.operator in ("==", "!="):
            low = core.Comparison("<=", node.left, node.right, node.span)
            high = core.Comparison(">=", node.left, node.right, node.span)
            both = self.of(core.Logic("and", (low, high), node.span), frame)
            return both if node.operator == "==" else affine.data(np.ones(frame.size)) - both
        if node.operator in (">=", ">"):
            body = -body
        real = not self.columns.whole_numbered(body)
        excluded = node.operator in ("<", ">")
        step = 0.0 if real else 1.0
        strict = step if excluded else 0.0
        column = self.columns.add(frame.size, 0, 1, True, self.origins.auxiliary("holds", frame, node.span))
        none, zero = np.full(frame.size, np.inf), np.zeros(frame.size)
        origin = self.origins.at(frame)
        holds = replace(rows_of(origin, body, -none, zero - strict), strict=real and excluded)
        fails = replace(rows_of(origin, body, zero + step - strict, none), strict=real and not excluded)
        every = np.arange(frame.size)
        self.columns.constraints += [
            Implication(origin, every, column, np.ones(frame.size, dtype=bool), holds),
            Implication(origin, every, column, np.zeros(frame.size, dtype=bool), fails),
        ]
        return affine.of_columns(column)


def exclusive(parts: list[core.Expression]) -> bool:
    """Whether conditions say that one node is on one of several devices."""
    nodes, devices = set(), set()
    for part in parts:
        match part:
            case core.Provided(name="on", arguments=(node, core.Element(position=device))):
                nodes.add(node)
                devices.add(device)
            case _:
                return False
    return len(nodes) == 1 and len(devices) == len(parts)
