"""CP-SAT through ortools: integers only, with implications, maxima, products and intervals taken as they are.

What it is given stands in :mod:`placedsl.solvers.integer_program`; how real data become integers, and why the bound
stays proven, in :mod:`placedsl.solvers.integer_scaling`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from placedsl.arrays import Floats
from placedsl.budget import Budget
from placedsl.ir.program import LinearProgram, NoOverlap
from placedsl.solvers.bound_propagation import finite_bounds
from placedsl.solvers.cp_sat_parameters import avoid_defects, set_seed
from placedsl.solvers.integer_program import (
    AT_LEAST_ONE,
    AT_MOST_ONE,
    EXACTLY_ONE,
    LINEAR,
    IntegerBlock,
    IntegerProgram,
    Intervals,
    booleans,
    differing,
    integer_program,
)
from placedsl.solvers.integer_scaling import GREATEST, LEAST, Grid, grid, integer_objective
from placedsl.solvers.interface import Features, Outcome, Progress, Termination
from placedsl.solvers.outcome import Clock, Guarded, installed_version, not_loaded, outcome, row_of_entry, without_terms
from placedsl.tolerances import CONTRADICTION, SOLVER_ROW

#: Seconds between two questions whether to stop when nothing new was found.
_PAUSE = 0.2
#: Two values of the objective this near are the same, as a share of the largest that it can take.
_SAME_OBJECTIVE = 1e-8
_SETS = {EXACTLY_ONE: "exactly_one", AT_MOST_ONE: "at_most_one", AT_LEAST_ONE: "bool_or"}
_TOO_FAR_APART = (
    "cp-sat cannot keep these data exact: the numbers within one constraint lie too many powers of ten apart for "
    "64-bit integers; use --solver highs"
)


class CpSat:
    """Constraint programming over integers with clause learning, by Google."""

    features = Features(
        "cp-sat", "ortools", frozenset({"Implication", "Maximum", "NoOverlap", "Product"}), warm_start=True,
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
        if (lower > upper + CONTRADICTION * np.maximum(1.0, np.abs(np.where(np.isfinite(lower), lower, 0.0)))).any():
            return outcome(program, budget, clock, "infeasible", None, -np.inf, version=version)
        loose = without_bounds(program, lower, upper)
        if loose:
            return outcome(program, budget, clock, "error", None, -np.inf, loose, version)
        try:
            from ortools.sat.python import cp_model
        except ImportError as problem:
            return not_loaded(program, budget, clock, problem, version)

        whole = program.integer | booleans(program)
        unknowns = grid(lower, np.maximum(lower, upper), whole, differing(program, whole))
        model: Any = cp_model.CpModel()
        _fill(model.proto, integer_program(program, unknowns))
        goal = integer_objective(program.cost, unknowns)
        if len(goal.column):
            objective = model.proto.objective
            objective.vars.extend(goal.column.tolist())
            objective.coeffs.extend(goal.coefficient.tolist())
            objective.offset = program.offset * goal.multiplier
        _add_hint(model.proto, unknowns, program.hint)
        # A literal and its negation are i and -i - 1.
        model.proto.assumptions.extend((-program.assumed_zero - 1).tolist())
        solver: Any = cp_model.CpSolver()
        _set_parameters(solver.parameters, budget, clock)
        avoid_defects(solver.parameters, intervals=any(isinstance(c, NoOverlap) for c in program.native))

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
            if point is not None and not _satisfied(program, point, unknowns):
                reason, point, message = "error", None, _TOO_FAR_APART
        details = {"branches": float(solver.num_branches), "conflicts": float(solver.num_conflicts)}
        # What rows and the objective may err by on the grid says nothing.
        slack = 2 * goal.error + _SAME_OBJECTIVE * float(np.abs(program.cost) @ (unknowns.largest / unknowns.scale))
        ended_so = outcome(program, budget, clock, reason, point, bound, message, version, details, slack)
        if reason == "infeasible" and len(program.assumed_zero):
            core = solver.response_proto.sufficient_assumptions_for_infeasibility
            return replace(ended_so, core=tuple(-literal - 1 for literal in core))
        return ended_so


def _set_parameters(parameters: Any, budget: Budget, clock: Clock) -> None:
    if clock.left is not None:
        parameters.max_time_in_seconds = clock.left
    set_seed(parameters, budget.seed, budget.workers)
    parameters.relative_gap_limit = budget.gap
    # Its default, 1e-4, would be in whatever unit the objective has.
    parameters.absolute_gap_limit = 0.0
    parameters.log_search_progress = False


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


def _satisfied(program: LinearProgram, point: Floats, unknowns: Grid) -> bool:
    """Whether the rows hold for the real data, as far as the grid of their columns lets them."""
    row = row_of_entry(program)
    terms = program.coefficient * point[program.column]
    activity = np.bincount(row, terms, program.rows)
    allowed = SOLVER_ROW * np.bincount(row, np.abs(terms), program.rows) + 1e-12
    allowed += 2.0 * np.bincount(row, np.abs(program.coefficient) * unknowns.half_step[program.column], program.rows)
    return bool(((activity >= program.row_lower - allowed) & (activity <= program.row_upper + allowed)).all())


def without_bounds(program: LinearProgram, lower: Floats, upper: Floats) -> str:
    """Why these bounds are not enough: names a column by the constraint that it first occurs in.  Empty: they are."""
    loose = np.flatnonzero(np.isinf(lower) | np.isinf(upper))
    if not len(loose):
        return ""
    column = int(loose[0])
    entries = np.flatnonzero(program.column == column)
    where = ""
    if len(entries) and program.origins:
        row = int(row_of_entry(program)[entries[0]])
        block = int(np.searchsorted(program.origin_start, row, side="right")) - 1
        where = f" (it occurs in '{program.origins[block].name}')"
    missing = f"column {column}{where} has none that can be derived"
    return f"cp-sat needs bounds, and {missing}: bound it, or use --solver highs"


def _fill(proto: Any, program: IntegerProgram) -> None:
    """The model's message: unknowns, rows, choices."""
    unknowns, add = program.unknowns, proto.variables.add
    for low, high in zip(unknowns.low.tolist(), unknowns.high.tolist(), strict=True):
        add().domain.extend((low, high))
    for _ in range(int(program.selector_start[-1])):
        add().domain.extend((0, 1))
    for block in program.blocks:
        _add_rows(proto, block)
    for groups in program.choices:
        for literals in groups:
            proto.constraints.add().bool_or.literals.extend(literals)
    for intervals in program.intervals:
        _add_intervals(proto, intervals)


def _add_rows(proto: Any, block: IntegerBlock) -> None:
    rows, add = block.rows, proto.constraints.add
    begins, lows, highs = rows.start.tolist(), rows.lower.tolist(), rows.upper.tolist()
    columns, coefficients = rows.column.tolist(), rows.coefficient.tolist()
    for i, kind in enumerate(block.kinds.tolist()):
        low, high = lows[i], highs[i]
        if low == LEAST and high == GREATEST:
            continue
        terms, made = slice(begins[i], begins[i + 1]), add()
        if kind != LINEAR:
            # Only the one that is wanted may be touched: each access makes the others void.
            listed = getattr(made, _SETS[kind])
            listed.literals.extend(columns[terms])
            continue
        if block.conditions is not None:
            made.enforcement_literal.extend(block.conditions[i])
        linear = made.linear
        if low > high:
            # The row cannot hold; CP-SAT takes the ends in order only.
            linear.domain.extend((1, 1))
            continue
        linear.vars.extend(columns[terms])
        linear.coeffs.extend(coefficients[terms])
        linear.domain.extend((low, high))


def _add_intervals(proto: Any, given: Intervals) -> None:
    """Intervals of which no two of a group overlap."""
    groups: dict[int, list[int]] = {}
    parts = (given.group, given.present, given.start, given.factor, given.size)
    for group, present, start, factor, size in zip(*(part.tolist() for part in parts), strict=True):
        made = proto.constraints.add()
        if present >= 0:
            made.enforcement_literal.append(present)
        interval = made.interval
        for end, offset in ((interval.start, 0), (interval.end, size)):
            end.vars.append(start)
            end.coeffs.append(factor)
            end.offset = offset
        interval.size.offset = size
        groups.setdefault(group, []).append(len(proto.constraints) - 1)
    for members in groups.values():
        if len(members) > 1:
            proto.constraints.add().no_overlap.intervals.extend(members)


def _add_hint(proto: Any, unknowns: Grid, hint: Floats | None) -> None:
    """Known values of a starting point."""
    if hint is None:
        return
    known = np.flatnonzero(~np.isnan(hint))
    values = np.clip(np.rint(hint[known] * unknowns.scale[known]), unknowns.low[known], unknowns.high[known])
    proto.solution_hint.vars.extend(known.tolist())
    proto.solution_hint.values.extend(values.astype(np.int64).tolist())
