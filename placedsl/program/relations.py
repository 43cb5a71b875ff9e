"""Grounding of what does not depend on decisions: sets, joins, attributes and conditions on data."""

from __future__ import annotations

import fnmatch
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from placedsl import expressions as core
from placedsl.diagnostics import Diagnostic, InputError, Span
from placedsl.program.affine import Affine, spread
from placedsl.program.frames import ROOT, Columns, Frame
from placedsl.program.program import Booleans, Floats, Integers, Origin
from placedsl.program.universe import Universe

_MOST_ROWS = 50_000_000


class Relations(ABC):
    """The sets and attributes of one universe, joined with frames."""

    def __init__(self, universe: Universe, columns: Columns, sets: Mapping[str, core.Binder]) -> None:
        self.universe = universe
        self.columns = columns
        self.sets = sets
        self._set_cache: dict[str, tuple[Integers, ...]] = {}

    @abstractmethod
    def value(self, node: core.Expression, frame: Frame) -> Affine:
        """A number, or a truth as 0 or 1."""

    def origin_of(self, name: str, span: Span | None, frame: Frame) -> Origin:
        """What comes from each row of a frame, under this name."""
        labels = {k: self.universe.labels.get(sort, ()) for k, sort in frame.sorts.items() if k in frame.slots}
        return Origin(name, span, {k: v for k, v in frame.slots.items() if labels[k]}, labels)

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
                combined: Booleans = np.logical_and.reduce(known) if op == "and" else np.logical_or.reduce(known)
                return combined
            case core.Within(element=inner_element, set=of):
                return self._within(self.positions(inner_element, frame), of, frame)
            case core.Glob(subject=subject, pattern=pattern):
                texts = self._texts(subject, frame)
                known_texts, back = np.unique(np.array([t or "" for t in texts], dtype=str), return_inverse=True)
                matcher = re.compile(fnmatch.translate(pattern)).match
                return np.array([matcher(t) is not None for t in known_texts], dtype=bool)[back]
            case core.Comparison(of="text"):
                same = np.asarray(self._texts(node.left, frame) == self._texts(node.right, frame), dtype=bool)
                return np.asarray(same if node.operator == "==" else ~same)
            case core.Comparison(of="element"):
                same = self.positions(node.left, frame) == self.positions(node.right, frame)
                return np.asarray(same if node.operator == "==" else ~same)
            case core.Comparison(of="truth"):
                a, b = self.truth_of_data(node.left, frame), self.truth_of_data(node.right, frame)
                if a is None or b is None:
                    return None
                return np.asarray((a == b) if node.operator == "==" else (a != b))
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
        return np.isin(positions, of.positions)


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
