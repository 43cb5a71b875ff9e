"""Grounding of numbers, and of truths as 0/1 numbers, that depend on decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.diagnostics import Diagnostic, InputError, Span
from placedsl.grounding.frames import Columns, Frame
from placedsl.grounding.relations import Relations
from placedsl.grounding.universe import Universe
from placedsl.ir import affine
from placedsl.ir.affine import Affine
from placedsl.ir.program import Implication, Maximum, Origin, Product, RowBlock, VariableBlock
from placedsl.problem import expressions as core
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Table


class Numbers(Relations):
    """Expressions as affine arrays over columns.

    ``formulation_side`` is the grounder of the formulation (over the quotient) that answers for provided
    quantities; None when this is that grounder.  ``crossing`` maps elements to its universe.
    """

    def __init__(
        self,
        universe: Universe,
        columns: Columns,
        sets: Mapping[str, core.SetExpression],
        tables: Mapping[str, Table],
        formulation_side: Numbers | None = None,
        crossing: Mapping[core.Sort, Integers] | None = None,
    ) -> None:
        super().__init__(universe, columns, sets, tables)
        self.formulation_side = formulation_side
        self.crossing = crossing or {}
        self.formulation: Formulation | None = None
        self.variables: dict[str, VariableBlock] = {}
        self.variable_sorts: dict[str, tuple[core.Sort, ...]] = {}
        self.origin = Origin("objective")
        self.subject = "objective"
        self._scalars: dict[str, Affine] = {}

    def auxiliary(self, what: str, frame: Frame, span: Span | None = None) -> Origin:
        """The name of columns, one a row of the frame, that stand for a part of what is being grounded."""
        return self.origin_of(f"{self.subject}_{what}", span or self.origin.span, frame)

    def origin_at(self, frame: Frame) -> Origin:
        """The constraint that is being grounded, for rows that are those of a frame."""
        return self.origin_of(self.origin.name, self.origin.span, frame)

    # numbers

    def value(self, node: core.Expression, frame: Frame) -> Affine:
        """A number, or a truth as 0 or 1."""
        match node:
            case core.Constant(value=value):
                return affine.data(np.full(frame.size, float(value)))
            case core.Slot(name=name, sort="integer"):
                return affine.data(frame.slots[name].astype(float))
            case core.Pick(sort="integer"):
                return affine.data(self.positions(node, frame).astype(float))
            case core.Attribute():
                return affine.data(np.asarray(self.attribute(node, frame), dtype=float))
            case core.Table():
                return affine.data(np.asarray(self.table(node, frame), dtype=float))
            case core.Decision():
                return self._decision(node, frame)
            case core.Provided():
                return self.provided(node, frame)
            case core.Arithmetic():
                return self._arithmetic(node, frame)
            case core.Aggregate():
                return self._aggregate(node, frame)
            case core.Largest(operator=op, items=items):
                values = [self.value(i, frame) for i in items]
                return self._largest(op, values, frame, node.span)
            case core.Conditional(condition=condition, then=then, otherwise=otherwise):
                chosen = self.condition(condition, frame)
                parts = []
                for branch, rows in ((then, np.flatnonzero(chosen)), (otherwise, np.flatnonzero(~chosen))):
                    if len(rows):
                        parts.append(self.value(branch, frame.take(rows)).placed(rows, frame.size))
                return parts[0] if len(parts) == 1 else parts[0] + parts[1] if parts else affine.data(np.zeros(0))
        return self.indicator(node, frame)

    def _decision(self, node: core.Decision, frame: Frame) -> Affine:
        """A variable; where a formulation declares none it is zero, where the spec does that is an error."""
        block = self.variables[node.variable]
        positions = [self.positions(a, frame) for a in node.arguments]
        columns = block.columns_at(positions)
        if not positions:
            columns = np.repeat(columns, frame.size)
        missing = np.flatnonzero(columns < 0)
        if self.formulation_side is not None and len(missing):
            at = int(missing[0])
            sorts = self.variable_sorts[node.variable]
            shown = ", ".join(self.universe.label(s, int(p[at])) for s, p in zip(sorts, positions, strict=True))
            message = f"'{node.variable}' does not exist for {shown}"
            raise InputError([Diagnostic(message, node.span, "it exists for what its 'var' ranges over")])
        return affine.of_columns(columns)

    def provided(self, node: core.Provided, frame: Frame) -> Affine:
        """A quantity of the vocabulary, through its definition in the formulation."""
        arguments = [self.positions(a, frame) for a in node.arguments]
        owner = self.formulation_side or self
        sorts = owner.provided_sorts(node)
        if self.formulation_side is not None:
            arguments = [
                self.crossing[s][a] if s in self.crossing else a for s, a in zip(sorts, arguments, strict=True)
            ]
        if not arguments:
            out = owner.scalar(node.name)
            return out.take(np.zeros(frame.size, dtype=np.int64))
        sizes = [owner.universe.sizes[s] for s in sorts]
        key = np.ravel_multi_index(arguments, sizes) if frame.size else np.zeros(0, dtype=np.int64)
        known, back = np.unique(key, return_inverse=True)
        slots = np.unravel_index(known, sizes)
        return owner.definition(node.name, tuple(np.asarray(s) for s in slots)).take(back)

    def provided_sorts(self, node: core.Provided) -> tuple[core.Sort, ...]:
        """The sorts of a quantity's arguments; InputError when this formulation does not provide it."""
        assert self.formulation is not None
        if node.name not in self.formulation.provides:
            word = "v on d" if node.name == "on" else node.name
            hidden = ("on",) if self.universe.sizes["cluster"] else ("on", "inside")
            provided = ", ".join(n for n in self.formulation.provides if n not in hidden)
            message = f"'{word}' is not provided under this objective and schedule"
            raise InputError(
                [Diagnostic(message, node.span, f"formulation '{self.formulation.name}' provides {provided}")]
            )
        return self.formulation.provides[node.name].sorts

    def scalar(self, name: str) -> Affine:
        """A quantity without arguments; grounded once."""
        if name not in self._scalars:
            self._scalars[name] = self.definition(name, ())
        return self._scalars[name]

    def definition(self, name: str, arguments: tuple[Integers, ...]) -> Affine:
        """The body of a definition for these arguments."""
        assert self.formulation is not None
        definition = self.formulation.provides[name]
        size = len(arguments[0]) if arguments else 1
        frame = Frame(size, dict(zip(definition.slots, arguments, strict=True)),
                      dict(zip(definition.slots, definition.sorts, strict=True)))  # fmt: skip
        subject, self.subject = self.subject, name
        out = self.value(definition.body, frame)
        self.subject = subject
        return out

    def _arithmetic(self, node: core.Arithmetic, frame: Frame) -> Affine:
        left = self.value(node.left, frame)
        right = self.value(node.right, frame)
        if node.operator == "+":
            return left + right
        if node.operator == "-":
            return left - right
        if node.operator == "/":
            if not right.is_data:
                raise InputError(
                    [Diagnostic("division by what depends on the placement is not linear", node.right.span)]
                )
            if not right.constant.all():
                raise InputError([Diagnostic("division by zero", node.right.span)])
            return left.scaled(1.0 / right.constant)
        if left.is_data:
            left, right = right, left
        if right.is_data:
            # A column that does not exist is zero whatever its coefficient (a time that is infinite).
            factor = right.constant
            if np.isinf(factor).any():
                blank = np.isinf(factor) & (left.constant == 0.0)
                used = np.zeros(frame.size, dtype=bool)
                used[left.row] = True
                factor = np.where(blank & ~used, 0.0, factor)
                if np.isinf(factor).any():
                    raise InputError([Diagnostic("an infinite number cannot be a coefficient", node.span)])
            return left.scaled(factor)
        return self._product(left, right, frame, node.span)

    def _product(self, left: Affine, right: Affine, frame: Frame, span: Span) -> Affine:
        """The product of two expressions over columns: one of them must be a binary column."""
        for binary, factor in ((left, right), (right, left)):
            column = single_columns(binary)
            if column is None or not self.binary(column):
                continue
            origin = self.auxiliary("product", frame, span)
            out = self.columns.add(binary.size, -np.inf, np.inf, False, origin)
            inner = self.defined(factor, frame)
            self.columns.constraints.append(Product(origin, out, column, inner))
            return affine.of_columns(out)
        raise InputError([Diagnostic("this product of two decisions is not linear", span,
                                     "one of the two must be a 0/1 decision such as (v on d)")])  # fmt: skip

    def whole_numbered(self, body: Affine) -> bool:
        """Whether an expression is a whole number at every point."""
        integer = np.concatenate(self.columns.integer)
        return bool(integer[body.column].all() and whole(body.coefficient) and whole(body.constant))

    def binary(self, columns: Integers) -> bool:
        """All of these columns are 0/1."""
        lower, upper = np.concatenate(self.columns.lower), np.concatenate(self.columns.upper)
        integer = np.concatenate(self.columns.integer)
        return bool(integer[columns].all() and (lower[columns] >= 0).all() and (upper[columns] <= 1).all())

    def defined(self, body: Affine, frame: Frame, integer: bool = False) -> Integers:
        """Columns that equal an affine expression (the expression's own where it is a single column)."""
        column = single_columns(body)
        if column is not None:
            return column
        out = self.columns.add(body.size, -np.inf, np.inf, integer, self.auxiliary("factor", frame))
        zero = np.zeros(body.size)
        self.columns.add_rows(self.origin_at(frame), body - affine.of_columns(out), zero, zero)
        return out

    def _aggregate(self, node: core.Aggregate, frame: Frame) -> Affine:
        inner, parent = self.expand(frame, node.binders)
        if node.operator == "count":
            return self.indicator(node.body, inner).summed(parent, frame.size)
        body = self.value(node.body, inner)
        if node.operator == "sum":
            return body.summed(parent, frame.size)
        if node.operator == "mean":
            count = np.bincount(parent, minlength=frame.size).astype(float)
            if not count.all():
                raise InputError([Diagnostic("the mean of nothing has no value", node.span)])
            return body.summed(parent, frame.size).scaled(1.0 / count)
        return self._extreme(node.operator, body, parent, frame, node.span)

    def _largest(self, operator: str, values: list[Affine], frame: Frame, span: Span) -> Affine:
        """``max`` or ``min`` of several values in each row of the frame.

        A constant that another value never falls below is left out, and what is then alone needs no maximum: a
        formulation may name components that some of its devices do not have.
        """
        if operator == "min":
            return -self._largest("max", [-value for value in values], frame, span)
        if all(value.is_data for value in values):
            return self._extreme("max", stack(values), np.tile(np.arange(frame.size), len(values)), frame, span)
        least = np.stack([self._least(value) for value in values])
        constant = np.stack([np.bincount(value.row, minlength=frame.size) == 0 for value in values])
        kept = np.ones(least.shape, dtype=bool)
        for i in range(len(values)):
            others = np.where(kept, least, -np.inf)
            others[i] = -np.inf
            kept[i] = ~(constant[i] & (others.max(axis=0) >= least[i]))
        alone = kept.sum(axis=0) == 1
        several = np.flatnonzero(~alone)
        parts = [
            value.take(rows).placed(rows, frame.size)
            for value, rows in ((v, np.flatnonzero(k & alone)) for v, k in zip(values, kept, strict=True))
            if len(rows)
        ]
        if len(several):
            within = frame.take(several)
            position = np.cumsum(~alone) - 1
            chosen = [np.flatnonzero(k & ~alone) for k in kept]
            stacked = stack([v.take(rows) for v, rows in zip(values, chosen, strict=True) if len(rows)])
            group = position[np.concatenate(chosen)]
            parts.append(self._extreme("max", stacked, group, within, span).placed(several, frame.size))
        out = parts[0]
        for part in parts[1:]:
            out = out + part
        return out

    def _least(self, body: Affine) -> Floats:
        """A number that each row is never below, by the bounds of its columns."""
        lower, upper = np.concatenate(self.columns.lower), np.concatenate(self.columns.upper)
        ends = np.where(body.coefficient > 0.0, lower[body.column], upper[body.column])
        with np.errstate(invalid="ignore"):
            terms = np.where(body.coefficient == 0.0, 0.0, body.coefficient * ends)
        return body.constant + np.bincount(body.row, terms, minlength=body.size)

    def _extreme(self, operator: str, body: Affine, group: Integers, frame: Frame, span: Span) -> Affine:
        """``max`` or ``min`` of the rows of each group, one group a row of the frame."""
        groups = frame.size
        if len(np.unique(group)) < groups:
            raise InputError([Diagnostic(f"the {operator} of nothing has no value", span)])
        if operator == "min":
            return -self._extreme("max", -body, group, frame, span)
        if body.is_data:
            out = np.full(groups, -np.inf)
            np.maximum.at(out, group, body.constant)
            return affine.data(out)
        origin = self.auxiliary("max", frame, span)
        result = self.columns.add(groups, -np.inf, np.inf, False, origin)
        self.columns.constraints.append(
            Maximum(origin, result, group, body.constant, body.row, body.column, body.coefficient, False)
        )
        return affine.of_columns(result)

    # truths as 0/1

    def indicator(self, node: core.Expression, frame: Frame) -> Affine:
        """An expression that is 1 where the condition holds and 0 where it does not."""
        known = self.truth_of_data(node, frame)
        if known is not None:
            return affine.data(known.astype(float))
        match node:
            case core.Provided() | core.Decision():
                return self.value(node, frame)
            case core.Not(part=part):
                return affine.data(np.ones(frame.size)) - self.indicator(part, frame)
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
                    return affine.data(np.ones(frame.size)) - self.indicator(same, frame)
                both = core.Logic("and", (left, right), node.span)
                none = core.Logic("and", (core.Not(left, left.span), core.Not(right, right.span)), node.span)
                return self._any([both, none], frame)
            case core.Comparison():
                return self._reified(node, frame)
            case core.Forall(binders=binders, body=body):
                inner, parent = self.expand(frame, binders)
                failing = (affine.data(np.ones(inner.size)) - self.indicator(body, inner)).summed(parent, frame.size)
                count = np.bincount(parent, minlength=frame.size).astype(float)
                out = self.columns.add(frame.size, 0, 1, True, self.auxiliary("every", frame))
                y = affine.of_columns(out)
                # y = 1 means none fails; y = 0 means at least one does.
                high = np.full(frame.size, np.inf)
                origin = self.origin_at(frame)
                self.columns.add_rows(origin, failing + y.scaled(count), -high, count)
                self.columns.add_rows(origin, failing + y, np.ones(frame.size), high)
                return y
        raise InputError([Diagnostic("this cannot be part of a logical combination", node.span)])

    def _any(self, parts: list[core.Expression], frame: Frame) -> Affine:
        """1 where at least one part holds."""
        if exclusive(parts):  # a node is on one device: the sum is 0 or 1
            total = affine.data(np.zeros(frame.size))
            for part in parts:
                total = total + self.value(part, frame)
            return total
        values = [self.indicator(p, frame) for p in parts]
        y = affine.of_columns(self.columns.add(frame.size, 0, 1, True, self.auxiliary("any", frame)))
        high = np.full(frame.size, np.inf)
        total, origin = affine.data(np.zeros(frame.size)), self.origin_at(frame)
        for value in values:
            total = total + value
            self.columns.add_rows(origin, y - value, np.zeros(frame.size), high)
        self.columns.add_rows(origin, total - y, np.zeros(frame.size), high)
        return y

    def _reified(self, node: core.Comparison, frame: Frame) -> Affine:
        """A 0/1 column for a comparison of whole-numbered sides."""
        body = self.value(node.left, frame) - self.value(node.right, frame)
        if node.operator in ("==", "!="):
            low = core.Comparison("<=", node.left, node.right, node.span)
            high = core.Comparison(">=", node.left, node.right, node.span)
            both = self.indicator(core.Logic("and", (low, high), node.span), frame)
            return both if node.operator == "==" else affine.data(np.ones(frame.size)) - both
        if node.operator in (">=", ">"):
            body = -body
        real = not self.whole_numbered(body)
        excluded = node.operator in ("<", ">")
        step = 0.0 if real else 1.0
        strict = step if excluded else 0.0
        column = self.columns.add(frame.size, 0, 1, True, self.auxiliary("holds", frame, node.span))
        none, zero = np.full(frame.size, np.inf), np.zeros(frame.size)
        origin = self.origin_at(frame)
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


def single_columns(body: Affine) -> Integers | None:
    """The columns, if each row is exactly one column with coefficient one."""
    if body.constant.any() or len(body.row) != body.size or not (body.coefficient == 1.0).all():
        return None
    out = np.full(body.size, -1, dtype=np.int64)
    out[body.row] = body.column
    return out if (out >= 0).all() else None


def membership_columns(body: Affine) -> Integers | None:
    """The columns, if each row is one column with coefficient one or nothing (-1)."""
    if body.constant.any() or not (body.coefficient == 1.0).all() or len(np.unique(body.row)) < len(body.row):
        return None
    out = np.full(body.size, -1, dtype=np.int64)
    out[body.row] = body.column
    return out


def rows_of(origin: Origin, body: Affine, lower: Floats, upper: Floats) -> RowBlock:
    """``lower <= body <= upper`` as a block."""
    return RowBlock(origin, body.row, body.column, body.coefficient, lower - body.constant, upper - body.constant)


def whole(values: Floats) -> bool:
    """Whether all of these are whole numbers."""
    return bool((values == np.round(values)).all())


def stack(values: list[Affine]) -> Affine:
    """One above the other."""
    offset, parts = 0, []
    total = sum(v.size for v in values)
    for value in values:
        parts.append(value.placed(np.arange(offset, offset + value.size), total))
        offset += value.size
    out = parts[0]
    for part in parts[1:]:
        out = out + part
    return out
