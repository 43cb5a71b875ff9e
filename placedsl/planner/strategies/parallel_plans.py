"""The path of the exact search for plans: stages with copies, tensor parallelism and options of operators."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np

from placedsl.algorithms.interface import NothingFoundError
from placedsl.algorithms.pipelines.parallel_plans import plans_of_problems as plans
from placedsl.arrays import Integers
from placedsl.budget import Budget
from placedsl.diagnostics import PlacedslError
from placedsl.grounding.build import build
from placedsl.grounding.cluster_universe import columns_of_clusters
from placedsl.grounding.plan_universe import slots_of_stages
from placedsl.planner.run import Run
from placedsl.problem.formulation import choose
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values
from placedsl.tolerances import SAME_VALUE
from placedsl.units import show

#: Columns of a program that is tried where the search has not decided.
MOST_COLUMNS = 300_000
#: What proves the bounds of the search.
_BY = "the search over ideals for plans"


def columns_of_program(problem: Problem) -> int:
    """How many columns the program of a plan has, about."""
    sharing, costs = problem.execution.data_parallelism, problem.execution.options
    assert sharing is not None
    assert costs is not None
    _, slots, _ = slots_of_stages(problem, sharing)
    ways = np.bincount(costs.degree, minlength=int(slots[:, 1].max(initial=0)) + 1)
    leaders = np.minimum(np.bincount(problem.interchangeable()), problem.graph.nodes).sum()
    own = int(leaders * ways[slots[:, 1].astype(np.int64)].sum())
    return own if sharing.across is None else own + columns_of_clusters(sharing.across, sharing, len(costs.node))


def stated(problem: Problem) -> bool:
    """Whether a program of a plan is made: the search does not decide all, and the program is not too large."""
    searched = not plans.against(problem) and not plans.beyond(problem)
    searched &= all(rule.built_in for rule in problem.constraints)
    return not searched and columns_of_program(problem) <= MOST_COLUMNS


def start_evenly(run: Run) -> None:
    """An even split, where the search has come to no plan."""
    from placedsl.algorithms.baselines import equi

    if equi.fits(run.problem):
        return

    def take(placement: Sequence[int] | None, _bound: float, values: Values | None = None, /) -> bool:
        return placement is not None and run.best.offer(np.asarray(placement), values)

    with contextlib.suppress(NothingFoundError):
        found = equi.solve(run.problem, Budget(1.0), take)
        take(*found)


def _why_there_is_none(problem: Problem) -> str:
    sharing = problem.execution.data_parallelism
    if sharing is not None and sharing.chunks > problem.graph.nodes:
        return f"each of {sharing.chunks} chunks has at least one operator, and the graph has {problem.graph.nodes}"
    return "no plan satisfies the memory limits and the rules with the options that there are"


def _refuse_unstated(run: Run) -> None:
    """InputError for constraints that no program can state, though a plan satisfies them: as ``check`` says."""
    if columns_of_program(run.problem) <= MOST_COLUMNS:
        build(run.problem, choose(run.problem, run.formulations()))


def by_plans(run: Run) -> tuple[str, str] | None:
    """Run it; None where a program has to go on."""
    limit = run.request.time_limit

    def take(placement: Integers, values: Values, bound: float) -> None:
        run.best.offer(placement, values)
        run.best.bound(bound, by=_BY)

    found = plans.solve(run.problem, deadline=None if limit is None else run.began + limit, tell=take)
    accepted = found.placement is not None and run.best.offer(found.placement, found.values)
    for k, bound in enumerate(found.bounds):
        run.best.bound(bound if bound < np.inf else -np.inf, k, by=_BY)
    beyond, goal = found.beyond, run.problem.objectives[0]
    if found.complete and found.placement is None:
        return "infeasible", _why_there_is_none(run.problem)
    reached = run.best.evaluation.objectives if run.best.evaluation else ()
    agreed = all(value <= own * (1.0 + SAME_VALUE) for value, own in zip(reached, found.goals, strict=False))
    if found.complete and accepted and agreed and not any(name.startswith("then ") for name in beyond):
        if beyond:
            _refuse_unstated(run)
            run.notes.append(f"the search does not look at {', '.join(beyond)}; what it found satisfies them")
        for k, value in enumerate(reached):
            run.best.bound(value, k, by=_BY)
        return "optimal", "proven by the search over ideals for plans"
    if found.complete and not beyond:
        rejected = run.best.last_rejected
        why = "; ".join(v.message for v in rejected.violations) if rejected else "its value differs"
        raise PlacedslError(f"internal error: the evaluator refuses the plan that was found: {why}")
    if beyond and found.bounds:
        shown = show(found.bounds[0], goal.dimension)
        run.notes.append(f"the search bounds {goal.name} by {shown}; it does not know: {', '.join(beyond)}")
    if run.best.evaluation is None:
        start_evenly(run)
    near = run.stop_reason(run.gap())
    if near is not None:
        return near
    if not found.complete and not beyond and not found.message:
        return "time_limit", "the time limit was reached during the search for plans"
    reason = found.message or f"the search for plans does not decide {', '.join(beyond)}"
    if run.request.method == "dp":
        return "ended", f"{reason}; use --method program, or auto"
    columns = columns_of_program(run.problem)
    if columns > MOST_COLUMNS:
        return "ended", f"{reason}, and its program has {columns:,} columns (--method program tries it)"
    return None
