"""A problem and a formulation to a program, and a solver's point back to a placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.graph.contraction import Quotient
from placedsl.grounding.constraints import ConstraintGrounder
from placedsl.grounding.expressions import ExpressionGrounder
from placedsl.grounding.frames import ROOT, Columns, Frame
from placedsl.grounding.likeness import likeness_of, tells_devices_apart
from placedsl.grounding.longest_run import longest_run, times_of_run
from placedsl.grounding.propagation import completed
from placedsl.grounding.provenance import Part, Recorder
from placedsl.grounding.provided_quantities import ProvidedQuantities, QuantitiesOfUnits
from placedsl.grounding.universe import of_quotient, original, quotient_of, to_quotient
from placedsl.grounding.variables import declare
from placedsl.ir.affine import Affine
from placedsl.ir.program import Implication, Maximum, Objective, Origin, Product, Program, RowBlock, VariableBlock
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.formulation import Formulation, NamedRule
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values
from placedsl.records import dataclass


@dataclass(frozen=True, eq=False)
class Grounded:
    """A program, with what is needed to read a placement off its points.

    ``on`` is units x devices: the column that puts a unit on a device (-1: not supported).
    ``own`` holds the spec's own variables, each with the index positions of its columns; ``never`` the rows of
    the spec (origin and position) that are false whatever the placement.  ``units`` names the units, ``parts`` tells
    what each constraint, objective, variable and row family has brought forth.  ``schedule_decisions`` are
    the quantities that an answer gives beside the placement.
    """

    program: Program
    quotient: Quotient
    on: Integers
    own: Mapping[str, tuple[VariableBlock, tuple[Integers, ...]]]
    never: tuple[tuple[Origin, int], ...]
    units: tuple[str, ...]
    parts: tuple[Part, ...]
    schedule_decisions: Mapping[str, ScheduleDecision] = field(default_factory=dict)

    def placement(self, point: Floats) -> Integers:
        """The device of each node of the problem."""
        values = np.where(self.on >= 0, point[np.maximum(self.on, 0)], -1.0)
        chosen: Integers = np.argmax(values, axis=1)[self.quotient.unit_of_node]
        return chosen

    def values(self, point: Floats) -> Values:
        """The values of the spec's own variables, and of what else an answer says, by the positions of indices."""
        out: dict[str, dict[tuple[int, ...], float]] = {}
        for name, (block, slots) in self.own.items():
            columns = np.arange(block.start, block.start + block.size)
            given = point[columns]
            whole = self.program.integer[columns]
            given = np.where(whole, np.rint(given), given)
            given = np.clip(given, self.program.lower[columns], self.program.upper[columns])
            keys = zip(*(s.tolist() for s in slots), strict=True) if slots else [()]
            out[name] = dict(zip(keys, given.tolist(), strict=True))
        for name, decision in self.schedule_decisions.items():
            keys = zip(*(p.tolist() for p in decision.positions), strict=True)
            out[name] = dict(zip(keys, decision.at(point).tolist(), strict=True))
        return out

    def hint(self, device_of_node: Integers, values: Values | None = None) -> Floats:
        """A starting point: the placement's columns; with ``values`` of all schedule decisions, all that they imply.

        What stays unknown is nan.
        """
        point = np.full(self.program.columns, np.nan)
        point[self.on[self.on >= 0]] = 0.0
        device_of_unit = np.empty(self.quotient.units, dtype=np.int64)
        device_of_unit[self.quotient.unit_of_node] = device_of_node
        chosen = self.on[np.arange(self.quotient.units), device_of_unit]
        point[chosen[chosen >= 0]] = 1.0
        given = values or {}
        if not self.schedule_decisions or not self.schedule_decisions.keys() <= given.keys():
            return point
        rows = tuple(decision.rows_at(point, given[name]) for name, decision in self.schedule_decisions.items())
        return completed(self.program, point, rows)


@dataclass(frozen=True, eq=False)
class ScheduleDecision:
    """A quantity for each of its elements: ``positions`` (an array an index), and its value over the columns."""

    positions: tuple[Integers, ...]
    value: Affine

    def at(self, point: Floats) -> Floats:
        """Its values."""
        terms = self.value.coefficient * point[self.value.column]
        return self.value.constant + np.bincount(self.value.row, terms, minlength=self.value.size)

    def rows_at(self, point: Floats, given: Mapping[tuple[int, ...], float]) -> RowBlock:
        """Rows that say that it has these values; of columns that count several numbers those of another are zero."""
        keys = zip(*(p.tolist() for p in self.positions), strict=True)
        wanted = np.array([given.get(key, np.nan) for key in keys]) - self.value.constant
        row, column = self.value.row, self.value.column
        several = np.bincount(row, minlength=self.value.size)[row] > 1
        other = several & ~np.isnan(wanted[row]) & (self.value.coefficient != wanted[row])
        point[column[other]] = 0.0
        low, high = np.where(np.isnan(wanted), -np.inf, wanted), np.where(np.isnan(wanted), np.inf, wanted)
        return RowBlock(Origin("schedule decision"), row, column, self.value.coefficient, low, high)


@np.errstate(over="ignore")  # what is beyond floating point is infinite, and refused where it would be a coefficient
def build(problem: Problem, formulation: Formulation, *, contracted: bool = True) -> Grounded:
    """Ground a formulation and the spec's constraints over a problem.

    What must share a device is contracted first, unless the formulation asks of a node what a unit of several does
    not have: the part that it belongs to, its name, an attribute of the graph.
    """
    merge = problem.execution.options is None and not any("tensor" in d.sorts for d in formulation.provides.values())
    said = [part for body in _bodies(formulation) for part in walks.every(body)]
    quotient = quotient_of(problem, contracted and not _tells_nodes_apart(formulation, said), merge)
    columns = Columns()
    recorder = Recorder(columns)
    alike = all(r.built_in for r in problem.constraints) and not tells_devices_apart(problem, said)
    likeness = likeness_of(problem, said) if problem.execution.options is not None else None
    provided = ProvidedQuantities(formulation, of_quotient(problem, quotient, likeness), columns)
    across = QuantitiesOfUnits(provided, to_quotient(quotient))
    inner = provided.expressions
    outer = ExpressionGrounder(original(problem), columns, problem.sets, problem.tables, across)
    outer.sets.stated = True
    rules_of_formulation = ConstraintGrounder(inner)
    rules_of_spec = ConstraintGrounder(
        outer,
        precedence=(problem.precedence_source, problem.precedence_target),
        edges=(problem.graph.edge_source, problem.graph.edge_target),
        interchangeable=problem.interchangeable() if alike else None if likeness is None else likeness.devices,
    )
    needed = _needed(problem, formulation)
    timed, longest = times_of_run(formulation), longest_run(problem)
    for name, variable in formulation.variables.items():
        if name in needed:
            with recorder.part("variable", name, variable.span):
                high = min(variable.high, longest) if name in timed else variable.high
                declare(inner, replace(variable, high=high))
    own: dict[str, tuple[VariableBlock, tuple[Integers, ...]]] = {}
    for name, variable in problem.variables.items():
        with recorder.part("variable", name, variable.span):
            slots = declare(outer, variable)
        own[name] = outer.variables.blocks[name], slots
    if problem.execution.data_parallelism is not None:  # the one decision that spec and formulation share
        inner.variables.share("copies", outer.variables)

    goals = []
    for goal in problem.objectives:
        with recorder.part("objective", goal.name, goal.span):
            goals.append(_objective(outer, goal.body, goal.name))
    objectives = tuple(goals)
    for rule in problem.constraints:
        with recorder.part("constraint", rule.name, rule.span):
            rules_of_spec.require(rule.body, ROOT, rule.name, rule.span)
    never = tuple(columns.impossible)
    spoken = len(columns.rows), len(columns.constraints)
    for named in formulation.rules:
        if _variables_of(named.body) <= needed:
            with recorder.part("row family", _title(named), named.span):
                rules_of_formulation.require(named.body, ROOT, _title(named), named.span)
    columns = _tightened(rules_of_formulation, formulation, columns, spoken, objectives, recorder)

    # Reported by whoever looks for it; a unit that no device supports is for the solver to refute.
    refuted = len(columns.rows)
    columns.rows += [_false(origin, row) for origin, row in columns.impossible]
    every = np.indices((quotient.units, len(problem.machine.devices))).reshape(2, -1)
    on = provided.definition("on", (every[0], every[1]))
    lookup = np.full(on.size, -1, dtype=np.int64)
    lookup[on.row] = on.column
    program = Program(
        np.concatenate(columns.lower), np.concatenate(columns.upper), np.concatenate(columns.integer),
        dict(inner.variables.blocks), tuple(r for r in columns.rows if r.rows), tuple(columns.constraints), objectives,
        column_origins=tuple(columns.origins),
        column_start=np.concatenate(([0], np.cumsum([len(low) for low in columns.lower]))),
    )  # fmt: skip
    unit_names = inner.universe.labels["node"]
    placed = lookup.reshape(quotient.units, -1)
    decisions = {
        name: _schedule_decision(outer, formulation, name)
        for name in problem.execution.schedule_decisions
        if name in formulation.provides
    }
    grounded = Grounded(program, quotient, placed, own, never, unit_names, recorder.parts(refuted), decisions)
    columns.forget()
    return grounded


def _schedule_decision(expressions: ExpressionGrounder, formulation: Formulation, name: str) -> ScheduleDecision:
    """A quantity for all elements of the problem that it is about."""
    sorts = formulation.provides[name].sorts
    sizes = [expressions.universe.sizes[sort] for sort in sorts]
    positions = tuple(np.asarray(p).ravel() for p in np.indices(sizes))
    slots = tuple(f"·{i}" for i in range(len(sorts)))
    frame = Frame(len(positions[0]), dict(zip(slots, positions, strict=True)), dict(zip(slots, sorts, strict=True)))
    span = formulation.provides[name].span
    arguments = tuple(core.Slot(slot, sort, span) for slot, sort in zip(slots, sorts, strict=True))
    return ScheduleDecision(positions, expressions.value(core.Provided(name, arguments, span), frame).merged())


def _title(rule: NamedRule) -> str:
    return f"{rule.name}({rule.label})" if rule.label else rule.name


def _objective(expressions: ExpressionGrounder, body: core.Expression, name: str) -> Objective:
    value = expressions.value(body, ROOT)
    return Objective(name, value.column, value.coefficient, float(value.constant[0]))


def _false(origin: Origin, row: int) -> RowBlock:
    none = np.zeros(0, dtype=np.int64)
    return RowBlock(origin.take(np.array([row])), none, none, np.zeros(0), np.ones(1), np.full(1, np.inf))


def _bodies(formulation: Formulation) -> list[core.Expression]:
    """Every expression of a formulation."""
    rules = [*formulation.rules, *(rule for rules in formulation.tight.values() for rule in rules)]
    return [*(d.body for d in formulation.provides.values()), *(rule.body for rule in rules)]


def _tells_nodes_apart(formulation: Formulation, said: Sequence[walks.Part]) -> bool:
    """Whether it asks of a node what a unit of several nodes does not have, or says of it what such a unit cannot.

    ``said``: all parts of its expressions.
    """
    if any("node" in d.sorts and name not in ("on", "inside") for name, d in formulation.provides.items()):
        return True
    binders = [b for variable in formulation.variables.values() for b in variable.binders]
    for part in (*said, *(part for binder in binders for part in walks.every(binder))):
        match part:
            case core.NamedSet(name="forward" | "backward") | core.Element(sort="node"):
                return True
            case core.Attribute(sort="node", name=name) if name not in (
                "memory",
                "time",
                "supported",
                "synchronisation",
            ):
                return True
    return False


def _variables_of(node: core.Expression) -> set[str]:
    """The decision variables that an expression mentions itself."""
    return {part.variable for part in walks.every(node) if isinstance(part, core.Decision)}


def _needed(problem: Problem, formulation: Formulation) -> set[str]:
    """The variables that the spec's objectives and constraints rest on, and the rows that will be there with them.

    A row is there when all variables that it mentions itself are needed; the quantities that it mentions rest on
    further ones.
    """
    asked = [*(o.body for o in problem.objectives), *(r.body for r in problem.constraints)]
    spoken = set().union(*(_variables_of(d.body) for d in formulation.provides.values()))
    # What no quantity rests on serves the rows alone, and is there for them.
    found: set[str] = set(formulation.always) | (formulation.variables.keys() - spoken)
    shared = {"load", "used"} if problem.execution.data_parallelism is not None else set()
    found |= {"copies"} if shared else set()
    seen: set[str] = set()

    def rest(names: set[str]) -> None:
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in formulation.provides and name not in seen:
                seen.add(name)
                body = formulation.provides[name].body
                found.update(_variables_of(body))
                waiting += walks.provided_names(body)

    # The decisions that the spec's bodies mention themselves are its own.
    rest({"on", *problem.execution.schedule_decisions}.union(shared, *map(walks.provided_names, asked)))
    rows = [(_variables_of(rule.body), walks.provided_names(rule.body)) for rule in formulation.rules]
    before = -1
    while before < len(found):
        before = len(found)
        for variables, quantities in rows:
            if variables <= found:
                rest(quantities)
        for rule in (rule for name in found & formulation.tight.keys() for rule in formulation.tight[name]):
            found.update(_variables_of(rule.body))
            rest(walks.provided_names(rule.body))
    return found


def _tightened(
    grounder: ConstraintGrounder,
    formulation: Formulation,
    columns: Columns,
    spoken: tuple[int, int],
    objectives: tuple[Objective, ...],
    recorder: Recorder,
) -> Columns:
    """Make maxima exact, and add ``tight`` rows, where something rewards a value that is too large.

    Rows of the formulation itself define its variables from below and are not asked; what the spec
    says (its first ``spoken`` rows and constraints) and the objectives are.
    """
    rewarded = np.zeros(columns.count, dtype=bool)
    for objective in objectives:
        rewarded[objective.column[objective.coefficient < 0]] = True
    for block in columns.rows[: spoken[0]]:
        _reward(rewarded, block)
    for constraint in columns.constraints[: spoken[1]]:
        if isinstance(constraint, Implication):
            _reward(rewarded, constraint.rows)
            rewarded[constraint.literal_column] = True
        elif isinstance(constraint, Product):
            rewarded[constraint.factor] = rewarded[constraint.binary] = True
    maxima = [(i, one) for i, one in enumerate(columns.constraints) if isinstance(one, Maximum)]
    for _, constraint in maxima:
        rewarded[constraint.column[constraint.coefficient < 0]] = True
    exact: set[int] = set()
    while True:
        before = len(exact)
        for i, constraint in maxima:
            if i in exact:
                continue
            if rewarded[constraint.result].any():
                exact.add(i)
                rewarded[constraint.column] = True
        if len(exact) == before:
            break
    for i in exact:
        constraint = columns.constraints[i]
        assert isinstance(constraint, Maximum)
        columns.constraints[i] = replace(constraint, exact=True)
    there: set[int] = set()  # one row may hold down several variables
    for name, rules in formulation.tight.items():
        block_of = grounder.expressions.variables.blocks.get(name)
        if block_of is None or not rewarded[block_of.start : block_of.start + block_of.size].any():
            continue
        for rule in rules:
            if id(rule) in there:
                continue
            there.add(id(rule))
            with recorder.part("tight rows", _title(rule), rule.span):
                grounder.require(rule.body, ROOT, _title(rule), rule.span)
    return columns


def _reward(rewarded: np.ndarray, block: RowBlock) -> None:
    upper = np.isfinite(block.upper)[block.row] & (block.coefficient < 0)
    lower = np.isfinite(block.lower)[block.row] & (block.coefficient > 0)
    rewarded[block.column[upper | lower]] = True
