"""The program of a problem as it is written: every column and row with its name, its origin and a unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers
from placedsl.diagnostics import Span
from placedsl.export.programs.display_units import column_units, goal_unit, in_units, measured, row_units, unit_name
from placedsl.export.programs.legal_names import Alphabet, legal_names, unique
from placedsl.grounding.build import Grounded, build
from placedsl.grounding.contradictions import refuse_contradictions
from placedsl.ir.affine import spread
from placedsl.ir.program import LinearProgram, Origin, Program
from placedsl.lowering.lower import lower
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Problem
from placedsl.tolerances import CONTRADICTION
from placedsl.units import NUMBER

#: What an element of a family is indexed by: labels of the spec, or a number where there are none.
Key = tuple[str | int, ...]

_IMPOSSIBLE = "impossible"
#: Of what is impossible, so much is named.
_MOST_NAMED = 20


@dataclass(frozen=True, eq=False)
class Family:
    """Columns or rows of one origin: ``keys[i]`` is the index of column or row ``start + i``.

    ``unit``: what one stands for (columns), or what they are divided by (rows); ``further``: what some rows of it are
    divided by instead.
    """

    name: str
    span: Span | None
    keys: tuple[Key, ...]
    start: int
    unit: float = 1.0
    further: tuple[float, ...] = ()

    @property
    def stop(self) -> int:
        """The position after the last."""
        return self.start + len(self.keys)


@dataclass(frozen=True, eq=False)
class Goal:
    """An objective in its unit: ``constant + cost @ x``, over the columns in theirs.

    ``unit`` is the unit's name, ``factor`` how much it is in seconds, bytes …
    """

    name: str
    cost: Floats
    constant: float
    unit: str
    factor: float

    def __str__(self) -> str:
        return self.name + (f", in {self.unit}" if self.unit else "")


@dataclass(frozen=True, eq=False)
class NamedProgram:
    """A program as it is written.  ``impossible`` tells what no placement can satisfy, in the user's words.

    ``linear`` is in the units of its columns and rows, without rows that say nothing; where something is impossible it
    has a row that contradicts a column's bounds.
    """

    problem: Problem
    formulation: Formulation
    grounded: Grounded
    linear: LinearProgram
    columns: tuple[Family, ...]
    rows: tuple[Family, ...]
    goals: tuple[Goal, ...]
    impossible: tuple[str, ...]

    @property
    def spec(self) -> str:
        """The name of the spec's file."""
        return self.problem.objectives[0].span.source.name.replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def units(self) -> list[str]:
        """What is placed as one, under the names that indices of columns use."""
        return unique(self.grounded.units)

    def names(self, alphabet: Alphabet, form: str, between: str) -> tuple[list[str], list[str]]:
        """Legal unique names of all columns and of all rows, such as ``x[embed,gpu[1]]``."""

        def texts(families: Sequence[Family]) -> Iterator[str]:
            for family in families:
                for key in family.keys:
                    yield form.format(family.name, between.join(map(str, key))) if key else family.name

        return legal_names(texts(self.columns), alphabet), legal_names(texts(self.rows), alphabet, ("obj",))

    def subject(self, only_first: bool) -> Iterator[str]:
        """What a file is about, line by line."""
        yield f"The program of {self.spec}, written by placedsl."
        yield f"minimize {self.goals[0]}"
        for goal in self.goals[1:]:
            yield f"then {goal}" + (" (not in this file: it holds one objective)" if only_first else "")
        for text in self.impossible[:_MOST_NAMED]:
            yield f"no placement can satisfy {text}"

    def header(self, only_first: bool) -> Iterator[str]:
        """What the head of a file of linear rows says, line by line."""
        linear = self.linear
        yield from self.subject(only_first)
        yield (
            f"formulation {self.formulation.name}: {linear.columns} columns ({int(linear.integer.sum())} integer), "
            f"{linear.rows} rows, {len(linear.column)} entries"
        )
        for family in self.columns:
            if family.unit != 1.0:
                yield f"one unit of {family.name} is {family.unit:.10g}"
        divisors: dict[str, dict[float, None]] = {}
        for family in self.rows:
            divisors.setdefault(family.name, {}).update(dict.fromkeys((family.unit, *family.further)))
        for name, units in divisors.items():
            if set(units) != {1.0}:
                yield f"the rows of {name} are divided by {' or '.join(f'{unit:.10g}' for unit in units)}"


def named_program(problem: Problem, formulation: Formulation, *, ranges: bool = False) -> NamedProgram:
    """Ground, lower to rows, name and measure.  ``ranges``: a row may have two sides that differ."""
    grounded = build(problem, formulation)
    refuse_contradictions(problem, formulation, grounded)
    lowered = lower(grounded.program).program
    impossible: list[str] = []
    linear = _in_order(lowered, impossible)
    columns = families(linear.column_origins, linear.column_start)
    chosen = _rows_that_say_something(linear, impossible)
    linear, rows = _chosen(linear, chosen, ranges)
    if impossible:
        linear, columns, rows = _with_contradiction(linear, columns, rows)
    unit = column_units(linear, _quantities(problem, grounded, linear.columns), [(f.start, f.stop) for f in columns])
    divisor = row_units(linear, unit, [(f.start, f.stop) for f in rows])
    columns = tuple(replace(f, unit=float(unit[f.start])) for f in columns if f.keys)
    rows = tuple(_divided(f, divisor[f.start : f.stop]) for f in rows if f.keys)
    goals = tuple(_goal(problem, grounded.program, k, unit) for k in range(len(problem.objectives)))
    linear = replace(measured(linear, unit, divisor), cost=goals[0].cost, offset=goals[0].constant)
    return NamedProgram(problem, formulation, grounded, linear, columns, rows, goals, tuple(impossible))


def _divided(family: Family, by: Floats) -> Family:
    """A family of rows with what they are divided by."""
    units = sorted(set(by.tolist()), reverse=True)
    return replace(family, unit=units[0], further=tuple(units[1:]))


def families(origins: Sequence[Origin], start: Integers) -> tuple[Family, ...]:
    """Neighbouring blocks of one name, place and kind of index are one family; labels that occur twice get a number."""
    labels: dict[int, list[str]] = {}
    out: list[Family] = []
    waiting: list[Key | None] = []
    before: object = None

    def close() -> None:
        if waiting:
            out[-1] = replace(out[-1], keys=_distinct(waiting))
            waiting.clear()

    for origin, first, past in zip(origins, start[:-1].tolist(), start[1:].tolist(), strict=True):
        if first == past:
            continue
        kind = (origin.name, origin.span, tuple(origin.indices))
        if kind != before:
            before = kind
            close()
            out.append(Family(origin.name, origin.span, (), first))
        words = []
        for slot, positions in origin.indices.items():
            known = origin.labels.get(slot, ())
            if not known:  # whole numbers speak for themselves
                words.append(positions.tolist())
                continue
            if id(known) not in labels:
                labels[id(known)] = unique(known)
            texts = labels[id(known)]
            words.append([texts[i] for i in positions.tolist()])
        waiting += zip(*words, strict=True) if words else [None] * (past - first)
    close()
    return tuple(out)


def _distinct(keys: list[Key | None]) -> tuple[Key, ...]:
    """Each key once: elements without labels are numbered, and all of a family in which some share theirs."""
    if len(keys) == 1:
        return (keys[0] or (),)
    if None not in keys and len(set(keys)) == len(keys):
        return tuple(key or () for key in keys)
    numbers: dict[Key | None, int] = {}
    out: list[Key] = []
    for key in keys:
        number = numbers[key] = numbers.get(key, 0) + 1
        out.append((*(key or ()), number))
    return tuple(out)


def _in_order(linear: LinearProgram, impossible: list[str]) -> LinearProgram:
    """Bounds that cross by rounding are equal; bounds that cross are impossible."""
    lower, upper = linear.lower, linear.upper
    crossed = lower > upper
    if not crossed.any():
        return linear
    wide = np.flatnonzero(lower > upper + CONTRADICTION * np.maximum(1.0, abs(upper)))
    for column in wide.tolist():
        impossible.append(_describe(linear.column_origins, linear.column_start, column))
    return replace(linear, upper=np.where(crossed, lower, upper))


def _rows_that_say_something(linear: LinearProgram, impossible: list[str]) -> Booleans:
    """Rows with terms and a limit; rows without terms whose limits leave zero out are impossible."""
    empty = np.diff(linear.start) == 0
    false = np.flatnonzero(empty & ((linear.row_lower > CONTRADICTION) | (linear.row_upper < -CONTRADICTION)))
    impossible += [_describe(linear.origins, linear.origin_start, row) for row in false.tolist()]
    limited: Booleans = ~empty & ((linear.row_lower > -np.inf) | (linear.row_upper < np.inf))
    return limited


def _describe(origins: Sequence[Origin], start: Integers, position: int) -> str:
    block = int(np.searchsorted(start, position, side="right")) - 1
    return origins[block].describe(position - int(start[block]))


def _chosen(linear: LinearProgram, kept: Booleans, ranges: bool) -> tuple[LinearProgram, tuple[Family, ...]]:
    """These rows alone; without ``ranges``, one with two sides that differ becomes two rows."""
    low, high = linear.row_lower, linear.row_upper
    two = kept & (low > -np.inf) & (high < np.inf) & (low != high)
    copies = kept.astype(np.int64) + (0 if ranges else two)
    rows = np.repeat(np.arange(linear.rows), copies)
    second = np.concatenate(([False], rows[1:] == rows[:-1])) if len(rows) else np.zeros(0, dtype=bool)
    first = two[rows] & ~second & (not ranges)
    counts = np.diff(linear.start)[rows]
    entries = spread(linear.start[rows], counts)
    out = replace(
        linear,
        start=np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts))),
        column=linear.column[entries],
        coefficient=linear.coefficient[entries],
        row_lower=np.where(second, -np.inf, low[rows]),
        row_upper=np.where(first, np.inf, high[rows]),
        origins=(),
        origin_start=np.zeros(1, dtype=np.int64),
    )
    ends = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(copies)))[linear.origin_start]
    origins = [
        origin.take(rows[a:b] - begin)
        for origin, begin, a, b in zip(linear.origins, linear.origin_start[:-1], ends[:-1], ends[1:], strict=True)
    ]
    return out, families(origins, ends)


def _with_contradiction(
    linear: LinearProgram, columns: tuple[Family, ...], rows: tuple[Family, ...]
) -> tuple[LinearProgram, tuple[Family, ...], tuple[Family, ...]]:
    """One more column, which is zero, and a row that says it is at least one."""
    family = Family(_IMPOSSIBLE, None, ((),), 0)
    out = replace(
        linear,
        cost=np.append(linear.cost, 0.0), lower=np.append(linear.lower, 0.0), upper=np.append(linear.upper, 0.0),
        integer=np.append(linear.integer, False), start=np.append(linear.start, linear.start[-1] + 1),
        column=np.append(linear.column, linear.columns), coefficient=np.append(linear.coefficient, 1.0),
        row_lower=np.append(linear.row_lower, 1.0), row_upper=np.append(linear.row_upper, np.inf),
    )  # fmt: skip
    return out, (*columns, replace(family, start=linear.columns)), (*rows, replace(family, start=linear.rows))


def _quantities(problem: Problem, grounded: Grounded, columns: int) -> Booleans:
    """Columns that stand for times, sizes and the like: real ones that were not declared between 0 and 1, and those of
    the spec's own variables that have a dimension (20 ms is less than 1 s)."""
    program = grounded.program
    share = (program.lower >= 0.0) & (program.upper <= 1.0)
    for name, (block, _) in grounded.own.items():
        if problem.variables[name].dimension != NUMBER:
            share[block.start : block.start + block.size] = False
    out = np.zeros(columns, dtype=bool)
    out[: program.columns] = ~program.integer & ~share
    return out


def _goal(problem: Problem, program: Program, position: int, unit: Floats) -> Goal:
    goal, dimension = program.objectives[position], problem.objectives[position].dimension
    cost = np.bincount(goal.column, weights=goal.coefficient, minlength=len(unit)) * unit
    factor = goal_unit(cost, unit)
    (constant,) = in_units(np.array([goal.constant]), factor).tolist()
    return Goal(goal.name, in_units(cost, factor), constant, unit_name(factor, dimension), factor)
