"""Grounding of numbers, and of truths as 0/1 numbers, that depend on decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from placedsl.arrays import Integers
from placedsl.diagnostics import Diagnostic, InputError, Span
from placedsl.grounding.frames import Columns, Frame
from placedsl.grounding.indicators import IndicatorGrounder
from placedsl.grounding.maxima import MaximumGrounder
from placedsl.grounding.origins import Origins
from placedsl.grounding.sets import SetGrounder
from placedsl.grounding.universe import Universe
from placedsl.grounding.variables import DeclaredVariables
from placedsl.ir import affine
from placedsl.ir.affine import Affine
from placedsl.ir.program import Product
from placedsl.problem import expressions as core
from placedsl.problem.problem import Table


class Quantities(Protocol):
    """Where an expression finds the quantities of the vocabulary."""

    def of(self, node: core.Provided, arguments: list[Integers], size: int) -> Affine:
        """A quantity for each of ``size`` rows; ``arguments`` holds an array of positions per index."""
        ...


class ExpressionGrounder:
    """Expressions over the elements of a universe, as affine arrays over columns.

    ``quantities`` answers for the quantities of the vocabulary (None: no expression mentions one).  A variable that
    does not exist for some indices is zero there if ``missing_is_zero``, else an error.
    """

    def __init__(
        self,
        universe: Universe,
        columns: Columns,
        sets: Mapping[str, core.SetExpression],
        tables: Mapping[str, Table],
        quantities: Quantities | None = None,
        *,
        missing_is_zero: bool = False,
    ) -> None:
        self.universe = universe
        self.columns = columns
        self.quantities = quantities
        self.missing_is_zero = missing_is_zero
        self.variables = DeclaredVariables()
        self.origins = Origins(universe)
        self.sets = SetGrounder(universe, sets, tables, self.value)
        self.maxima = MaximumGrounder(columns, self.origins)
        self.indicators = IndicatorGrounder(self)
        #: Of one constraint: what needed columns of its own, by expression and frame; both are kept with it.
        self._made: dict[tuple[int, int], tuple[core.Expression, Frame, Affine]] = {}

    def begin(self) -> None:
        """Another constraint begins, which shares no columns with those before."""
        self._made.clear()

    def value(self, node: core.Expression, frame: Frame) -> Affine:
        """A number, or a truth as 0 or 1.

        Equations ask for both of their sides several times: what needs columns of its own is grounded once.
        """
        known = self._made.get((id(node), id(frame)))
        if known is not None:
            return known[2]
        columns = self.columns.count
        out = self._grounded(node, frame)
        if self.columns.count > columns:
            self._made[id(node), id(frame)] = node, frame, out
        return out

    def _grounded(self, node: core.Expression, frame: Frame) -> Affine:
        match node:
            case core.Constant(value=value):
                return affine.data(np.full(frame.size, float(value)))
            case core.Slot(name=name, sort="integer"):
                return affine.data(frame.slots[name].astype(float))
            case core.Pick(sort="integer"):
                return affine.data(self.sets.positions(node, frame).astype(float))
            case core.Attribute():
                return affine.data(np.asarray(self.sets.attribute(node, frame), dtype=float))
            case core.Table():
                return affine.data(np.asarray(self.sets.table(node, frame), dtype=float))
            case core.Decision():
                return self._decision(node, frame)
            case core.Provided():
                return self._provided(node, frame)
            case core.Arithmetic():
                return self._arithmetic(node, frame)
            case core.Aggregate():
                return self._aggregate(node, frame)
            case core.Largest(operator=op, items=items):
                values = [self.value(i, frame) for i in items]
                return self.maxima.of_values(op, values, frame, node.span)
            case core.Absolute(part=part):
                signed = self.value(part, frame)
                return self.maxima.of_values("max", [signed, -signed], frame, node.span)
            case core.Conditional(condition=condition, then=then, otherwise=otherwise):
                chosen = self.sets.condition(condition, frame)
                parts = []
                for branch, rows in ((then, np.flatnonzero(chosen)), (otherwise, np.flatnonzero(~chosen))):
                    if len(rows):
                        parts.append(self.value(branch, frame.take(rows)).placed(rows, frame.size))
                return parts[0] if len(parts) == 1 else parts[0] + parts[1] if parts else affine.data(np.zeros(0))
        return self.indicators.of(node, frame)

    def _decision(self, node: core.Decision, frame: Frame) -> Affine:
        """A variable; where a formulation declares none it is zero, where the spec does that is an error."""
        block = self.variables.blocks[node.variable]
        positions = [self.sets.positions(a, frame) for a in node.arguments]
        columns = block.columns_at(positions)
        if not positions:
            columns = np.repeat(columns, frame.size)
        missing = np.flatnonzero(columns < 0)
        if not self.missing_is_zero and len(missing):
            at = int(missing[0])
            sorts = self.variables.sorts[node.variable]
            shown = ", ".join(self.universe.label(s, int(p[at])) for s, p in zip(sorts, positions, strict=True))
            message = f"'{node.variable}' does not exist for {shown}"
            raise InputError([Diagnostic(message, node.span, "it exists for what its 'var' ranges over")])
        return affine.of_columns(columns)

    def _provided(self, node: core.Provided, frame: Frame) -> Affine:
        """A quantity of the vocabulary, through its definition in the formulation."""
        arguments = [self.sets.positions(a, frame) for a in node.arguments]
        assert self.quantities is not None
        return self.quantities.of(node, arguments, frame.size)

    def _arithmetic(self, node: core.Arithmetic, frame: Frame) -> Affine:
        left = self.value(node.left, frame)
        right = self.value(node.right, frame)
        if node.operator in "+-":
            with np.errstate(invalid="ignore"):
                out = left + right if node.operator == "+" else left - right
            if (np.isnan(out.constant) & np.isinf(left.constant) & np.isinf(right.constant)).any():
                raise InputError([Diagnostic("one infinite number less another has no value", node.span)])
            return out
        if node.operator == "/":
            if not right.is_data:
                raise InputError(
                    [Diagnostic("division by what depends on the placement is not linear", node.right.span)]
                )
            if not right.constant.all():
                raise InputError([Diagnostic("division by zero", node.right.span)])
            return left.scaled(1.0 / right.constant)
        if node.operator == "mod":
            if not right.constant.all():
                raise InputError([Diagnostic("division by zero", node.right.span)])
            if np.isinf(left.constant).any():
                raise InputError([Diagnostic("an infinite number has no remainder", node.left.span)])
            return affine.data(np.mod(left.constant, right.constant))
        if left.is_data or right.is_data:
            known, body = (left, right) if left.is_data else (right, left)
            # A column that does not exist is zero whatever its coefficient (a time that is infinite).
            factor = known.constant
            if np.isinf(factor).any():
                blank = np.isinf(factor) & (body.constant == 0.0)
                used = np.zeros(frame.size, dtype=bool)
                used[body.row] = True
                factor = np.where(blank & ~used, 0.0, factor)
                if np.isinf(factor).any():
                    raise InputError([Diagnostic("an infinite number cannot be a coefficient", node.span)])
            return body.scaled(factor)
        return self._product((node.left, left), (node.right, right), frame, node.span)

    def _product(
        self, left: tuple[core.Expression, Affine], right: tuple[core.Expression, Affine], frame: Frame, span: Span
    ) -> Affine:
        """The product of two expressions over columns: one of them must be 0 or 1."""
        for binary, (_, factor) in ((left, right), (right, left)):
            column = self._switch(*binary, frame)
            if column is None:
                continue
            origin = self.origins.auxiliary("product", frame, span)
            out = self.columns.add(factor.size, -np.inf, np.inf, False, origin)
            inner = self.defined(factor, frame)
            self.columns.constraints.append(Product(origin, out, column, inner))
            return affine.of_columns(out)
        raise InputError([Diagnostic("this product of two decisions is not linear", span,
                                     "one of the two must be a 0/1 decision such as (v on d)")])  # fmt: skip

    def _switch(self, node: core.Expression, body: Affine, frame: Frame) -> Integers | None:
        """0/1 columns that equal an expression; None where it may be something else."""
        column = affine.single_columns(body)
        if column is not None:
            return column if self.columns.binary(column) else None
        condition = isinstance(node, core.Logic | core.Not | core.Comparison | core.Forall)
        quantity = isinstance(node, core.Provided) and node.name in core.CONDITIONS
        if condition or quantity or self.columns.zero_or_one(body):
            return self.literals(body, frame)
        return None

    def literals(self, body: Affine, frame: Frame) -> Integers:
        """0/1 columns that equal an expression that is 0 or 1."""
        column = affine.single_columns(body)
        if column is not None:
            return column
        column = self.columns.add(frame.size, 0, 1, True, self.origins.auxiliary("there", frame))
        zero = np.zeros(frame.size)
        self.columns.add_rows(self.origins.at(frame), body - affine.of_columns(column), zero, zero)
        return column

    def defined(self, body: Affine, frame: Frame, integer: bool = False) -> Integers:
        """Columns that equal an affine expression (the expression's own where it is a single column)."""
        column = affine.single_columns(body)
        if column is not None:
            return column
        out = self.columns.add(body.size, -np.inf, np.inf, integer, self.origins.auxiliary("factor", frame))
        zero = np.zeros(body.size)
        self.columns.add_rows(self.origins.at(frame), body - affine.of_columns(out), zero, zero)
        return out

    def _aggregate(self, node: core.Aggregate, frame: Frame) -> Affine:
        inner, parent = self.sets.expand(frame, node.binders)
        if node.operator == "count":
            return self.indicators.of(node.body, inner).summed(parent, frame.size)
        body = self.value(node.body, inner)
        if node.operator == "sum":
            return body.summed(parent, frame.size)
        if node.operator == "mean":
            count = np.bincount(parent, minlength=frame.size).astype(float)
            if not count.all():
                raise InputError([Diagnostic("the mean of nothing has no value", node.span)])
            return body.summed(parent, frame.size).scaled(1.0 / count)
        return self.maxima.of_groups(node.operator, body, parent, frame, node.span)
