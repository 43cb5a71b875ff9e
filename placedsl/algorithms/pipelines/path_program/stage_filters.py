"""Which stages the rules about one device allow: rows over the numbers of a stage, and conditions by propagation.

A stage is excluded only where a rule is proven to fail for it; the evaluator decides about the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.pipelines.path_program.inequalities import Inequalities, Written
from placedsl.algorithms.pipelines.path_program.rule_columns import NUMBERS
from placedsl.algorithms.pipelines.path_program.stage_rules import Feature, Local
from placedsl.algorithms.pipelines.path_program.stage_table import StageTable
from placedsl.arrays import Booleans, Floats, Integers, whole_numbers
from placedsl.tolerances import EVALUATION

#: Passes of the propagation; it ends by itself after a few.
_PASSES = 12
#: What a 0/1 column may be off.
_INTEGER = 1e-6


class StageNumbers:
    """The numbers of some stages; an empty table stands for a device that has no stage."""

    def __init__(self, table: StageTable, rows: Integers | None) -> None:
        self.table, self.rows = table, rows
        self.units = table.ideals.costs.units
        self.count = 1 if rows is None else len(rows)

    def unit_sums(self, weight: Floats) -> Floats:
        """R x stages: sums of R numbers of units (R x u)."""
        if self.rows is None:
            return np.zeros((len(weight), 1))
        sums = self.table.ideals.sums(weight)
        out: Floats = sums[:, self.table.goal[self.rows]] - sums[:, self.table.base[self.rows]]
        return out

    def number(self, name: str) -> Floats:
        """A number by name."""
        if self.rows is None:
            return np.zeros(1)
        if name == "used":
            return np.ones(self.count)
        table = self.table
        known = {"load": table.load, "memory": table.memory, "compute_time": table.compute,
                 "transfer_time": table.transfer}  # fmt: skip
        out: Floats = known[name][self.rows]
        return out

    def feature(self, feature: int) -> Floats:
        """One feature."""
        if feature >= self.units:
            return self.number(NUMBERS[feature - self.units])
        weight = np.zeros((1, self.units))
        weight[0, feature] = 1.0
        out: Floats = self.unit_sums(weight)[0]
        return out

    def values(self, of: Feature) -> Floats:
        """A linear number of each stage."""
        features, coefficient = of
        inside = features < self.units
        weight = np.zeros((1, self.units))
        weight[0, features[inside]] = coefficient[inside]
        out = self.unit_sums(weight)[0] if inside.any() else np.zeros(self.count)
        for k, c in zip(features[~inside].tolist(), coefficient[~inside].tolist(), strict=True):
            out = out + c * self.number(NUMBERS[k - self.units])
        return out


def allowed(numbers: StageNumbers, rules: Sequence[Local], time: tuple[float, float]) -> Booleans:
    """Whether each stage may satisfy the rules, where the time per sample is between two numbers."""
    out = np.ones(numbers.count, dtype=bool)
    for rule in rules:
        part = rule.written
        if part.conditional.literals or part.products or _own(numbers, part.always):
            out &= ~_refuted(numbers, part, time)
        else:
            out &= _within(numbers, part.always, time)
    return out


def _own(numbers: StageNumbers, rows: Inequalities) -> bool:
    """Whether columns of a rule's own stand in the rows."""
    return bool((rows.column > numbers.units + len(NUMBERS)).any())


def _within(numbers: StageNumbers, rows: Inequalities, time: tuple[float, float]) -> Booleans:
    """Rows without columns of their own."""
    units, row = numbers.units, rows.row_of_entry()
    count = np.diff(rows.start)
    # Units that must not be there: one row instead of many.
    never = (rows.upper == 0.0) & (np.bincount(row[(rows.column >= units) | (rows.coefficient < 0.0)],
                                               minlength=rows.count) == 0) & (count > 0)  # fmt: skip
    out = np.ones(numbers.count, dtype=bool)
    if never.any():
        weight = np.zeros((1, units))
        weight[0, rows.column[never[row]]] = 1.0
        out &= numbers.unit_sums(weight)[0] == 0.0
    left = rows.take(np.flatnonzero(~never))
    step = max(1, 20_000_000 // max(numbers.count, 1))
    for first in range(0, left.count, step):
        chosen = left.take(np.arange(first, min(first + step, left.count)))
        least, slack = _least(numbers, chosen, time)
        out &= (least <= chosen.upper[:, None] + slack).all(axis=0)
    return out


def _least(numbers: StageNumbers, rows: Inequalities, time: tuple[float, float]) -> tuple[Floats, Floats]:
    """R x stages: the least value of each row over numbers of stages and the time, and its rounding."""
    units, row = numbers.units, rows.row_of_entry()
    known = rows.column < units + len(NUMBERS)
    inside = rows.column < units
    weight = np.zeros((rows.count, units))
    weight[row[inside], rows.column[inside]] = rows.coefficient[inside]
    out = numbers.unit_sums(weight) if inside.any() else np.zeros((rows.count, numbers.count))
    size = np.abs(rows.upper)[:, None] + (numbers.unit_sums(np.abs(weight)) if inside.any() else 0.0)
    whole = whole_numbers(rows.upper)
    fractional = np.zeros(rows.count, dtype=bool)
    fractional[row[inside & ~whole_numbers(rows.coefficient)]] = True
    for k in np.unique(rows.column[known & ~inside]).tolist():
        name = NUMBERS[k - units]
        own = rows.column == k
        factor = np.zeros(rows.count)
        factor[row[own]] = rows.coefficient[own]
        term = factor[:, None] * numbers.number(name)
        out, size = out + term, size + np.abs(term)
        exact = name in ("memory", "used") and bool(whole_numbers(numbers.number(name)).all())
        fractional |= (factor != 0.0) & ~(whole_numbers(factor) & exact)
    timed = rows.column == units + len(NUMBERS)
    for i, factor in zip(row[timed].tolist(), rows.coefficient[timed].tolist(), strict=True):
        end = factor * (time[0] if factor > 0.0 else time[1])
        out[i] += end
        size[i] += abs(end) if np.isfinite(end) else 0.0
        fractional[i] = True
    exact_rows = whole & ~fractional
    return out, np.where(exact_rows[:, None], 0.0, 2.0 * EVALUATION * size)


def _refuted(numbers: StageNumbers, part: Written, time: tuple[float, float]) -> Booleans:
    """Whether bounds of the rule's own columns contradict each other, for each stage."""
    state = _Bounds(numbers, part)
    always = _Activity(numbers, part.always, state, time)
    depending = _Activity(numbers, part.conditional.body, state, time)
    for _ in range(_PASSES):
        state.changed = False
        for i in range(part.always.count):
            always.require(i, np.ones(numbers.count, dtype=bool))
        for i, literals in enumerate(part.conditional.literals):
            true = [state.literal(column, value) for column, value in literals]
            sure = np.array([t for t, _ in true])
            every: Booleans = np.asarray(sure.all(axis=0), dtype=bool)
            depending.require(i, every)
            never, open_ = depending.never(i), ~sure
            for (column, value), (_, false), mine in zip(literals, true, open_, strict=True):
                alone = never & mine & ~false & (open_.sum(axis=0) == 1)
                state.fix(column, not value, alone)
        for result, binary, factor in part.products:
            state.multiply(result, binary, factor)
        if not state.changed:
            break
    return state.conflict


class _Bounds:
    """Bounds of a rule's own columns, and the values of the others, for each stage."""

    def __init__(self, numbers: StageNumbers, part: Written) -> None:
        self.numbers, self.known = numbers, numbers.units + len(NUMBERS)
        named = [part.always.column, part.conditional.body.column,
                 np.array([c for row in part.conditional.literals for c, _ in row], dtype=np.int64),
                 np.array([c for triple in part.products for c in triple], dtype=np.int64)]  # fmt: skip
        own = np.unique(np.concatenate(named))
        own = own[own > self.known]
        self.place = {int(c): k for k, c in enumerate(own.tolist())}
        literal = {c for row in part.conditional.literals for c, _ in row} | {b for _, b, _ in part.products}
        real = {c for result, _, factor in part.products for c in (result, factor)} - literal
        self.binary = np.array([c not in real for c in own.tolist()], dtype=bool)
        self.low = np.where(self.binary, 0.0, -np.inf)[:, None] + np.zeros((1, numbers.count))
        self.high = np.where(self.binary, 1.0, np.inf)[:, None] + np.zeros((1, numbers.count))
        self.conflict = np.zeros(numbers.count, dtype=bool)
        self.changed = False
        self._features: dict[int, Floats] = {}

    def value(self, feature: int) -> Floats:
        """The value of a feature."""
        if feature not in self._features:
            self._features[feature] = self.numbers.feature(feature)
        return self._features[feature]

    def ends(self, column: int) -> tuple[Floats, Floats]:
        """The least and the greatest value of a column."""
        if column in self.place:
            k = self.place[column]
            return self.low[k], self.high[k]
        return self.value(column), self.value(column)

    def literal(self, column: int, value: bool) -> tuple[Booleans, Booleans]:
        """Where a literal is true for sure, and where it is false for sure."""
        low, high = self.ends(column)
        one, zero = low > 0.5, high < 0.5
        return (one, zero) if value else (zero, one)

    def fix(self, column: int, value: bool, where: Booleans) -> None:
        """A 0/1 column has a value."""
        ends = (np.where(where, 1.0, 0.0), None) if value else (None, np.where(where, 0.0, 1.0))
        if column in self.place:
            self.narrow(self.place[column], *ends)
        else:
            self.conflict |= where & ((self.value(column) > 0.5) != value)

    def narrow(self, k: int, low: Floats | None, high: Floats | None) -> None:
        """Better bounds of a column of the rule's own."""
        for bound, mine, better in ((low, self.low[k], np.maximum), (high, self.high[k], np.minimum)):
            if bound is None:
                continue
            end = bound
            if self.binary[k]:
                end = np.ceil(bound - _INTEGER) if better is np.maximum else np.floor(bound + _INTEGER)
            new = better(mine, end)
            if (new != mine).any():
                self.changed = True
                mine[:] = new
        slack = 2.0 * EVALUATION * np.maximum(np.abs(self.low[k]), np.abs(self.high[k]))
        with np.errstate(invalid="ignore"):
            self.conflict |= self.low[k] > self.high[k] + np.where(np.isfinite(slack), slack, 0.0)

    def multiply(self, result: int, binary: int, factor: int) -> None:
        """``result`` is ``binary`` times ``factor``."""
        one, zero = self.literal(binary, True)
        low, high = self.ends(factor)
        least = np.where(zero, 0.0, np.where(one, low, np.minimum(low, 0.0)))
        most = np.where(zero, 0.0, np.where(one, high, np.maximum(high, 0.0)))
        if result in self.place:
            self.narrow(self.place[result], least, most)


class _Activity:
    """The sums of rows between bounds."""

    def __init__(self, numbers: StageNumbers, rows: Inequalities, state: _Bounds, time: tuple[float, float]) -> None:
        self.rows, self.state = rows, state
        self.fixed, self.slack = _least(numbers, rows, time)
        self.own = [
            [
                (state.place[c], v)
                for c, v in zip(*(e.tolist() for e in rows.entries(i)), strict=True)
                if c in state.place
            ]
            for i in range(rows.count)
        ]

    def _terms(self, i: int) -> list[Floats]:
        state = self.state
        return [v * (state.low[k] if v > 0.0 else state.high[k]) for k, v in self.own[i]]

    def never(self, i: int) -> Booleans:
        """Where a row cannot hold."""
        least = self.fixed[i] + sum(self._terms(i))
        out: Booleans = least > self.rows.upper[i] + self.slack[i]
        return out

    def require(self, i: int, where: Booleans) -> None:
        """A row holds at these stages."""
        terms, upper = self._terms(i), self.rows.upper[i] + self.slack[i]
        least = self.fixed[i] + sum(terms)
        self.state.conflict |= where & (least > upper)
        for position, (k, v) in enumerate(self.own[i]):
            rest = self.fixed[i] + sum(term for other, term in enumerate(terms) if other != position)
            end = np.where(where, (upper - rest) / v, np.inf if v > 0.0 else -np.inf)
            self.state.narrow(k, *((None, end) if v > 0.0 else (end, None)))
