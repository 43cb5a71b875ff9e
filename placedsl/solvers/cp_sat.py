"""CP-SAT through ortools: integers only, with implications, maxima and products taken as they are.

How real data become integers, and why the bound stays proven, stands in :mod:`placedsl.solvers.scaling`.  Continuous
columns with bounds 0 and 1 that some row of integers defines (``crosses >= x[u] - x[v]``) are Booleans here: the
formulations of this package declare only such columns that way, where 0/1 values of the decisions make them 0/1.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from placedsl.program.affine import merged
from placedsl.program.program import Booleans, Floats, Implication, Integers, LinearProgram, Maximum, Product
from placedsl.solvers.bounding import finite_bounds
from placedsl.solvers.interface import Budget, Features, Outcome, Progress, Termination
from placedsl.solvers.outcome import Clock, Guarded, installed_version, not_loaded, outcome, row_of_entry, without_terms
from placedsl.solvers.scaling import GREATEST, LEAST, Grid, IntegerRows, grid, integer_objective, integer_rows

#: Seconds between two questions whether to stop when nothing new was found.
_PAUSE = 0.2
#: A row may err by this share of the sum of its terms' absolute values.
_TOLERANCE = 1e-6
_TOO_FAR_APART = (
    "cp-sat cannot keep these data exact: the numbers within one constraint lie too many powers of ten apart for "
    "64-bit integers; use --solver highs"
)


class CpSat:
    """Constraint programming over integers with clause learning, by Google."""

    features = Features(
        "cp-sat", "ortools", frozenset({"Implication", "Maximum", "Product"}), warm_start=True,
        streams_incumbents=True, integers_only=True, assumptions=True,
        note="clause learning over integers; real data are scaled",
    )  # fmt: skip

    def available(self) -> str | None:
        """The installed version of ortools, or None."""
        return installed_version(self.features.package)

    def run(self, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:
        """Solve with CP-SAT."""
        clock, version = Clock.start(budget), self.available() or ""
        trivial = without_terms(program, budget, version)
        if trivial is not None:
            return trivial
        lower, upper = finite_bounds(program)
        if (lower > upper + 1e-9 * np.maximum(1.0, np.abs(np.where(np.isfinite(lower), lower, 0.0)))).any():
            return outcome(program, budget, clock, "infeasible", None, -np.inf, version=version)
        loose = np.flatnonzero(np.isinf(lower) | np.isinf(upper))
        if len(loose):
            return outcome(program, budget, clock, "error", None, -np.inf, _no_bounds(program, int(loose[0])), version)
        try:
            from ortools.sat.python import cp_model
        except ImportError as problem:
            return not_loaded(program, budget, clock, problem, version)

        whole = program.integer | _binary(program)
        unknowns = grid(lower, np.maximum(lower, upper), whole)
        model: Any = cp_model.CpModel()
        builder = _Builder(model.proto, unknowns)
        builder.add_columns()
        builder.add_rows(program.start, program.column, program.coefficient, program.row_lower, program.row_upper)
        for constraint in program.native:
            builder.add_native(constraint)
        goal = integer_objective(program.cost, unknowns)
        if len(goal.column):
            objective = model.proto.objective
            objective.vars.extend(goal.column.tolist())
            objective.coeffs.extend(goal.coefficient.tolist())
            objective.offset = program.offset * goal.multiplier
        builder.add_hint(program.hint)
        # A literal and its negation are i and -i - 1.
        model.proto.assumptions.extend((-program.assumed_zero - 1).tolist())
        solver: Any = cp_model.CpSolver()
        _set_parameters(solver.parameters, budget, clock)

        def real(bound: float) -> float:
            return bound / goal.multiplier - goal.error if len(goal.column) else program.offset

        heard = Guarded(program, progress)
        status = _solve(cp_model, solver, model, heard, unknowns, real)
        heard.check()
        ended: dict[Any, Termination] = {
            cp_model.OPTIMAL: "optimal",
            cp_model.INFEASIBLE: "infeasible",
            cp_model.FEASIBLE: "interrupted" if heard.stop else "time_limit",
            cp_model.UNKNOWN: "interrupted" if heard.stop else "time_limit",
        }
        reason = ended.get(status, "error")
        message = "" if reason != "error" else f"CP-SAT refuses the model: {model.validate()}"
        point, bound = heard.point, heard.bound
        if reason not in ("infeasible", "error"):
            if status != cp_model.UNKNOWN:
                point = _point(solver.response_proto.solution, unknowns)
                bound = max(bound, real(solver.best_objective_bound))
            elif len(goal.column) and np.isfinite(solver.best_objective_bound):
                bound = max(bound, real(solver.best_objective_bound))
            if point is not None and not _satisfied(program, point):
                reason, point, message = "error", None, _TOO_FAR_APART
        details = {"branches": float(solver.num_branches), "conflicts": float(solver.num_conflicts)}
        ended_so = outcome(program, budget, clock, reason, point, bound, message, version, details, 2 * goal.error)
        if reason == "infeasible" and len(program.assumed_zero):
            core = solver.response_proto.sufficient_assumptions_for_infeasibility
            return replace(ended_so, core=tuple(-literal - 1 for literal in core))
        return ended_so


def _set_parameters(parameters: Any, budget: Budget, clock: Clock) -> None:
    if clock.left is not None:
        parameters.max_time_in_seconds = clock.left
    parameters.num_workers = budget.workers
    parameters.random_seed = budget.seed % 2**31
    parameters.relative_gap_limit = budget.gap
    # Its default, 1e-4, would be in whatever unit the objective has.
    parameters.absolute_gap_limit = 0.0
    parameters.log_search_progress = False
    # One presolve step of 9.15 (merging at-most-one with linear rows) cuts off optimal points and then "proves" a
    # worse one; this switches it off: github.com/google/or-tools/issues/5293.
    parameters.presolve_inclusion_work_limit = 0


def _solve(cp_model: Any, solver: Any, model: Any, heard: Guarded, unknowns: Grid, real: Any) -> Any:
    """Run with callbacks, and with a thread that asks now and then whether to stop."""

    class Callback(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        def on_solution_callback(self) -> None:
            heard.bound = max(heard.bound, real(self.BestObjectiveBound()))
            if heard.found(_point(self.Response().solution, unknowns)):
                self.StopSearch()

    def bound(value: float) -> None:
        if np.isfinite(value) and heard.proved(real(value)):
            solver.stop_search()

    done = threading.Event()

    def ask() -> None:
        while not done.wait(_PAUSE):
            if heard.proved():
                solver.stop_search()

    # Older versions have no such callback, and the bound then comes with the solutions.
    with contextlib.suppress(AttributeError):
        solver.best_bound_callback = bound
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    try:
        return solver.solve(model, Callback())
    finally:
        done.set()
        asking.join()


def _point(values: Iterable[int], unknowns: Grid) -> Floats:
    """The real point; unknowns that were added for the solver's sake are left out."""
    return np.array(values, dtype=np.int64)[: len(unknowns.scale)] / unknowns.scale


def _satisfied(program: LinearProgram, point: Floats) -> bool:
    """Whether the rows hold for the real data."""
    row = row_of_entry(program)
    terms = program.coefficient * point[program.column]
    activity = np.bincount(row, terms, program.rows)
    allowed = _TOLERANCE * np.bincount(row, np.abs(terms), program.rows) + 1e-12
    return bool(((activity >= program.row_lower - allowed) & (activity <= program.row_upper + allowed)).all())


def _no_bounds(program: LinearProgram, column: int) -> str:
    """Names the column by the constraint that it first occurs in."""
    entries = np.flatnonzero(program.column == column)
    where = ""
    if len(entries) and program.origins:
        row = int(row_of_entry(program)[entries[0]])
        block = int(np.searchsorted(program.origin_start, row, side="right")) - 1
        where = f" (it occurs in '{program.origins[block].name}')"
    missing = f"column {column}{where} has none that can be derived"
    return f"cp-sat needs bounds, and {missing}: bound it, or use --solver highs"


def _binary(program: LinearProgram) -> Booleans:
    """Continuous columns between 0 and 1 that a row of integers over such columns defines."""
    able = program.integer | ((program.lower == 0.0) & (program.upper == 1.0))
    defined = np.zeros(program.columns, dtype=bool)
    families = [(row_of_entry(program), program.column, program.coefficient, program.rows)]
    for constraint in program.native:
        if isinstance(constraint, Implication):
            rows = constraint.rows
            families.append((rows.row, rows.column, rows.coefficient, rows.rows))
        elif isinstance(constraint, Product):
            defined[constraint.result] |= able[constraint.factor]
    for row, column, coefficient, count in families:
        other = ~able[column] | (coefficient != np.rint(coefficient))
        integral: Booleans = np.bincount(row, other, count) == 0
        defined[column[integral[row]]] = True
    return np.asarray(able & defined & ~program.integer, dtype=np.bool_)


class _Builder:
    """Fills the model's message with columns and rows."""

    def __init__(self, proto: Any, unknowns: Grid) -> None:
        self.proto, self.unknowns = proto, unknowns
        self.columns = len(unknowns.low)
        self.boolean = (unknowns.low >= 0) & (unknowns.high <= 1) & unknowns.exact

    def add_columns(self) -> None:
        """One unknown a column."""
        add = self.proto.variables.add
        for low, high in zip(self.unknowns.low.tolist(), self.unknowns.high.tolist(), strict=True):
            add().domain.extend((low, high))

    def add_boolean(self) -> int:
        """One more unknown, 0 or 1."""
        self.proto.variables.add().domain.extend((0, 1))
        self.columns += 1
        return self.columns - 1

    def add_rows(
        self, start: Integers, column: Integers, coefficient: Floats, lower: Floats, upper: Floats,
        literals: list[list[int]] | None = None,
    ) -> None:  # fmt: skip
        """Rows of real numbers, row i holding whenever all of ``literals[i]`` are true."""
        rows = integer_rows(start, column, coefficient, lower, upper, self.unknowns)
        kinds = self._kinds(rows) if literals is None else np.zeros(len(lower), dtype=np.int64)
        begins, lows, highs = start.tolist(), rows.lower.tolist(), rows.upper.tolist()
        columns, coefficients, add = column.tolist(), rows.coefficient.tolist(), self.proto.constraints.add
        for i, kind in enumerate(kinds.tolist()):
            low, high = lows[i], highs[i]
            if low == LEAST and high == GREATEST:
                continue
            terms, made = slice(begins[i], begins[i + 1]), add()
            if kind:
                # Only the one that is wanted may be touched: each access makes the others void.
                listed = getattr(made, ("exactly_one", "at_most_one", "bool_or")[kind - 1])
                listed.literals.extend(columns[terms])
                continue
            if literals is not None:
                made.enforcement_literal.extend(literals[i])
            linear = made.linear
            if low > high:
                # The row cannot hold; CP-SAT takes the ends in order only.
                linear.domain.extend((1, 1))
                continue
            linear.vars.extend(columns[terms])
            linear.coeffs.extend(coefficients[terms])
            linear.domain.extend((low, high))

    def _kinds(self, rows: IntegerRows) -> Integers:
        """1: exactly one, 2: at most one, 3: at least one, 0: none of these."""
        count = len(rows.lower)
        row = np.repeat(np.arange(count), np.diff(rows.start))
        size = np.diff(rows.start)
        plain = (np.bincount(row, (rows.coefficient != 1) | ~self.boolean[rows.column], count) == 0) & (size > 1)
        most_one = plain & (rows.upper == 1)
        kinds = np.where(most_one & (rows.lower <= 0), 2, 0)
        kinds[most_one & (rows.lower == 1)] = 1
        kinds[plain & (rows.lower == 1) & (rows.upper >= size)] = 3
        return kinds

    def add_native(self, constraint: object) -> None:
        """An implication, a maximum or a product."""
        if isinstance(constraint, Implication):
            rows = constraint.rows
            order = np.argsort(constraint.literal_row, kind="stable")
            column, true = constraint.literal_column[order], constraint.literal_value[order]
            literal = np.where(true, column, -column - 1).tolist()
            begins = np.searchsorted(constraint.literal_row[order], np.arange(rows.rows + 1)).tolist()
            conditions = [literal[begins[i] : begins[i + 1]] for i in range(rows.rows)]
            self._add_triplets(rows.row, rows.column, rows.coefficient, rows.lower, rows.upper, conditions)
        elif isinstance(constraint, Maximum):
            self._add_maximum(constraint)
        elif isinstance(constraint, Product):
            count = len(constraint.result)
            every, ones = np.arange(count), np.ones(count)
            zero = np.zeros(count)
            on = [[int(b)] for b in constraint.binary]
            off = [[-int(b) - 1] for b in constraint.binary]
            both = np.concatenate((every, every)), np.concatenate((constraint.result, constraint.factor))
            self._add_triplets(*both, np.concatenate((ones, -ones)), zero, zero, on)
            self._add_triplets(every, constraint.result, ones, zero, zero, off)
        else:
            raise TypeError(f"CP-SAT does not take a {type(constraint).__name__}")

    def _add_maximum(self, constraint: Maximum) -> None:
        """``result >= term``; when exact also ``result <= term`` for one chosen term of each group."""
        terms = len(constraint.group)
        every, none = np.arange(terms), np.full(terms, np.inf)
        row = np.concatenate((every, constraint.term))
        column = np.concatenate((constraint.result[constraint.group], constraint.column))
        coefficient = np.concatenate((np.ones(terms), -constraint.coefficient))
        self._add_triplets(row, column, coefficient, constraint.constant, none)
        if not constraint.exact:
            return
        chosen = [[self.add_boolean()] for _ in range(terms)]
        self._add_triplets(row, column, coefficient, -none, constraint.constant, chosen)
        groups: list[list[int]] = [[] for _ in constraint.result]
        for group, (literal,) in zip(constraint.group.tolist(), chosen, strict=True):
            groups[group].append(literal)
        for group_literals in groups:
            self.proto.constraints.add().bool_or.literals.extend(group_literals)

    def _add_triplets(
        self, row: Integers, column: Integers, coefficient: Floats, lower: Floats, upper: Floats,
        literals: list[list[int]] | None = None,
    ) -> None:  # fmt: skip
        row, column, coefficient = merged(row, column, coefficient, len(self.unknowns.low))
        start = np.searchsorted(row, np.arange(len(lower) + 1))
        self.add_rows(start, column, coefficient, np.asarray(lower), np.asarray(upper), literals)

    def add_hint(self, hint: Floats | None) -> None:
        """Known values of a starting point."""
        if hint is None:
            return
        known = np.flatnonzero(~np.isnan(hint))
        values = np.clip(
            np.rint(hint[known] * self.unknowns.scale[known]), self.unknowns.low[known], self.unknowns.high[known]
        )
        self.proto.solution_hint.vars.extend(known.tolist())
        self.proto.solution_hint.values.extend(values.astype(np.int64).tolist())
