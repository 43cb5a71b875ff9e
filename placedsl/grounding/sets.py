"""Grounding of what does not depend on decisions: sets, joins, attributes and conditions on data."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from placedsl import limits
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.diagnostics import Diagnostic, InputError
from placedsl.grounding.frames import ROOT, Frame, each
from placedsl.grounding.joins import codes_of, conjuncts, first_of_each, join_keys, slices, within
from placedsl.grounding.plan_universe import ELEMENTS
from placedsl.grounding.universe import Universe
from placedsl.ir.affine import Affine, spread
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.instance_limits import refuse_many, too_many
from placedsl.problem.problem import Table

#: Whole numbers from here on, either side of 0, are no positions: 64 bits do not hold them.
_BEYOND_WHOLE = 2.0**62


class SetGrounder:
    """The sets and attributes of one universe, joined with frames.

    ``sets`` and ``tables`` are those of the spec.  ``value`` grounds the numbers that conditions and indices compare.
    """

    def __init__(
        self,
        universe: Universe,
        sets: Mapping[str, core.SetExpression],
        tables: Mapping[str, Table],
        value: Callable[[core.Expression, Frame], Affine],
    ) -> None:
        self.universe = universe
        self.sets = sets
        self.tables = tables
        self._value = value
        self._members: dict[str, tuple[Integers, ...]] = {}
        self.stated = False  # whether what is bound is stated in a program, row by row

    def members(self, name: str) -> tuple[Integers, ...]:
        """The elements of a named set, one array a sort."""
        if name in self.universe.sets:
            return self.universe.sets[name]
        if name not in self._members:
            if name not in self.sets:
                return (np.zeros(0, dtype=np.int64),)  # a device family of none
            for inner in walks.named_sets(self.sets, name):  # those that it is made of first: chains may be long
                if inner not in self._members:
                    self._members[inner] = self._elements(ROOT, self.sets[inner])[1]
        return self._members[name]

    def expand(self, frame: Frame, binders: tuple[core.Binder, ...]) -> tuple[Frame, Integers]:
        """Join a frame with binders; returns the wider frame and, per row, the row it came from.

        Conditions on one side filter it first, equalities make the join, the rest is asked of the combinations.
        """
        parent = None
        for binder in binders:
            frame, rows = self._bound(frame, binder)
            parent = rows if parent is None else parent[rows]
        return frame, np.arange(frame.size) if parent is None else parent

    def expand_in_parts(self, frame: Frame, binders: tuple[core.Binder, ...], most: int | None) -> Iterator[Frame]:
        """The wider frame, or parts of it of at most ``most`` rows (None: whole) where arrays of all are slow to fill.

        What the last binders range over, where that depends on nothing else, is crossed part by part.
        """
        last = len(binders)
        while most is not None and last > 1 and self._is_plain(binders[last - 1]):
            last -= 1
        wide, _ = self.expand(frame, binders[:last])
        inner, _ = self.expand(ROOT, binders[last:])
        total = wide.size * inner.size
        if last < len(binders):
            width = max(1, len(wide.slots) + len(inner.slots))
            refuse_many(total, binders[-1].span, width, stated=self.stated)
        yield from wide.crossed(inner, total if most is None else most)

    @staticmethod
    def _is_plain(binder: core.Binder) -> bool:
        """Whether a binder ranges over a named set without a condition."""
        return binder.condition is None and isinstance(binder.set, core.NamedSet)

    def _bound(self, frame: Frame, binder: core.Binder) -> tuple[Frame, Integers]:
        new, old = frozenset(binder.slots), frozenset(frame.slots)
        parts = conjuncts(binder.condition)
        outer = [p for p in parts if not walks.free_slots(p) & new]
        kept = np.arange(frame.size)
        for part in outer:
            rows = np.flatnonzero(self.condition(part, frame))
            frame, kept = frame.take(rows), kept[rows]
        parts = [p for p in parts if p not in outer]
        sorts = dict(frame.sorts) | dict(zip(binder.slots, self._labelled_sorts(binder), strict=True))
        if walks.free_slots(binder.set) & old:
            rows, values = self._elements(frame, binder.set)
            slots = {k: v[rows] for k, v in frame.slots.items()} | dict(zip(binder.slots, values, strict=True))
            wide = Frame(len(rows), slots, sorts)
            passed = self._passing(wide, parts)
            return (wide, kept[rows]) if passed is None else (wide.take(passed), kept[rows[passed]])
        own = dict(zip(binder.slots, self._labelled_sorts(binder), strict=True))
        _, values = self._elements(ROOT, binder.set)
        inner = Frame(len(values[0]), dict(zip(binder.slots, values, strict=True)), own)
        inside = [p for p in parts if walks.free_slots(p) <= new]
        passed = self._passing(inner, inside)
        inner = inner if passed is None else inner.take(passed)
        parts = [p for p in parts if p not in inside]
        equal = [pair for pair in (join_keys(p, new, old) for p in parts) if pair is not None]
        left = [self._key(pair.outer, pair.of, frame) for pair in equal]
        right = [self._key(pair.inner, pair.of, inner) for pair in equal]
        rest = [p for p in parts if p not in [pair.part for pair in equal]]
        if not equal and not rest:
            refuse_many(frame.size * inner.size, binder.span, max(1, len(sorts)), stated=self.stated)
            return frame.times(inner), each(kept, inner.size)
        keys = codes_of(left, right, frame.size, inner.size) if equal else None
        rows, elements = self._matched(frame, inner, keys, rest, sorts, binder)
        slots = {k: v[rows] for k, v in frame.slots.items()} | {k: v[elements] for k, v in inner.slots.items()}
        return Frame(len(rows), slots, sorts), kept[rows]

    def _labelled_sorts(self, binder: core.Binder) -> tuple[core.Sort, ...]:
        """The sorts of a binder's slots; an index that the execution model leaves one value is not labelled."""
        match binder.set:
            case core.NamedSet(name="passes" | "replicas" as name) if len(self.universe.sets[name][0]) == 1:
                return ("",)
        return binder.sorts

    def _matched(
        self,
        frame: Frame,
        inner: Frame,
        keys: tuple[Integers, Integers] | None,
        rest: list[core.Expression],
        sorts: Mapping[str, core.Sort],
        binder: core.Binder,
    ) -> tuple[Integers, Integers]:
        """Rows of the frame and of the inner one that bear the same key, if any, and pass the other conditions."""
        if keys is None:  # all combinations
            order, start = np.arange(inner.size), np.zeros(frame.size, dtype=np.int64)
            counts = np.full(frame.size, inner.size)
        else:
            left, right = keys
            order = np.argsort(right, kind="stable")
            start = np.searchsorted(right[order], left, side="left")
            counts = np.searchsorted(right[order], left, side="right") - start
            counts[left < 0] = 0
        total = int(counts.sum())
        width = max(1, len(sorts))
        if rest and total > limits.count("visited"):
            raise too_many(total, binder.span, "visited")
        if not rest:
            refuse_many(total, binder.span, width, stated=self.stated)
        if not rest:
            return np.repeat(np.arange(frame.size), counts), order[spread(start, counts)]
        found_rows: list[Integers] = []
        found_elements: list[Integers] = []
        kept = 0
        for first, last in slices(counts):
            some = counts[first:last]
            rows = np.repeat(np.arange(first, last), some)
            elements = order[spread(start[first:last], some)]
            slots = {k: v[rows] for k, v in frame.slots.items()} | {k: v[elements] for k, v in inner.slots.items()}
            passed = self._passing(Frame(len(rows), slots, sorts), rest)
            assert passed is not None
            found_rows.append(rows[passed])
            found_elements.append(elements[passed])
            kept += len(passed)
            refuse_many(kept, binder.span, width, stated=self.stated)
        none = np.zeros(0, dtype=np.int64)
        return np.concatenate([none, *found_rows]), np.concatenate([none, *found_elements])

    def _passing(self, frame: Frame, parts: list[core.Expression]) -> Integers | None:
        """The rows that pass all conditions; None where there are no conditions."""
        if not parts:
            return None
        kept = np.arange(frame.size)
        for part in parts:
            passed = np.flatnonzero(self.condition(part, frame))
            if len(passed) < frame.size:
                frame, kept = frame.take(passed), kept[passed]
        return kept

    def _key(self, node: core.Expression, of: str, frame: Frame) -> np.ndarray:
        """The values that an equality compares."""
        if of == "text":
            return self._texts(node, frame)
        if of == "element":
            return self.positions(node, frame)
        return self._value(node, frame).constant

    def _elements(self, frame: Frame, of: core.SetExpression) -> tuple[Integers, tuple[Integers, ...]]:
        """The elements of a set for each row of a frame: the row of each, and one array a sort."""
        match of:
            case core.NamedSet(name=name):
                values = self.members(name)
                size = len(values[0])
                refuse_many(size * frame.size, of.span)
                return np.repeat(np.arange(frame.size), size), tuple(np.tile(v, frame.size) for v in values)
            case core.Members(owner=node, owner_sort=sort):
                relation = self.universe.relations[sort]
                owner = self.positions(node, frame)
                counts = relation.start[owner + 1] - relation.start[owner]
                refuse_many(int(counts.sum()), of.span)
                rows = np.repeat(np.arange(frame.size), counts)
                return rows, (relation.member[spread(relation.start[owner], counts)],)
            case core.Listed(items=items):
                refuse_many(len(items) * frame.size, of.span)
                columns = [[self.positions(e, frame) for e in item] for item in items]
                rows = np.tile(np.arange(frame.size), len(items))
                values = tuple(np.concatenate([c[k] for c in columns]) for k in range(len(of.sorts)))
                return first_of_each(rows, values)
            case core.Range(low=low, high=high):
                first, last = self.positions(low, frame), self.positions(high, frame)
                counts = np.maximum(last - first + 1, 0)
                if counts.sum() > limits.count("combinations"):
                    hint = limits.raising("combinations", int(counts.sum()))
                    raise InputError([Diagnostic(f"this range has {int(counts.sum()):,} numbers", of.span, hint)])
                return np.repeat(np.arange(frame.size), counts), (spread(first, counts),)
            case core.Comprehension(binders=binders):
                inner, parent = self.expand(frame, binders)
                return parent, tuple(inner.slots[s] for b in binders for s in b.slots)
            case core.Combined(operator=operator, left=left, right=right):
                rows, values = self._elements(frame, left)
                other_rows, other = self._elements(frame, right)
                if operator == "union":
                    both = tuple(np.concatenate(pair) for pair in zip(values, other, strict=True))
                    return first_of_each(np.concatenate((rows, other_rows)), both)
                shared = within((rows, *values), (other_rows, *other))
                kept = np.flatnonzero(shared if operator == "intersect" else ~shared)
                return rows[kept], tuple(v[kept] for v in values)

    def positions(self, node: core.Expression, frame: Frame) -> Integers:
        """An expression that is an element, or a whole number."""
        match node:
            case core.Slot(name=name):
                return frame.slots[name]
            case core.Element(position=position):
                return np.full(frame.size, position)
            case core.Pick(set=of, index=index, span=span):
                members, chosen = self._elements(ROOT, of)[1][0], self.positions(index, frame)
                wrong = chosen[(chosen < 1) | (chosen > len(members))]
                if len(wrong):
                    name = f"'{of.name}'" if isinstance(of, core.NamedSet) else "this set"
                    message = f"{name} has {len(members)} elements, there is no number {wrong[0]}"
                    raise InputError([Diagnostic(message, span)])
                return members[chosen - 1]
            case core.Attribute(sort=sort, name=name) if name in ("producer", "first") or (sort, name) in ELEMENTS:
                return np.asarray(self.attribute(node, frame), dtype=np.int64)
        numbers = self._value(node, frame)
        if not numbers.is_data or not np.isfinite(numbers.constant).all():
            raise InputError([Diagnostic("a whole number known beforehand is expected here", node.span)])
        whole = np.rint(numbers.constant)
        odd = numbers.constant[(whole != numbers.constant) | (np.abs(whole) >= _BEYOND_WHOLE)]
        if len(odd):
            raise InputError([Diagnostic(f"a whole number is expected here, this is {odd[0]:g}", node.span)])
        return whole.astype(np.int64)

    def table(self, node: core.Table, frame: Frame) -> np.ndarray:
        """The values of an indexed parameter."""
        table = self.tables[node.name]
        keys = [self.positions(a, frame) for a in node.arguments]
        code, _ = codes_of([np.asarray(k) for k in keys], [k[:0] for k in keys], frame.size, 0)
        _, first, back = np.unique(code, return_index=True, return_inverse=True)
        found: list[float | bool | str] = []
        for row in first:
            key = tuple(int(k[row]) for k in keys)
            value = table.values.get(key, table.values.get(()))
            if value is None:
                shown = ", ".join(self.universe.label(s, k) for s, k in zip(table.sorts, key, strict=True))
                message = f"'{node.name}' has no value for {shown}"
                hint = "give one; in a data file, '*' stands for all others"
                raise InputError([Diagnostic(message, node.span, hint)])
            found.append(value)
        texts = any(isinstance(v, str) for v in found)
        values = np.array(found, dtype=object if texts else float)
        return np.asarray(values[back])

    def attribute(self, node: core.Attribute, frame: Frame) -> np.ndarray:
        """The values of an attribute."""
        column = self.universe.attributes[node.sort, node.name]
        owner = self.positions(node.owner, frame)
        if node.device is None:
            return np.asarray(column[owner])
        if node.target is not None:
            return np.asarray(column[owner, self.positions(node.device, frame), self.positions(node.target, frame)])
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
            case core.Table():
                return np.asarray(self.table(node, frame), dtype=bool)
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
                combined: Booleans = np.logical_and.reduce(known) if op == "and" else np.logical_or.reduce(known)
                return combined
            case core.Within(elements=elements, set=of):
                return self._within(tuple(self.positions(e, frame) for e in elements), of, frame)
            case core.Glob(subject=subject, pattern=pattern):
                texts = self._texts(subject, frame)
                known_texts, back = np.unique(np.array([t or "" for t in texts], dtype=str), return_inverse=True)
                matcher = re.compile(fnmatch.translate(pattern)).match
                return np.array([matcher(t) is not None for t in known_texts], dtype=bool)[back] & _given(texts)
            case core.Comparison(of="text"):
                first, second = self._texts(node.left, frame), self._texts(node.right, frame)
                same = np.asarray(first == second, dtype=bool)
                return np.asarray((same if node.operator == "==" else ~same) & _given(first) & _given(second))
            case core.Comparison(of="element"):
                same = self.positions(node.left, frame) == self.positions(node.right, frame)
                return np.asarray(same if node.operator == "==" else ~same)
            case core.Comparison(of="truth"):
                a, b = self.truth_of_data(node.left, frame), self.truth_of_data(node.right, frame)
                if a is None or b is None:
                    return None
                return np.asarray((a == b) if node.operator == "==" else (a != b))
            case core.Comparison(operator=op):
                return truth_of_sides(op, self._value(node.left, frame), self._value(node.right, frame))
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
        if isinstance(node, core.Table):
            return self.table(node, frame)
        assert isinstance(node, core.Attribute)
        return self.attribute(node, frame)

    def _within(self, elements: tuple[Integers, ...], of: core.SetExpression, frame: Frame) -> Booleans:
        if isinstance(of, core.Members):
            relation = self.universe.relations[of.owner_sort]
            owners = np.repeat(np.arange(len(relation.start) - 1), np.diff(relation.start))
            return within((self.positions(of.owner, frame), *elements), (owners, relation.member))
        if not walks.free_slots(of):
            return within(elements, self._elements(ROOT, of)[1])
        rows, values = self._elements(frame, of)
        return within((np.arange(frame.size), *elements), (rows, *values))


def _given(texts: np.ndarray) -> Booleans:
    """Which texts there are: an element without an attribute satisfies no comparison of it."""
    return np.array([text is not None for text in texts.tolist()], dtype=bool)


def truth_of_sides(operator: str, left: Affine, right: Affine) -> Booleans | None:
    """The truth of a comparison of numbers a row, or None when it depends on decisions."""
    return compare(operator, left.constant, right.constant) if left.is_data and right.is_data else None


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
            return np.asarray(left == right)
    return np.asarray((left != right) & ~np.isnan(left) & ~np.isnan(right))
