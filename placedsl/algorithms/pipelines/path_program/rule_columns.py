"""Rules of a spec as rows over what devices hold: one column a quantity and device, and not one a decision.

A column of a device is a number of the stage that it has, and 0 where it has none.  What rules add (0/1 columns that
say whether something holds, maxima, products) are further columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.pipelines.path_program.applies import own_rules
from placedsl.arrays import Integers, whole_numbers
from placedsl.diagnostics import InputError
from placedsl.graph.contraction import Quotient
from placedsl.grounding.constraints import ConstraintGrounder
from placedsl.grounding.expressions import ExpressionGrounder
from placedsl.grounding.frames import ROOT, Columns
from placedsl.grounding.universe import original
from placedsl.ir import affine
from placedsl.ir.affine import Affine
from placedsl.ir.program import GlobalConstraint, Origin, RowBlock
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.problem import Problem

#: The numbers of a stage beside which units it has.
NUMBERS = ("load", "memory", "used", "compute_time", "transfer_time")
#: More entries than this are not grounded for one rule.
_MOST_ENTRIES = 2_000_000


class _BeyondError(Exception):
    """A rule is about something else."""


@dataclass(frozen=True, eq=False)
class StageColumns:
    """Columns of u units and D devices: ``unit * D + device``, then :data:`NUMBERS`, then the time per sample.

    A *feature* is what a column is of its device: a unit, or u + the position of a number.
    """

    units: int
    devices: int

    @property
    def features(self) -> int:
        """How many numbers a stage has."""
        return self.units + len(NUMBERS)

    @property
    def time(self) -> int:
        """The column of the time per sample."""
        return self.features * self.devices

    @property
    def count(self) -> int:
        """How many there are before rules add their own."""
        return self.time + 1

    def of(self, name: str, device: Integers) -> Integers:
        """The columns of a number."""
        return (self.units + NUMBERS.index(name)) * self.devices + device


@dataclass(frozen=True, eq=False)
class GroundRule:
    """What one rule has brought forth: ``columns`` of its own begin at ``first``; ``used_only``: it is about devices
    in use."""

    name: str
    rows: tuple[RowBlock, ...]
    constraints: tuple[GlobalConstraint, ...]
    first: int
    columns: int
    binary: np.ndarray
    impossible: bool
    used_only: bool


class _Quantities:
    """The quantities of the vocabulary as columns."""

    def __init__(self, problem: Problem, quotient: Quotient, layout: StageColumns) -> None:
        self.problem, self.quotient, self.layout = problem, quotient, layout
        self.accelerators = np.flatnonzero(problem.accelerators)
        self.sequential = problem.execution.communication == "sequential"

    def of(self, node: core.Provided, arguments: list[Integers], size: int) -> Affine:
        """A quantity for each of ``size`` rows."""
        layout, everyone = self.layout, np.arange(self.layout.devices)
        match node.name:
            case "on":
                return affine.of_columns(self.quotient.unit_of_node[arguments[0]] * layout.devices + arguments[1])
            case "inside":
                members = [np.array(c.devices, dtype=np.int64) for c in self.problem.machine.clusters]
                counts = np.array([len(m) for m in members], dtype=np.int64)[arguments[1]]
                row = np.repeat(np.arange(size), counts)
                device = np.concatenate([members[c] for c in arguments[1].tolist()] or [np.zeros(0, dtype=np.int64)])
                unit = np.repeat(self.quotient.unit_of_node[arguments[0]], counts)
                return Affine(row, unit * layout.devices + device, np.ones(len(row)), np.zeros(size))
            case "load" | "memory" | "used" | "compute_time":
                return affine.of_columns(layout.of(node.name, arguments[0]))
            case "transfer_time" if not self.problem.machine.clusters:
                return affine.of_columns(layout.of("transfer_time", arguments[0]))
            case "devices_used":
                return self._total("used", everyone, size)
            case "communication" if not self.problem.machine.clusters:
                return self._total("transfer_time", self.accelerators, size)
            case "time_per_sample":
                return affine.of_columns(np.full(size, layout.time, dtype=np.int64))
        raise _BeyondError

    def _total(self, name: str, devices: Integers, size: int) -> Affine:
        column = np.tile(self.layout.of(name, devices), size)
        return Affine(np.repeat(np.arange(size), len(devices)), column, np.ones(len(column)), np.zeros(size))


def grounded(problem: Problem, quotient: Quotient) -> tuple[StageColumns, list[GroundRule], list[str]]:
    """The rules of a spec over columns, and the names of those that are about something else."""
    layout = StageColumns(quotient.units, len(problem.machine.devices))
    columns = Columns()
    units, devices = layout.units * layout.devices, layout.devices
    whole = bool(whole_numbers(problem.graph.memory).all())
    columns.add(units, 0.0, 1.0, True, Origin("on"))
    for name in NUMBERS:
        bound, integer = (1.0, True) if name == "used" else (np.inf, whole and name == "memory")
        columns.add(devices, 0.0, bound, integer, Origin(name))
    columns.add(1, 0.0, np.inf, False, Origin("time_per_sample"))
    expressions = ExpressionGrounder(
        original(problem), columns, problem.sets, problem.tables, _Quantities(problem, quotient, layout)
    )
    grounder = ConstraintGrounder(expressions)
    out, beyond = list[GroundRule](), list[str]()
    for rule in own_rules(problem):
        start = len(columns.rows), len(columns.constraints), len(columns.impossible), columns.count
        stripped = _of_used_devices(rule.body)
        try:
            grounder.require(stripped or rule.body, ROOT, rule.name, rule.span)
        except (_BeyondError, InputError):
            del columns.rows[start[0] :], columns.constraints[start[1] :], columns.impossible[start[2] :]
            beyond.append(rule.name)
            continue
        rows = tuple(block for block in columns.rows[start[0] :] if block.rows)
        low, high = np.concatenate(columns.lower), np.concatenate(columns.upper)
        binary = np.concatenate(columns.integer) & (low >= 0.0) & (high <= 1.0)
        made = GroundRule(
            rule.name, rows, tuple(columns.constraints[start[1] :]), start[3], columns.count - start[3],
            binary[start[3] :], len(columns.impossible) > start[2], stripped is not None,
        )  # fmt: skip
        if sum(len(block.row) for block in rows) > _MOST_ENTRIES:
            beyond.append(rule.name)
        else:
            out.append(made)
    return layout, out, beyond


def _of_used_devices(body: core.Expression) -> core.Expression | None:
    """The body without its premise, where that only says that the devices which it is about are in use."""
    if isinstance(body, core.Forall):
        inner = _of_used_devices(body.body)
        return None if inner is None else core.Forall(body.binders, inner, body.span)
    match body:
        case core.Logic(operator="=>", parts=(left, core.Comparison(of="number", operator="<=" | ">=") as right)):
            premises = left.parts if isinstance(left, core.Logic) and left.operator == "and" else (left,)
            named = {
                one.arguments[0].name
                for one in premises
                if isinstance(one, core.Provided) and one.name == "used" and isinstance(one.arguments[0], core.Slot)
            }
            about = {part.name for part in walks.every(right) if isinstance(part, core.Slot) and part.sort == "device"}
            return right if len(named) == len(premises) and named == about else None
    return None
