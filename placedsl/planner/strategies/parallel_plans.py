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
    """InputError for plans that the search is not for: no program states plans."""
    sharing = problem.execution.data_parallelism
    if sharing is None or sharing.options is None:
        return
    reasons = plans.against(problem)
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


def by_plans(run: Run) -> tuple[str, str]:
    """Run it; no program goes on from where it ends."""
    limit = run.request.time_limit
    found = plans.solve(run.problem, deadline=None if limit is None else run.began + limit)
    accepted = found.placement is not None and run.best.offer(found.placement, found.values)
    for k, bound in enumerate(found.bounds):
        run.best.bound(bound if bound < np.inf else -np.inf, k)
    beyond, goal = found.beyond, run.problem.objectives[0]
    if found.complete and found.placement is None:
        return "infeasible", "no plan satisfies the memory limits and the rules with the options that there are"
    reached = run.best.evaluation.objectives if run.best.evaluation else ()
    agreed = all(value <= own * (1.0 + SAME_VALUE) for value, own in zip(reached, found.goals, strict=False))
    if found.complete and accepted and agreed and not any(name.startswith("then ") for name in beyond):
        if beyond:
            run.notes.append(f"the search does not look at {', '.join(beyond)}; what it found satisfies them")
        for k, value in enumerate(reached):
            run.best.bound(value, k)
        return "optimal", "proven by the search over ideals for plans"
    if found.complete and not beyond:
        rejected = run.best.last_rejected
        why = "; ".join(v.message for v in rejected.violations) if rejected else "its value differs"
        raise PlacedslError(f"internal error: the evaluator refuses the plan that was found: {why}")
    if beyond and found.bounds:
        shown = show(found.bounds[0], goal.dimension)
        run.notes.append(f"the search bounds {goal.name} by {shown}; it does not know: {', '.join(beyond)}")
    if run.best.evaluation is None:
        _start_evenly(run)
    near = run.stop_reason(run.gap())
    if near is not None:
        return near
    if not found.complete and not beyond and not found.message:
        return "time_limit", "the time limit was reached during the search for plans"
    reason = found.message or f"the search for plans does not decide {', '.join(beyond)}"
    return "ended", f"{reason}, and no program states plans yet"
