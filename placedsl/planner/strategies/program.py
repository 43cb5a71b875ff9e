"""The path of a program for a solver, with searches and bounds beside it."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import numpy as np

from placedsl.arrays import Floats
from placedsl.budget import Budget
from placedsl.diagnostics import InputError
from placedsl.grounding.build import Grounded, build
from placedsl.grounding.contradictions import refuse_contradictions
from placedsl.ir.program import LinearProgram, Program
from placedsl.lowering.continuous_refinement import refined
from placedsl.lowering.lower import lower
from placedsl.lowering.unboundedness import rewards
from placedsl.planner.portfolio.throughput_members import searchers
from placedsl.planner.request import solvers_for
from placedsl.planner.run import Run
from placedsl.planner.strategies.endless_objectives import falls_for_ever
from placedsl.planner.strategies.endless_times import refuse_endless, refuse_times_without_end
from placedsl.planner.strategies.latency_starts import start_by_waiting
from placedsl.planner.strategies.searches import SEARCHES, by_searches_alone, members_beside, search_on
from placedsl.planner.strategies.smallest_terms import smallest_term
from placedsl.problem.expressions import Provided
from placedsl.problem.formulation import choose, passed_over
from placedsl.solvers.bound_propagation import finite_bounds
from placedsl.solvers.interface import Outcome
from placedsl.solvers.isolated import run_here, run_isolated
from placedsl.solvers.outcome import UNPROVEN, least
from placedsl.solvers.registry import get
from placedsl.solvers.whole_rows import LARGE
from placedsl.tolerances import SAME_VALUE

#: So often is one objective handed over, each time with bounds that rest on what was found.
_MAX_RESOLVES = 4
#: Of the largest value that the columns let an objective have: half of what counts as the same is less than a
#: feasibility of 1e-12 there, which no solver keeps.
_OVERLOOKED = 1e-6
#: Coefficients of a row whose ratio is larger than this come near the feasibility that solvers keep.
_FAR_APART = 1e5
#: Earlier objectives that are no whole numbers may be this much worse, relatively, while later ones are minimised;
#: these may gain as much by it.
_LEXICOGRAPHIC_SLACK = 1e-7


def by_program(run: Run) -> tuple[str, str]:
    """Ground, then solve with the first solver that does not fail; what is too large for that, by searches alone."""
    if (ended := by_searches_alone(run)) is not None:
        return ended
    names = solvers_for(run.problem, run.request.solver)
    run.method, run.solver = "program", names[0]
    start = time.monotonic()
    known = list(run.formulations())
    formulation = choose(run.problem, known)
    run.notes += passed_over(run.problem, known, formulation)
    grounded = build(run.problem, formulation)
    refuse_contradictions(run.problem, formulation, grounded)
    refuse_endless(run.problem, grounded)
    run.build_seconds += time.monotonic() - start
    if run.request.solver in (None, "auto") and run.problem.execution.run == "operators":
        # Spans are the same wherever they begin: linear programs see that, and propagation of bounds does not.
        spans = any(rewards(grounded.program, k) for k in range(len(run.problem.objectives)))
        names = tuple(sorted(names, key=lambda name: name != "highs")) if spans else names
    if run.request.start and run.best.evaluation is None and run.problem.execution.run == "operators":
        start_by_waiting(run, grounded)
    for name, further in zip(names, (*names[1:], ""), strict=True):
        run.solver = name
        termination, message = _with_solver(run, name, grounded)
        if termination != "error" or not further:
            break
        run.notes.append(f"{name} failed ({message}); continued with {further}")
    return termination, message


def _with_solver(run: Run, name: str, grounded: Grounded) -> tuple[str, str]:
    """Lower and hand over, once for each objective, and again where what was found makes for better bounds."""
    fixed: tuple[tuple[int, float], ...] = ()
    termination, message = "optimal", f"proven by {name}"
    run.best.finished = []
    for position in range(len(run.problem.objectives)):
        slack = 0.0 if grounded.program.whole(position) else _LEXICOGRAPHIC_SLACK
        if position and _settled(run, position):
            fixed += ((position, run.best.finish(slack)),)
            continue
        endless = falls_for_ever(run, grounded, fixed, position)
        if endless:
            return "unbounded", "the objective has no lower bound"
        ended = ("error", "")
        # Times have no bounds of their own: those of one sample's run are as tight as the best known run lets them be.
        most = _known(run, position) if run.problem.execution.one_sample else np.inf
        for _ in range(_MAX_RESOLVES):
            ended = _one_objective(run, name, grounded, fixed, position, most)
            # Numbers made for values far larger than what was found let solvers err by as much as those are.
            wrong = (ended[0] == "error" and not run.crashed) or _lost(run, position)
            if not wrong:
                break
            better = _known(run, position) if _coarse(run, position, most) else _claimed(run, position, most)
            if better >= most:
                break
            run.best.disclaim()
            most = better
        if endless is None and ended[0] in ("optimal", "gap_reached"):
            run.best.disclaim()
            return "error", "in the time that there was nothing proved that the objective has a least value at all"
        if ended[0] == "optimal" and _owes_the_unit(run, name, grounded, position):
            ended = _to_the_unit(run, name, grounded, fixed, position)
        if ended[0] not in ("optimal", "gap_reached") or run.best.evaluation is None:
            return ended
        # The whole is proven no better than its least proven objective.
        if termination == "optimal":
            termination, message = ended
        fixed += ((position, run.best.finish(slack)),)
    return termination, message


def _by(solver: str) -> str:
    """What proves a bound, in words."""
    return f"the program in {solver}"


def _one_objective(
    run: Run, name: str, grounded: Grounded, fixed: tuple[tuple[int, float], ...], position: int, most: float
) -> tuple[str, str]:
    """Lower and hand over, for one objective, within the limits of earlier ones.

    ``most``: a value of it that is known to be reached, or asked for, and that bounds may rest on (inf: they do not).
    """
    start = time.monotonic()
    solver = get(name)
    start_from = run.best.placement if run.best.placement is not None else run.relaxed
    known, asked = run.best.evaluation, most < _known(run, position)
    hint = None if start_from is None else grounded.hint(start_from, None if known is None else known.values)
    try:
        lowered = lower(
            grounded.program, native=solver.features.native, integral=solver.features.integers_only,
            objective=position, fixed=fixed, hint=hint, most=most if asked else most + run.best.open(position),
        )  # fmt: skip
    except InputError:
        refuse_times_without_end(run.problem, grounded.program, solver.features)
        raise
    run.build_seconds += time.monotonic() - start
    run.reach = _largest(lowered.program)
    if not asked:
        run.best.bound(least(lowered.program), position, by="the bounds of the variables", claimed=True)
    strict = next((n for n in lowered.notes if n.rewrite.startswith("strict")), None)
    if strict is not None:
        note = f"{strict.constraint}: {strict.rewrite}; placements within the margin were not considered"
        run.notes += [note] if note not in run.notes else []
    left = run.left
    if left is not None and left <= 0:
        more = "" if run.best.evaluation is None else "; the answer is that of quick starts"
        return "time_limit", f"the time limit was reached before {name} could start{more}"
    # Half of what counts as the same, so that what the solver calls optimal still is after evaluation.
    near = max(run.request.gap or 0.0, 0.5 * SAME_VALUE)
    last = position + 1 == len(run.problem.objectives)
    if (run.request.gap or 0.0) <= SAME_VALUE and not last and grounded.program.whole(position):
        # What later objectives are minimised within is exact; a gap is a share of the value, constant part included.
        near = min(near, 0.5 / max(run.reach + abs(lowered.program.offset), 1.0))
    budget = Budget(left, near, run.request.workers or 0, run.request.seed or 0)
    timed = run.problem.execution.run == "operators" and solver.features.integers_only
    if timed and np.isposinf(finite_bounds(lowered.program)[1]).any():
        refuse_times_without_end(run.problem, grounded.program, solver.features)
    outcome = _solved(run, name, grounded, lowered.program, budget, position)
    run.crashed = outcome.termination == "error" and not outcome.message.startswith(UNPROVEN)
    if run.crashed and not solver.features.integers_only and (why := _too_far_apart(run, lowered.program)):
        outcome = replace(outcome, message=outcome.message.rstrip(".") + why)
    if asked and outcome.termination == "infeasible":
        why = _too_far_apart(run, lowered.program) or "; try another solver"
        return "error", f"{name} claims a value that no placement has{why}"
    return _judged(run, outcome, grounded, fixed, position, lowered.program)


def _owes_the_unit(run: Run, name: str, grounded: Grounded, position: int) -> bool:
    """Whether later objectives are minimised within a whole number so large that a solver stops some units off it, or
    counts on a grid that is coarser than one."""
    last = position + 1 == len(run.problem.objectives)
    if last or (run.request.gap or 0.0) > SAME_VALUE or _known(run, position) < LARGE:
        return False
    proven = get(name).features.integers_only and _known(run, position) - run.best.bounds[position] < 1.0
    return not proven and grounded.program.whole(position)


def _to_the_unit(
    run: Run, name: str, grounded: Grounded, fixed: tuple[tuple[int, float], ...], position: int
) -> tuple[str, str]:
    """Ask for one less than the best value until there is none: rows of whole numbers are exact, objectives are not."""
    features = get(name).features
    runs = run_isolated if run.isolated else run_here
    while (value := _known(run, position)) - 1.0 >= run.best.proven[position]:
        placement, known = run.best.placement, run.best.evaluation
        hint = None if placement is None or known is None else grounded.hint(placement, known.values)
        less = (*fixed, (position, value - 1.0))
        lowered = lower(grounded.program, native=features.native, objective=position, fixed=less, hint=hint)
        if run.left is not None and run.left <= 0.0:
            return (
                "time_limit",
                "the time limit was reached before a whole objective was proven to the unit",
            )
        budget = Budget(run.left, 0.0, run.request.workers or 0, run.request.seed or 0)
        outcome = runs(name, lowered.program, budget, lambda *_: False)
        if outcome.termination == "infeasible":
            run.best.bound(value, position, by=_by(name), claimed=True)
            break
        point = outcome.incumbent
        if point is None:
            return outcome.termination, outcome.message
        if not run.best.offer(grounded.placement(point), grounded.values(point)):
            why = _too_far_apart(run, lowered.program) or "; try another solver"
            return "error", f"{name} gives a point that the evaluator refuses{why}"
        if _known(run, position) >= value:
            return "error", f"{name} gives a point that does not have the value that it was asked for"
    return "optimal", f"proven by {name}"


def _coarse(run: Run, position: int, most: float) -> bool:
    """Whether bounds that rest on the value found are far better than those that rested on the one before."""
    return abs(_known(run, position)) < 0.5 * abs(most)


def _claimed(run: Run, position: int, most: float) -> float:
    """A little more than what a solver claims, where its point is worth far more: an integer that is off by as little
    as solvers allow hides a time that is long enough.  Placements with such times leave the program."""
    claim = run.best.bounds[position]
    return claim * (1.0 + SAME_VALUE) if 0.0 < claim < 0.5 * min(most, _known(run, position)) else np.inf


def _lost(run: Run, position: int) -> bool:
    """Whether the value found is so small a share of what the objective could be that solvers may overlook it."""
    return 0.0 < abs(_known(run, position)) < _OVERLOOKED * run.reach


def _known(run: Run, position: int) -> float:
    """The best verified value of an objective; inf without one."""
    return np.inf if run.best.evaluation is None else run.best.evaluation.objectives[position]


def _settled(run: Run, position: int) -> bool:
    """The best placement reaches a bound of this objective that needs no proof."""
    body, evaluation = run.problem.objectives[position].body, run.best.evaluation
    if evaluation is None or not isinstance(body, Provided) or body.name != "devices_used":
        return False
    if evaluation.objectives[position] <= 1.0:
        run.best.bound(1.0, position, by="some device is used")
        return True
    return False


def _solved(run: Run, name: str, grounded: Grounded, program: LinearProgram, budget: Budget, position: int) -> Outcome:
    beside = run.portfolio if run.portfolio is not None and not position else members_beside(run, position)

    def heard(point: Floats | None, _value: float, bound: float) -> bool:
        run.listen(beside)
        if point is not None:
            run.best.offer(grounded.placement(point), grounded.values(point))
        if bound > run.best.bounds[position]:
            run.best.bound(bound, position, by=_by(name), claimed=True)
            run.prover = name
        run.tell(beside)
        return position == 0 and run.best.gap() <= budget.gap

    if run.isolated:
        with beside:
            if (beside.members or beside.running) and not beside.brief:
                cores = run.request.workers or os.cpu_count() or 1
                # Where a search knows all that is asked for, what is left to the solver are the small problems.
                patient = bool(beside.names & SEARCHES)
                budget = replace(budget, workers=max(1, cores - searchers(cores)), patient=patient)
            outcome = run_isolated(name, program, budget, heard)
            if outcome.termination == "time_limit":
                search_on(run, beside, budget.gap)
        run.listen(beside)
        return outcome
    return run_here(name, program, budget, heard)


def _judged(
    run: Run,
    outcome: Outcome,
    grounded: Grounded,
    fixed: tuple[tuple[int, float], ...],
    position: int,
    solved: LinearProgram,
) -> tuple[str, str]:
    """What a solver's outcome amounts to once its placement has been evaluated."""
    if outcome.version:
        run.used_versions[run.solver] = outcome.version
    point = outcome.incumbent
    accepted = point is None or run.best.offer(grounded.placement(point), grounded.values(point))
    if outcome.bound > run.best.bounds[position]:
        run.best.bound(outcome.bound, position, by=_by(run.solver), claimed=True)
        run.prover = run.solver
    if point is not None and outcome.termination in ("optimal", "gap_reached") and not _reached(run, position):
        # Real columns are as good as the solver's tolerances or its grid; with the others settled they can be exact.
        exact = refined(grounded.program, position, fixed, point)
        accepted |= exact is not None and run.best.offer(grounded.placement(exact), grounded.values(exact))
    if run.best.evaluation is None:
        if outcome.termination == "infeasible":
            return "infeasible", outcome.message or "the solver proved that no placement satisfies the constraints"
        if not accepted and run.best.last_rejected is not None:
            broken = "; ".join(v.message for v in run.best.last_rejected.violations[:3])
            return "error", f"the evaluator refuses the placement that {run.solver} gave: {broken}"
        return outcome.termination, outcome.message
    if outcome.termination == "infeasible":
        why = _too_far_apart(run, solved) or "; try another solver"
        return "error", f"{run.solver} calls infeasible what a verified placement satisfies{why}"
    if run.best.refuted(position):
        return "error", f"{run.solver} claims a bound that a verified placement refutes; try another one"
    distance = run.best.gap(position)
    settled = outcome.termination in ("optimal", "gap_reached")
    if settled and _left(run, position) <= _given_way(run, grounded.program, fixed, position):
        distance = 0.0  # no more than earlier objectives gave way
    if settled and np.isinf(distance) and 0.0 < _left(run, position) <= SAME_VALUE * smallest_term(solved):
        distance = 0.0  # the value is zero, and so are its terms
    if (reason := run.stop_reason(distance)) is not None:
        return reason
    if settled:
        why = ": the formulation counts less than the evaluator does" if run.problem.has_user_formulations else ""
        why = why or _too_far_apart(run, solved)
        far = f"the verified value is {100 * distance:.2g}% above the bound{why}"
        return "error", f"{run.solver} reports {outcome.termination}, but {far}"
    return outcome.termination, outcome.message


def _given_way(run: Run, program: Program, fixed: tuple[tuple[int, float], ...], position: int) -> float:
    """How much this objective may gain by what earlier ones give way: a share of its terms, or of theirs."""
    known, goals = run.best.evaluation, run.problem.objectives
    yielding = [(k, limit) for k, limit in fixed if not program.whole(k)]
    if not yielding or known is None:
        return 0.0
    alike = sum(abs(limit) for k, limit in yielding if goals[k].dimension == goals[position].dimension)
    return _LEXICOGRAPHIC_SLACK * max(5.0 * known.sizes[position], 2.0 * alike)


def _left(run: Run, position: int) -> float:
    """How far the best value is from its bound."""
    return _known(run, position) - run.best.bounds[position]


def _reached(run: Run, position: int) -> bool:
    """Whether the best placement is as good as its bound says that it can be."""
    return run.best.gap(position) <= SAME_VALUE


def _too_far_apart(run: Run, program: LinearProgram) -> str:
    """A clause about numbers that a solver cannot tell apart, if there are any."""
    if get(run.solver).features.integers_only:
        return ": its numbers lie too many powers of ten apart for a grid of integers; try --solver highs"
    size = np.where(program.coefficient == 0.0, np.nan, np.abs(program.coefficient))
    begins = program.start[:-1][np.diff(program.start) > 0]
    if not len(begins) or np.nanmax(np.fmax.reduceat(size, begins) / np.fmin.reduceat(size, begins)) <= _FAR_APART:
        return ""
    return f": its numbers lie too many powers of ten apart for {run.solver}; try --solver cp-sat"


def _largest(program: LinearProgram) -> float:
    """The largest absolute value that the objective can take, as far as its columns have bounds."""
    ends = np.maximum(abs(program.lower), abs(program.upper))
    return float((abs(program.cost) * np.where(np.isfinite(ends), ends, 0.0)).sum())
