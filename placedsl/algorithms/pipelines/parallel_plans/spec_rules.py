"""What a spec requires of plans, as linear rows over the quantities that a plan has.

Constraints are grounded over one column per quantity and element (``tensor(v)``, ``stages_used``), and not over the
decisions of a program: a row then says which parts of a plan it is about.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.arrays import Booleans, Floats, Integers
from placedsl.diagnostics import InputError
from placedsl.grounding.constraints import ConstraintGrounder
from placedsl.grounding.expressions import ExpressionGrounder
from placedsl.grounding.frames import ROOT, Columns
from placedsl.grounding.universe import original
from placedsl.ir.affine import Affine, of_columns
from placedsl.ir.program import Implication, Origin, RowBlock, VariableBlock
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.execution import OptionCosts
from placedsl.problem.problem import Constraint, Problem

#: The quantities that rules may be about: the sorts of their indices, and the least value.
FAMILIES: dict[str, tuple[tuple[core.Sort, ...], float]] = {
    "tensor": (("node",), 1), "data": (("node",), 1), "in_flight": (("node",), 1), "stage": (("node",), 1),
    "takes": (("node", "option"), 0), "stages_used": ((), 1), "copies_used": ((), 1), "devices_used": ((), 1),
    "time_per_sample": ((), 0), "load": (("device",), 0), "memory": (("device",), 0), "used": (("device",), 0),
    "copies": (("device",), 0),
}  # fmt: skip
#: Those that are real numbers.
_REAL = ("time_per_sample", "load", "memory")
#: A quantity of each device, and what it comes to where all devices have the same coefficient.
_TOTALS = {"used": "stages_used", "copies": "copies_used"}


class _BeyondError(Exception):
    """A constraint is about something else."""


@dataclass(frozen=True, eq=False)
class PlanColumns:
    """Columns by quantity: those of a family are ``start[name] + position`` (of its indices, in C order)."""

    start: dict[str, int]
    shape: dict[str, tuple[int, ...]]
    count: int

    def of(self, name: str) -> Integers:
        """All columns of a family, in the shape of its indices."""
        shape = self.shape[name]
        out: Integers = (self.start[name] + np.arange(int(np.prod(shape)))).reshape(shape)
        return out

    @classmethod
    def of_problem(cls, problem: Problem, costs: OptionCosts) -> PlanColumns:
        """One column per quantity and element."""
        sizes = {"node": problem.graph.nodes, "device": len(problem.machine.devices), "option": len(costs.labels)}
        shape = {name: tuple(sizes[s] for s in sorts) for name, (sorts, _) in FAMILIES.items()}
        ends = np.cumsum([int(np.prod(one)) for one in shape.values()])
        start = dict(zip(shape, [0, *ends[:-1].tolist()], strict=True))
        return cls(start, shape, int(ends[-1]))


@dataclass(frozen=True, eq=False)
class SpecRules:
    """Rows ``lower <= sum of coefficient * column <= upper`` as triplets, over C columns.

    ``strict``       per row: the sides are excluded
    ``literal``      per row: a 0/1 column that it depends on (-1: it always holds), and ``wanted`` its value
    ``low``, ``high``, ``integer``   C
    ``name``         per row: the constraint that it belongs to
    ``beyond``       names of constraints that are about something else
    ``capacity``, ``time``, ``copies``  D limits of devices: bytes beside their memory, seconds per sample, copies
    """

    columns: PlanColumns
    row: Integers
    column: Integers
    coefficient: Floats
    lower: Floats
    upper: Floats
    strict: Booleans
    literal: Integers
    wanted: Booleans
    low: Floats
    high: Floats
    integer: Booleans
    name: tuple[str, ...]
    beyond: tuple[str, ...]
    capacity: Floats
    time: Floats
    copies: Floats

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.lower)


def largest(problem: Problem) -> dict[str, float]:
    """The largest value that each quantity may have."""
    sharing, devices = problem.execution.data_parallelism, float(len(problem.machine.devices))
    assert sharing is not None
    copies = min(devices, float(sharing.most_in_pipeline or devices))
    # A number above those that are allowed would seem to bind once domains have been propagated.
    data = float(max(number for number in sharing.degrees if number <= copies))
    stages = min(devices, float(problem.graph.nodes))
    in_flight = max(copies, float(sharing.microbatches or 1))
    return {
        "tensor": devices, "data": data, "in_flight": in_flight, "stage": stages, "takes": 1.0, "stages_used": stages,
        "copies_used": copies, "devices_used": devices, "time_per_sample": np.inf, "load": np.inf, "memory": np.inf,
        "used": 1.0, "copies": data,
    }  # fmt: skip


class _Quantities:
    """The quantities of a plan, each a column."""

    def __init__(self, columns: PlanColumns) -> None:
        self.columns = columns

    def of(self, node: core.Provided, arguments: list[Integers], size: int) -> Affine:
        """A quantity for each of ``size`` rows."""
        if node.name not in FAMILIES:
            raise _BeyondError
        start, shape = self.columns.start[node.name], self.columns.shape[node.name]
        if not arguments:
            return of_columns(np.full(size, start, dtype=np.int64))
        return of_columns(start + np.ravel_multi_index(arguments, shape).astype(np.int64))


class _Gathered:
    """Rows of all constraints, as they come."""

    def __init__(self) -> None:
        self.blocks: list[tuple[RowBlock, Integers, Booleans, str]] = []

    def add(self, block: RowBlock, name: str, literal: Integers | None = None, wanted: Booleans | None = None) -> None:
        """A block; a literal and the value that it depends on per row."""
        rows = len(block.lower)
        self.blocks.append((
            block, np.full(rows, -1, dtype=np.int64) if literal is None else literal,
            np.ones(rows, dtype=bool) if wanted is None else wanted, name,
        ))  # fmt: skip


def rules_of(problem: Problem, costs: OptionCosts, constraints: list[Constraint]) -> SpecRules:
    """The rows of some constraints of a problem; those about something else are named."""
    layout = PlanColumns.of_problem(problem, costs)
    columns = Columns()
    most = largest(problem)
    for name, (_, low) in FAMILIES.items():
        columns.add(int(np.prod(layout.shape[name])), low, most[name], name not in _REAL, Origin(name))
    gathered, beyond, limits = _Gathered(), list[str](), _Limits(problem, layout)
    if not constraints:
        return _rules(columns, layout, gathered, (), limits)
    expressions = ExpressionGrounder(original(problem), columns, problem.sets, problem.tables, _Quantities(layout))
    copies = layout.of("copies")
    expressions.variables.blocks["copies"] = VariableBlock("copies", copies, int(copies[0]), len(copies), ("d",))
    expressions.variables.sorts["copies"] = ("device",)
    grounder = ConstraintGrounder(expressions)
    for rule in constraints:
        spoken = len(columns.rows), len(columns.constraints), len(columns.impossible), columns.count
        blocks: list[tuple[RowBlock, Integers | None, Booleans | None]] | None = None
        decided = {part.variable for part in walks.every(rule.body) if isinstance(part, core.Decision)}
        if decided <= {"copies"}:
            try:
                grounder.require(rule.body, ROOT, rule.name, rule.span)
                blocks = _understood(columns, layout, spoken)
            except (_BeyondError, InputError):
                blocks = None
        if blocks is None or not limits.take(blocks):
            beyond.append(rule.name)
            continue
        for block, literal, wanted in blocks:
            gathered.add(block, rule.name, literal, wanted)
        if len(columns.impossible) > spoken[2]:
            none = np.zeros(0, dtype=np.int64)
            never = RowBlock(Origin(rule.name), none, none, np.zeros(0), np.ones(1), np.full(1, np.inf))
            gathered.add(never, rule.name)
    return _rules(columns, layout, gathered, tuple(beyond), limits)


def _understood(
    columns: Columns, layout: PlanColumns, spoken: tuple[int, int, int, int]
) -> list[tuple[RowBlock, Integers | None, Booleans | None]] | None:
    """The blocks that a constraint has brought; None if there is more to it than rows over the quantities of a plan.

    A further column is understood if it stands for whether some of the rows hold.
    """
    implications = columns.constraints[spoken[1] :]
    out: list[tuple[RowBlock, Integers | None, Booleans | None]] = [(b, None, None) for b in columns.rows[spoken[0] :]]
    defined = set[int]()
    for one in implications:
        if not isinstance(one, Implication) or len(one.literal_row) != one.rows.rows:
            return None
        order = np.argsort(one.literal_row)
        if (one.literal_row[order] != np.arange(one.rows.rows)).any():
            return None
        out.append((one.rows, one.literal_column[order], one.literal_value[order]))
        defined |= set(one.literal_column[one.literal_value].tolist())
    mentioned = np.concatenate([block.column for block, _, _ in out] or [np.zeros(0, dtype=np.int64)])
    return out if {*mentioned[mentioned >= layout.count].tolist()} <= defined else None


class _Limits:
    """Limits of devices, alike within each class of like ones: they are kept as numbers, and as rows no longer."""

    def __init__(self, problem: Problem, layout: PlanColumns) -> None:
        self.devices = len(problem.machine.devices)
        self.classes = problem.interchangeable(clustered=False)
        self.layout = layout
        self.of = {name: np.full(self.devices, np.inf) for name in ("memory", "load", "copies")}

    def take(self, blocks: list[tuple[RowBlock, Integers | None, Booleans | None]]) -> bool:
        """Take limits of devices out of the blocks of a constraint; False if it tells devices apart, or asks for
        something else of them."""
        kept: list[tuple[RowBlock, Integers | None, Booleans | None]] = []
        found: dict[str, Floats] = {}
        for given, literal, wanted in blocks:
            block = self._totals(given)
            about = [name for name in ("load", "memory", "used", "copies") if self._mentions(block, name).any()]
            if not about:
                kept.append((block, literal, wanted))
                continue
            single = np.bincount(block.row, minlength=block.rows) == 1
            if literal is not None or block.strict or about == ["used"] or len(about) > 1 or not single.all():
                return False
            name, device = about[0], block.column - self.layout.start[about[0]]
            order = np.argsort(block.row)
            coefficient, device = block.coefficient[order], device[order]
            with np.errstate(invalid="ignore"):
                least = np.where(coefficient > 0, block.lower, block.upper) / coefficient
                most = np.where(coefficient > 0, block.upper, block.lower) / coefficient
            if (least > (0.0 if name != "load" else -np.inf)).any():
                return False
            np.minimum.at(found.setdefault(name, np.full(self.devices, np.inf)), device, most)
        least = np.full(int(self.classes.max()) + 1, np.inf)
        for most in found.values():
            least[:] = np.inf
            np.minimum.at(least, self.classes, most)
            if (most > least[self.classes]).any():
                return False
        for name, most in found.items():
            self.of[name] = np.minimum(self.of[name], most)
        blocks[:] = kept
        return True

    def _mentions(self, block: RowBlock, name: str) -> Booleans:
        start, size = self.layout.start[name], int(np.prod(self.layout.shape[name]))
        out: Booleans = (block.column >= start) & (block.column < start + size)
        return out

    def _totals(self, block: RowBlock) -> RowBlock:
        """With the number of stages, or of copies, in place of the same multiple of all devices' own."""
        row, column, coefficient = block.row, block.column, block.coefficient
        for name, total in _TOTALS.items():
            own = self._mentions(RowBlock(block.origin, row, column, coefficient, block.lower, block.upper), name)
            if not own.any():
                continue
            low, high = np.full(block.rows, np.inf), np.full(block.rows, -np.inf)
            np.minimum.at(low, row[own], coefficient[own])
            np.maximum.at(high, row[own], coefficient[own])
            whole = (np.bincount(row[own], minlength=block.rows) == self.devices) & (low == high)
            gone = own & whole[row]
            rows = np.flatnonzero(whole)
            row = np.concatenate((row[~gone], rows))
            column = np.concatenate((column[~gone], np.full(len(rows), self.layout.start[total])))
            coefficient = np.concatenate((coefficient[~gone], low[rows]))
        return RowBlock(block.origin, row, column, coefficient, block.lower, block.upper, block.strict)


def _rules(
    columns: Columns, layout: PlanColumns, gathered: _Gathered, beyond: tuple[str, ...], limits: _Limits
) -> SpecRules:
    blocks = gathered.blocks
    starts = np.cumsum([0, *(block.rows for block, _, _, _ in blocks)])
    none, real = np.zeros(0, dtype=np.int64), np.zeros(0)
    low, high = np.concatenate(columns.lower), np.concatenate(columns.upper)
    data = layout.of("data")
    high[data] = np.minimum(high[data], limits.of["copies"].max())
    high[layout.start["time_per_sample"]] = limits.of["load"].max()
    return SpecRules(
        layout,
        np.concatenate([block.row + at for (block, _, _, _), at in zip(blocks, starts, strict=False)] or [none]),
        np.concatenate([block.column for block, _, _, _ in blocks] or [none]),
        np.concatenate([block.coefficient for block, _, _, _ in blocks] or [real]),
        np.concatenate([block.lower for block, _, _, _ in blocks] or [real]),
        np.concatenate([block.upper for block, _, _, _ in blocks] or [real]),
        np.concatenate([np.full(block.rows, block.strict) for block, _, _, _ in blocks] or [none.astype(bool)]),
        np.concatenate([literal for _, literal, _, _ in blocks] or [none]),
        np.concatenate([wanted for _, _, wanted, _ in blocks] or [none.astype(bool)]),
        low, high, np.concatenate(columns.integer), tuple(name for block, _, _, name in blocks for _ in block.lower),
        beyond, limits.of["memory"], limits.of["load"], limits.of["copies"],
    )  # fmt: skip
