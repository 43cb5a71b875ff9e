"""The program of a box: a path of stages from nothing to everything, with the rules as rows over stages."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.pipelines.path_program.box import Box, StageChoice
from placedsl.algorithms.pipelines.path_program.inequalities import Inequalities
from placedsl.algorithms.pipelines.path_program.path_rows import WIDENED, PathRows
from placedsl.algorithms.pipelines.path_program.rule_columns import NUMBERS
from placedsl.algorithms.pipelines.path_program.stage_filters import StageNumbers
from placedsl.algorithms.pipelines.path_program.stage_rules import General
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.budget import Budget
from placedsl.ir.program import Implication, LinearProgram, Objective, Origin, Product, Program, RowBlock
from placedsl.lowering.lower import lower
from placedsl.solvers.registry import get


class _Rows:
    """Rows over columns, one at a time, scaled to largest coefficients of 1."""

    def __init__(self) -> None:
        self.row, self.column, self.coefficient = list[Integers](), list[Integers](), list[Floats]()
        self.lower, self.upper = list[float](), list[float]()

    def add(self, column: Integers, coefficient: Floats, lower: float, upper: float) -> None:
        """One row."""
        scale = 1.0 / max(float(np.abs(coefficient).max(initial=0.0)), 1e-300)
        self.row.append(np.full(len(column), len(self.lower)))
        self.column.append(column)
        self.coefficient.append(coefficient * scale)
        self.lower.append(lower * scale)
        self.upper.append(upper * scale)

    def block(self) -> RowBlock:
        """All of them."""
        none = np.zeros(0, dtype=np.int64)
        return RowBlock(
            Origin("rule"), np.concatenate([none, *self.row]), np.concatenate([none, *self.column]),
            np.concatenate([np.zeros(0), *self.coefficient]), np.array(self.lower), np.array(self.upper),
        )  # fmt: skip


def question(choice: StageChoice, box: Box, known: PathRows, excluded: list[Integers]) -> LinearProgram:
    """The program of a box with its stages and rows; ``excluded``: paths that are not asked for."""
    rows, stages = _Rows(), known.stages
    time = len(stages)
    for row in known.rows:
        column = np.flatnonzero(row.values)
        coefficient = row.values[column]
        if row.time:
            column, coefficient = np.append(column, time), np.append(coefficient, row.time)
        rows.add(column, coefficient, row.lower, row.upper)
    for path in excluded:
        held = np.flatnonzero(np.isin(stages, path))
        if len(held) == len(path):
            rows.add(held, np.ones(len(held)), -np.inf, len(path) - 1.0)
    return _program(choice, stages, rows, box)


def _program(choice: StageChoice, stages: Integers, rows: _Rows, box: Box) -> LinearProgram:
    table, count = choice.table, len(stages)
    # Into each ideal as often as out of it; out of nothing once.
    nodes = np.unique(np.concatenate((table.base[stages], table.goal[stages])))
    nodes = nodes[:-1]
    into, out = np.searchsorted(nodes, table.goal[stages]), np.searchsorted(nodes, table.base[stages])
    inner = into < len(nodes)
    side = np.zeros(len(nodes))
    side[0] = 1.0
    flow = RowBlock(
        Origin("path"), np.concatenate((out, into[inner])), np.concatenate((np.arange(count), np.flatnonzero(inner))),
        np.concatenate((np.ones(count), -np.ones(int(inner.sum())))), side, side,
    )  # fmt: skip
    lower, upper = np.zeros(count + 1), np.append(np.ones(count), box.high)
    lower[count] = max(box.low, 0.0)
    integer = np.append(np.ones(count, dtype=bool), False)
    constraints: list[Implication | Product] = []
    for general in choice.instance.rules.general:
        lower, upper, integer = _general(choice, stages, general, rows, (lower, upper, integer), constraints, count)
    blocks = tuple(block for block in (flow, rows.block()) if block.rows)
    goal = Objective("any", np.zeros(0, dtype=np.int64), np.zeros(0))
    program = Program(lower, upper, integer, {}, blocks, tuple(constraints), (goal,))
    return lower_program(program)


def lower_program(program: Program) -> LinearProgram:
    """As a linear program; implications are the rewrites' business."""
    if program.constraints:
        return lower(program, objective=0).program
    block_rows = np.cumsum([0, *(block.rows for block in program.rows)])
    row = np.concatenate([block.row + at for block, at in zip(program.rows, block_rows, strict=False)])
    column = np.concatenate([block.column for block in program.rows])
    coefficient = np.concatenate([block.coefficient for block in program.rows])
    order = np.lexsort((column, row))
    start = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=int(block_rows[-1])))))
    return LinearProgram(
        np.zeros(program.columns), 0.0, program.lower, program.upper, program.integer, start, column[order],
        coefficient[order], np.concatenate([block.lower for block in program.rows]),
        np.concatenate([block.upper for block in program.rows]),
    )  # fmt: skip


def _general(
    choice: StageChoice, stages: Integers, general: General, rows: _Rows,
    columns: tuple[Floats, Floats, Booleans], constraints: list[Implication | Product], time: int,
) -> tuple[Floats, Floats, Booleans]:  # fmt: skip
    """A rule over named devices: a column for each number of a device that it is about, and its own."""
    lower, upper, integer = columns
    part, layout = general.written, choice.instance.rules.columns
    named = sorted({*part.always.column.tolist(), *part.conditional.body.column.tolist(),
                    *(c for row in part.conditional.literals for c, _ in row),
                    *(c for triple in part.products for c in triple)})  # fmt: skip
    table = choice.table
    of_device = {int(m[0]): c for c, m in enumerate(choice.instance.classes.devices)}
    place: dict[int, int] = {layout.time: time}
    low, high, whole = list[float](), list[float](), list[bool]()
    for column in named:
        if column == layout.time:
            continue
        place[column] = len(lower) + len(low)
        if column >= layout.count:
            low.append(0.0 if general.binary[column] else -np.inf)
            high.append(1.0 if general.binary[column] else np.inf)
            whole.append(bool(general.binary[column]))
            continue
        device, feature = column % layout.devices, column // layout.devices
        own = np.flatnonzero(table.kind[stages] == of_device[device])
        values = StageNumbers(table, stages[own]).feature(feature) if len(own) else np.zeros(0)
        filled = np.flatnonzero(values)
        largest = float(values.max(initial=0.0))
        rows.add(np.append(own[filled], place[column]), np.append(values[filled], -1.0), 0.0, 0.0)
        low.append(0.0)
        high.append(largest)
        whole.append(feature < layout.units or feature == layout.units + NUMBERS.index("used"))

    def moved(one: Inequalities) -> Integers:
        return np.array([place[c] for c in one.column.tolist()], dtype=np.int64)

    always, body = part.always, part.conditional.body
    at = moved(always)
    for i in range(always.count):
        entries_of_row = slice(int(always.start[i]), int(always.start[i + 1]))
        coefficient = always.coefficient[entries_of_row]
        size = float(np.abs(coefficient).max(initial=0.0))
        rows.add(at[entries_of_row], coefficient, -np.inf, float(always.upper[i]) + WIDENED * size)
    if body.count:
        entries = [(i, place[c], value) for i, row in enumerate(part.conditional.literals) for c, value in row]
        literal_row, literal_column, literal_value = (np.array(column) for column in zip(*entries, strict=True))
        block = RowBlock(Origin("rule"), body.row_of_entry(), moved(body), body.coefficient,
                         np.full(body.count, -np.inf), body.upper * 1.0)  # fmt: skip
        constraints.append(Implication(Origin("rule"), literal_row, literal_column, literal_value.astype(bool), block))
    if part.products:
        triples = np.array([[place[c] for c in triple] for triple in part.products], dtype=np.int64)
        constraints.append(Product(Origin("rule"), triples[:, 0], triples[:, 1], triples[:, 2]))
    return (
        np.append(lower, low), np.append(upper, high), np.append(integer, np.array(whole, dtype=bool))
    )  # fmt: skip


def asked(program: LinearProgram, seconds: float, seed: int) -> tuple[str, Floats | None]:
    """How HiGHS ends, and its point."""
    stop_at_first = bool(program.integer.any())

    def heard(point: Floats | None, _value: float, _bound: float) -> bool:
        return stop_at_first and point is not None

    outcome = get("highs").run(program, Budget(max(seconds, 0.05), 0.0, 1, seed), heard)
    return outcome.termination, outcome.incumbent
