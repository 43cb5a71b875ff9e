"""Grounding: expressions over index frames become affine arrays, rows and global constraints.

A *frame* is a relation over the bound variables: one integer array a variable, one row a combination.
``forall``/``sum``/``where`` are joins of frames with sets; nothing here loops over terms.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from placedsl import expressions as core
from placedsl.diagnostics import Diagnostic, InputError, Span
from placedsl.formulation import Formulation
from placedsl.program import affine
from placedsl.program.affine import Affine, spread
from placedsl.program.program import (
    Booleans,
    Convex,
    Floats,
    GlobalConstraint,
    Implication,
    Integers,
    Maximum,
    Origin,
    Pipeline,
    Product,
    RowBlock,
    VariableBlock,
)
from placedsl.program.universe import Universe

_MOST_ROWS = 50_000_000


@dataclass(frozen=True, eq=False)
class Frame:
    """``size`` combinations of bound variables."""

    size: int
    slots: Mapping[str, Integers]
    sorts: Mapping[str, core.Sort]

    def take(self, rows: Integers) -> Frame:
        """The combinations at these positions."""
        return Frame(len(rows), {k: v[rows] for k, v in self.slots.items()}, self.sorts)


ROOT = Frame(1, {}, {})


@dataclass
class Columns:
    """Columns and constraints as they come into being."""

    lower: list[Floats] = field(default_factory=list)
    upper: list[Floats] = field(default_factory=list)
    integer: list[Booleans] = field(default_factory=list)
    count: int = 0
    rows: list[RowBlock] = field(default_factory=list)
    constraints: list[GlobalConstraint] = field(default_factory=list)
    impossible: list[tuple[Origin, int]] = field(default_factory=list)

    def add(self, size: int, low: float, high: float, integer: bool) -> Integers:
        """New columns."""
        self.lower.append(np.full(size, low))
        self.upper.append(np.full(size, high))
        self.integer.append(np.full(size, integer))
        self.count += size
        return np.arange(self.count - size, self.count)

    def add_rows(self, origin: Origin, body: Affine, lower: Floats, upper: Floats) -> None:
        """``lower <= body <= upper``; rows without columns are decided here."""
        # A side that is infinite (a memory without limit) leaves a row that always or never holds.
        with np.errstate(invalid="ignore"):
            lower = np.where(np.isneginf(lower), lower, lower - body.constant)
            upper = np.where(np.isposinf(upper), upper, upper - body.constant)
        filled = np.zeros(body.size, dtype=bool)
        filled[body.row[body.coefficient != 0.0]] = True
        slack = 1e-9
        false = ~filled & ((lower > slack * np.maximum(1.0, abs(lower))) | (upper < -slack * np.maximum(1.0, abs(upper))))
        self.impossible += [(origin, int(i)) for i in np.flatnonzero(false)]
        kept = filled & ((lower > -np.inf) | (upper < np.inf))
        position = np.cumsum(kept) - 1
        entries = kept[body.row] & (body.coefficient != 0.0)
        indices = {k: v[kept] for k, v in origin.indices.items()}
        origin = Origin(origin.name, origin.span, indices, origin.labels)
        self.rows.append(
            RowBlock(origin, position[body.row[entries]], body.column[entries], body.coefficient[entries],
                     lower[kept], upper[kept])
        )  # fmt: skip


class Grounder:
    """Grounds expressions over one universe.

    ``formulation_side`` is the grounder of the formulation (over the quotient) that answers for
    provided quantities; None when this is that grounder.  ``crossing`` maps elements to its universe.
    """

    def __init__(
        self,
        universe: Universe,
        columns: Columns,
        sets: Mapping[str, core.Binder],
        formulation_side: Grounder | None = None,
        crossing: Mapping[core.Sort, Integers] | None = None,
    ) -> None:
        self.universe = universe
        self.columns = columns
        self.sets = sets
        self.formulation_side = formulation_side
        self.crossing = crossing or {}
        self.formulation: Formulation | None = None
        self.variables: dict[str, VariableBlock] = {}
        self.pairs: tuple[Integers, Integers] = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        self.edges: tuple[Integers, Integers] = self.pairs
        self.alike: Integers = np.zeros(0, dtype=np.int64)
        self.origin = Origin("objective")
        self._set_cache: dict[str, tuple[Integers, ...]] = {}
        self._scalars: dict[str, Affine] = {}

    # frames

    def members(self, name: str) -> tuple[Integers, ...]:
        """The elements of a named set, one array a sort."""
        if name in self.universe.sets:
            return self.universe.sets[name]
        if name not in self._set_cache:
            if name not in self.sets:
                return (np.zeros(0, dtype=np.int64),)  # a device family of none
            binder = self.sets[name]
            frame, _ = self.expand(ROOT, (binder,))
            self._set_cache[name] = tuple(frame.slots[s] for s in binder.slots)
        return self._set_cache[name]

    def expand(self, frame: Frame, binders: tuple[core.Binder, ...]) -> tuple[Frame, Integers]:
        """Join a frame with binders; returns the wider frame and, per row, the row it came from."""
        parent = np.arange(frame.size)
        for binder in binders:
            rows, values = self._join(frame, binder.set)
            if len(rows) > _MOST_ROWS:
                message = f"this ranges over {len(rows):,} combinations, more than {_MOST_ROWS:,}"
                raise InputError([Diagnostic(message, binder.span, "narrow it with 'where' or smaller sets")])
            slots = {k: v[rows] for k, v in frame.slots.items()} | dict(zip(binder.slots, values, strict=True))
            sorts = dict(frame.sorts) | dict(zip(binder.slots, binder.sorts, strict=True))
            frame, parent = Frame(len(rows), slots, sorts), parent[rows]
            if binder.condition is not None:
                kept = np.flatnonzero(self.condition(binder.condition, frame))
                frame, parent = frame.take(kept), parent[kept]
        return frame, parent

    def _join(self, frame: Frame, of: core.SetExpression) -> tuple[Integers, tuple[Integers, ...]]:
        if isinstance(of, core.Members):
            relation = self.universe.relations[of.owner_sort]
            owner = self.positions(of.owner, frame)
            counts = relation.start[owner + 1] - relation.start[owner]
            return np.repeat(np.arange(frame.size), counts), (relation.member[spread(relation.start[owner], counts)],)
        if isinstance(of, core.NamedSet):
            values = self.members(of.name)
        elif isinstance(of, core.Interval):
            values = (np.arange(of.low, of.high + 1),)
        else:
            values = (np.array(of.positions, dtype=np.int64),)
        size = len(values[0])
        rows = np.repeat(np.arange(frame.size), size)
        return rows, tuple(np.tile(v, frame.size) for v in values)

    # data

    def positions(self, node: core.Expression, frame: Frame) -> Integers:
        """An element-valued expression."""
        match node:
            case core.Slot(name=name):
                return frame.slots[name]
            case core.Element(position=position):
                return np.full(frame.size, position)
            case core.Pick(set=of, index=index, span=span):
                members = self.members(of.name)[0]
                if index > len(members):
                    message = f"'{of.name}' has {len(members)} elements, there is no number {index}"
                    raise InputError([Diagnostic(message, span)])
                return np.full(frame.size, members[index - 1])
            case core.Attribute():
                return np.asarray(self.attribute(node, frame), dtype=np.int64)
        raise TypeError(f"{type(node).__name__} is no element")

    def attribute(self, node: core.Attribute, frame: Frame) -> np.ndarray:
        """The values of an attribute."""
        column = self.universe.attributes[node.sort, node.name]
        owner = self.positions(node.owner, frame)
        if node.device is None:
            return np.asarray(column[owner])
        return np.asarray(column[owner, self.positions(node.device, frame)])

    def condition(self, node: core.Expression, frame: Frame) -> Booleans:
        """A condition on data; raises InputError when it depends on decisions."""
        out = self.truth_of_data(node, frame)
        if out is None:
            raise InputError([Diagnostic("a condition may not depend on the placement", node.span)])
        return out

    def truth_of_data(self, node: core.Expression, frame: Frame) -> Booleans | None:
        """The truth of a condition a row, or None when it depends on decisions."""
        match node:
            case core.Constant(value=value):
                return np.full(frame.size, bool(value))
            case core.Attribute():
                return np.asarray(self.attribute(node, frame), dtype=bool)
            case core.Not(part=part):
                inner = self.truth_of_data(part, frame)
                return None if inner is None else ~inner
            case core.Logic(operator=op, parts=parts):
                values = [self.truth_of_data(p, frame) for p in parts]
                known = [v for v in values if v is not None]
                if len(known) < len(values):
                    return None
                if op == "=>":
                    return ~known[0] | known[1]
                return np.logical_and.reduce(known) if op == "and" else np.logical_or.reduce(known)
            case core.Within(element=inner_element, set=of):
                return self._within(self.positions(inner_element, frame), of, frame)
            case core.Glob(subject=subject, pattern=pattern):
                texts = self._texts(subject, frame)
                known_texts, back = np.unique(np.array([t or "" for t in texts], dtype=str), return_inverse=True)
                matcher = re.compile(fnmatch.translate(pattern)).match
                return np.array([matcher(t) is not None for t in known_texts], dtype=bool)[back]
            case core.Comparison(of="text"):
                same = np.asarray(self._texts(node.left, frame) == self._texts(node.right, frame), dtype=bool)
                return same if node.operator == "==" else ~same
            case core.Comparison(of="element"):
                same = self.positions(node.left, frame) == self.positions(node.right, frame)
                return same if node.operator == "==" else ~same
            case core.Comparison(of="truth"):
                a, b = self.truth_of_data(node.left, frame), self.truth_of_data(node.right, frame)
                if a is None or b is None:
                    return None
                return (a == b) if node.operator == "==" else (a != b)
            case core.Comparison(operator=op):
                left, right = self.value(node.left, frame), self.value(node.right, frame)
                if not (left.is_data and right.is_data):
                    return None
                return compare(op, left.constant, right.constant)
            case core.Forall(binders=binders, body=body):
                inner_frame, parent = self.expand(frame, binders)
                inner = self.truth_of_data(body, inner_frame)
                if inner is None:
                    return None
                out = np.ones(frame.size, dtype=bool)
                np.logical_and.at(out, parent, inner)
                return out
        return None

    def _texts(self, node: core.Expression, frame: Frame) -> np.ndarray:
        if isinstance(node, core.Constant):
            return np.full(frame.size, node.value, dtype=object)
        assert isinstance(node, core.Attribute)
        return self.attribute(node, frame)

    def _within(self, positions: Integers, of: core.SetExpression, frame: Frame) -> Booleans:
        if isinstance(of, core.Members):
            relation = self.universe.relations[of.owner_sort]
            size = self.universe.sizes[of.sorts[0]]
            owners = np.repeat(np.arange(len(relation.start) - 1), np.diff(relation.start))
            keys = owners * size + relation.member
            return np.isin(self.positions(of.owner, frame) * size + positions, keys)
        if isinstance(of, core.NamedSet):
            return np.isin(positions, self.members(of.name)[0])
        if isinstance(of, core.Interval):
            return (positions >= of.low) & (positions <= of.high)
        return np.isin(positions, of.positions)

    # numbers

    def value(self, node: core.Expression, frame: Frame) -> Affine:
        """A number, or a truth as 0 or 1."""
        match node:
            case core.Constant(value=value):
                return affine.data(np.full(frame.size, float(value)))
            case core.Slot(sort="number", name=name):
                return affine.data(frame.slots[name].astype(float))
            case core.Attribute():
                return affine.data(np.asarray(self.attribute(node, frame), dtype=float))
            case core.Decision(variable=variable, arguments=arguments):
                block = self.variables[variable]
                return affine.of_columns(block.lookup[tuple(self.positions(a, frame) for a in arguments)])
            case core.Provided():
                return self.provided(node, frame)
            case core.Arithmetic():
                return self._arithmetic(node, frame)
            case core.Aggregate():
                return self._aggregate(node, frame)
            case core.Largest(operator=op, items=items):
                values = [self.value(i, frame) for i in items]
                group = np.tile(np.arange(frame.size), len(values))
                stacked = _stack(values)
                return self._extreme(op, stacked, group, frame.size, node.span)
            case core.Conditional(condition=condition, then=then, otherwise=otherwise):
                chosen = self.condition(condition, frame)
                parts = []
                for branch, rows in ((then, np.flatnonzero(chosen)), (otherwise, np.flatnonzero(~chosen))):
                    if len(rows):
                        parts.append(self.value(branch, frame.take(rows)).placed(rows, frame.size))
                return parts[0] if len(parts) == 1 else parts[0] + parts[1] if parts else affine.data(np.zeros(0))
        return self.indicator(node, frame)

    def provided(self, node: core.Provided, frame: Frame) -> Affine:
        """A quantity of the vocabulary, through its definition in the formulation."""
        arguments = [self.positions(a, frame) for a in node.arguments]
        owner = self.formulation_side or self
        sorts = owner.provided_sorts(node)
        if self.formulation_side is not None:
            arguments = [self.crossing[s][a] if s in self.crossing else a for s, a in zip(sorts, arguments, strict=True)]
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
            provided = ", ".join(n for n in self.formulation.provides if n != "on")
            message = f"'{word}' is not provided under this objective and schedule"
            raise InputError([Diagnostic(message, node.span, f"formulation '{self.formulation.name}' provides {provided}")])
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
        return self.value(definition.body, frame)

    def _arithmetic(self, node: core.Arithmetic, frame: Frame) -> Affine:
        left = self.value(node.left, frame)
        right = self.value(node.right, frame)
        if node.operator == "+":
            return left + right
        if node.operator == "-":
            return left - right
        if node.operator == "/":
            if not right.is_data:
                raise InputError([Diagnostic("division by what depends on the placement is not linear", node.right.span)])
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
        return self._product(left, right, node.span)

    def _product(self, left: Affine, right: Affine, span: Span) -> Affine:
        """The product of two expressions over columns: one of them must be a binary column."""
        for binary, factor in ((left, right), (right, left)):
            column = single_columns(binary)
            if column is None or not self.binary(column):
                continue
            out = self.columns.add(binary.size, -np.inf, np.inf, False)
            inner = self.defined(factor)
            origin = Origin("product", span)
            self.columns.constraints.append(Product(origin, out, column, inner))
            return affine.of_columns(out)
        raise InputError([Diagnostic("this product of two decisions is not linear", span,
                                     "one of the two must be a 0/1 decision such as (v on d)")])  # fmt: skip

    def binary(self, columns: Integers) -> bool:
        """All of these columns are 0/1."""
        lower, upper = np.concatenate(self.columns.lower), np.concatenate(self.columns.upper)
        integer = np.concatenate(self.columns.integer)
        return bool(integer[columns].all() and (lower[columns] >= 0).all() and (upper[columns] <= 1).all())

    def defined(self, body: Affine, integer: bool = False) -> Integers:
        """Columns that equal an affine expression (the expression's own where it is a single column)."""
        column = single_columns(body)
        if column is not None:
            return column
        out = self.columns.add(body.size, -np.inf, np.inf, integer)
        zero = np.zeros(body.size)
        self.columns.add_rows(self.origin, body - affine.of_columns(out), zero, zero)
        return out

    def _aggregate(self, node: core.Aggregate, frame: Frame) -> Affine:
        inner, parent = self.expand(frame, node.binders)
        if node.operator == "count":
            return self.indicator(node.body, inner).summed(parent, frame.size)
        body = self.value(node.body, inner)
        if node.operator == "sum":
            return body.summed(parent, frame.size)
        return self._extreme(node.operator, body, parent, frame.size, node.span)

    def _extreme(self, operator: str, body: Affine, group: Integers, groups: int, span: Span) -> Affine:
        """``max`` or ``min`` of the rows of each group."""
        if len(np.unique(group)) < groups:
            raise InputError([Diagnostic(f"the {operator} of nothing has no value", span)])
        if operator == "min":
            return -self._extreme("max", -body, group, groups, span)
        if body.is_data:
            out = np.full(groups, -np.inf)
            np.maximum.at(out, group, body.constant)
            return affine.data(out)
        result = self.columns.add(groups, -np.inf, np.inf, False)
        self.columns.constraints.append(
            Maximum(Origin(operator, span), result, group, body.constant, body.row, body.column, body.coefficient, False)
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
                out = self.columns.add(frame.size, 0, 1, True)
                y = affine.of_columns(out)
                # y = 1 means none fails; y = 0 means at least one does.
                high = np.full(frame.size, np.inf)
                self.columns.add_rows(self.origin, failing + y.scaled(count), -high, count)
                self.columns.add_rows(self.origin, failing + y, np.ones(frame.size), high)
                return y
        raise InputError([Diagnostic("this cannot be part of a logical combination", node.span)])

    def _any(self, parts: list[core.Expression], frame: Frame) -> Affine:
        """1 where at least one part holds."""
        values = [self.indicator(p, frame) for p in parts]
        y = affine.of_columns(self.columns.add(frame.size, 0, 1, True))
        high = np.full(frame.size, np.inf)
        total = affine.data(np.zeros(frame.size))
        for value in values:
            total = total + value
            self.columns.add_rows(self.origin, y - value, np.zeros(frame.size), high)
        self.columns.add_rows(self.origin, total - y, np.zeros(frame.size), high)
        return y

    def _reified(self, node: core.Comparison, frame: Frame) -> Affine:
        """A 0/1 column for a comparison of whole-numbered sides."""
        body = self.value(node.left, frame) - self.value(node.right, frame)
        if node.operator in ("==", "!="):
            low = core.Comparison("<=", node.left, node.right, node.span)
            high = core.Comparison(">=", node.left, node.right, node.span)
            both = self.indicator(core.Logic("and", (low, high), node.span), frame)
            return both if node.operator == "==" else affine.data(np.ones(frame.size)) - both
        integer = np.concatenate(self.columns.integer)
        whole = integer[body.column].all() and _whole(body.coefficient) and _whole(body.constant)
        if not whole:
            message = "a comparison of real numbers can only be required, or implied by a condition"
            raise InputError([Diagnostic(message, node.span, "write condition => comparison")])
        if node.operator in (">=", ">"):
            body = -body
        strict = 1.0 if node.operator in ("<", ">") else 0.0
        column = self.columns.add(frame.size, 0, 1, True)
        none, zero = np.full(frame.size, np.inf), np.zeros(frame.size)
        holds = _rows(self.origin, body, -none, zero - strict)
        fails = _rows(self.origin, body, zero + 1.0 - strict, none)
        every = np.arange(frame.size)
        self.columns.constraints += [
            Implication(self.origin, every, column, np.ones(frame.size, dtype=bool), holds),
            Implication(self.origin, every, column, np.zeros(frame.size, dtype=bool), fails),
        ]
        return affine.of_columns(column)

    # constraints

    def require(self, node: core.Expression, frame: Frame, name: str, span: Span) -> None:
        """Add rows and global constraints that make the condition hold in every row of the frame."""
        labels = {k: self.universe.labels.get(frame.sorts[k], ()) for k in frame.slots}
        shown = {k: v for k, v in frame.slots.items() if labels[k]}
        self.origin = origin = Origin(name, span, shown, labels)
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
                body = self.value(node.left, frame) - self.value(node.right, frame)
                lower, upper = self._bounds(node, body)
                self.columns.add_rows(origin, body, lower, upper)
            case core.SetProperty():
                self._set_property(node, frame, origin)
            case _:
                self.columns.add_rows(origin, self.indicator(node, frame), one, none)

    def _bounds(self, node: core.Comparison, body: Affine) -> tuple[Floats, Floats]:
        """Bounds of ``left - right`` under a comparison."""
        none, zero = np.full(body.size, np.inf), np.zeros(body.size)
        if node.operator == "<=":
            return -none, zero
        if node.operator == ">=":
            return zero, none
        if node.operator == "==":
            return zero, zero
        integer = np.concatenate(self.columns.integer)
        if node.operator in "<>" and integer[body.column].all() and _whole(body.coefficient) and _whole(body.constant):
            return (-none, zero - 1.0) if node.operator == "<" else (zero + 1.0, none)
        message = f"'{node.operator}' between numbers that depend on the placement cannot be stated"
        raise InputError([Diagnostic(message, node.span, "use <=, >= or ==")])

    def _clause(self, parts: list[core.Expression], frame: Frame) -> None:
        total = affine.data(np.zeros(frame.size))
        for part in parts:
            total = total + self._sufficient(part, frame)
        self.columns.add_rows(self.origin, total, np.ones(frame.size), np.full(frame.size, np.inf))

    def _sufficient(self, part: core.Expression, frame: Frame) -> Affine:
        """0/1 that may be 1 only where the part holds (it need not be)."""
        if isinstance(part, core.Comparison) and part.of == "number" and self.truth_of_data(part, frame) is None:
            column = self.columns.add(frame.size, 0, 1, True)
            body = self.value(part.left, frame) - self.value(part.right, frame)
            lower, upper = self._bounds(part, body)
            every = np.arange(frame.size)
            self.columns.constraints.append(
                Implication(self.origin, every, column, np.ones(frame.size, dtype=bool),
                            _rows(self.origin, body, lower, upper))
            )  # fmt: skip
            return affine.of_columns(column)
        return self.indicator(part, frame)

    def _imply(
        self, left: core.Expression, right: core.Expression, frame: Frame, name: str, span: Span
    ) -> None:
        known = self.truth_of_data(left, frame)
        if known is not None:
            rows = np.flatnonzero(known)
            if len(rows):
                self.require(right, frame.take(rows), name, span)
            return
        if isinstance(right, core.Comparison) and right.of == "number":
            literal = single_columns(self.indicator(left, frame))
            if literal is not None:
                body = self.value(right.left, frame) - self.value(right.right, frame)
                lower, upper = self._bounds(right, body)
                every = np.arange(frame.size)
                rows_of = _rows(self.origin, body, lower, upper)
                true = np.ones(frame.size, dtype=bool)
                self.columns.constraints.append(Implication(self.origin, every, literal, true, rows_of))
                return
        self._clause([core.Not(left, left.span), right], frame)

    def _set_property(self, node: core.SetProperty, frame: Frame, origin: Origin) -> None:
        """``convex`` and ``pipeline``: sets by a 0/1 column a node."""
        outer, _ = self.expand(frame, node.outer)
        inner, parent = self.expand(outer, (node.inner,))
        column = membership_columns(self.indicator(node.membership, inner))
        if column is None:
            raise InputError([Diagnostic("the condition must be a single decision such as v on d", node.membership.span)])
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
            indices = {name: v[rows] for name, v in origin.indices.items()}
            own = Origin(origin.name, origin.span, indices, origin.labels)
            self.columns.constraints.append(Convex(own, members[rows], source[kept], target[kept]))


def compare(operator: str, left: Floats, right: Floats) -> Booleans:
    """A comparison of numbers."""
    match operator:
        case "<=":
            return left <= right
        case ">=":
            return left >= right
        case "<":
            return left < right
        case ">":
            return left > right
        case "==":
            return left == right
    return left != right


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


def _rows(origin: Origin, body: Affine, lower: Floats, upper: Floats) -> RowBlock:
    return RowBlock(origin, body.row, body.column, body.coefficient, lower - body.constant, upper - body.constant)


def _whole(values: Floats) -> bool:
    return bool((values == np.round(values)).all())


def _stack(values: list[Affine]) -> Affine:
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
