"""The path of the exact search for plans: stages with copies, tensor parallelism and options of operators."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.interface import NothingFoundError
from placedsl.algorithms.pipelines.parallel_plans import plans_of_problems as plans
from placedsl.budget import Budget
from placedsl.diagnostics import Diagnostic, InputError, PlacedslError
from placedsl.planner.run import Run
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values
from placedsl.tolerances import SAME_VALUE
from placedsl.units import show


def refuse_unsearched(problem: Problem) -> None:
    """InputError for a plan that the search does not look for: no program states plans."""
    sharing = problem.execution.data_parallelism
    if sharing is None or sharing.options is None:
        return
    reasons = plans.against(problem) or [f"it does not look at {name}" for name in plans.beyond(problem)]
    if reasons:
        message = "the search for plans does not apply here: " + "; ".join(reasons)
        raise InputError([Diagnostic(message, sharing.span, "no program states plans yet")])


def _start_evenly(run: Run) -> None:
    """An even split, where the search has come to no plan."""
    from placedsl.algorithms.baselines import equi

    if equi.fits(run.problem):
        return

    def take(placement: Sequence[int] | None, _bound: float, values: Values | None = None, /) -> bool:
        return placement is not None and run.best.offer(np.asarray(placement), values)

    with contextlib.suppress(NothingFoundError):
        found = equi.solve(run.problem, Budget(1.0), take)
        take(*found)


def by_plans(run: Run) -> tuple[str, str] | None:
    """Run it; None when a program has to go on."""
    limit = run.request.time_limit
    found = plans.solve(run.problem, deadline=None if limit is None else run.began + limit)
    accepted = found.placement is not None and run.best.offer(found.placement, found.values)
    run.best.bound(found.bound if found.bound < np.inf else -np.inf)
    beyond, goal = plans.beyond(run.problem), run.problem.objectives[0]
    if found.complete and found.placement is None:
        return "infeasible", "no plan satisfies the memory limits with the options that there are"
    if found.complete and accepted and run.best.value <= found.value * (1.0 + SAME_VALUE):
        further = [name for name in beyond if name.startswith("then ")]
        if not further:
            if beyond:
                run.notes.append(f"the search does not look at {', '.join(beyond)}; what it found satisfies them")
            for k, value in enumerate(run.best.evaluation.objectives if run.best.evaluation else ()):
                run.best.bound(value, k)
            return "optimal", "proven by the search over ideals for plans"
    if found.complete and not beyond:
        rejected = run.best.last_rejected
        why = "; ".join(v.message for v in rejected.violations) if rejected else "its value differs"
        raise PlacedslError(f"internal error: the evaluator refuses the plan that was found: {why}")
    if beyond:
        bound = show(found.bound, goal.dimension)
        run.notes.append(f"the search bounds {goal.name} by {bound}; it does not know: {', '.join(beyond)}")
    if run.best.evaluation is None:
        _start_evenly(run)
    if found.message:
        run.notes.append(f"the search was not used: {found.message}")
    elif not found.complete:
        return run.stop_reason(run.gap()) or ("time_limit", "the time limit was reached during the search for plans")
    if run.request.method == "dp":
        reason = found.message or "method dp cannot take " + ", ".join(beyond)
        return "error", f"{reason}; use --method program, or auto"
    return None
