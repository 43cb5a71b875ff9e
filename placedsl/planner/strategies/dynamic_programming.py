"""The path of dynamic programming over ideals, and the start that it gives a program."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from placedsl.algorithms.compilation import compilation_seconds
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.supports import PEAKS, ROUTES, ignored, reasons_against
from placedsl.budget import Budget
from placedsl.diagnostics import PlacedslError
from placedsl.planner.decision import Outlook
from placedsl.planner.request import Request, solvers_for
from placedsl.planner.run import PORTFOLIO_DELAY_S, Run
from placedsl.planner.strategies import path_program
from placedsl.problem.formulation import choose
from placedsl.problem.problem import Problem
from placedsl.tolerances import SAME_VALUE
from placedsl.units import show

if TYPE_CHECKING:
    from placedsl.planner.portfolio.portfolio import Member


#: What proves its bounds.
_BY = "dynamic programming over ideals"
#: How their certificates begin.
_PROOF = {"kind": "ideals"}


def against(problem: Problem, _request: Request) -> list[str]:
    """Why dynamic programming does not apply."""
    if problem.execution.options is not None:
        from placedsl.algorithms.pipelines.parallel_plans import plans_of_problems

        return plans_of_problems.against(problem)
    return reasons_against(problem, contiguous.SUPPORTS)


def outlook(problem: Problem, request: Request) -> Outlook:
    """Exact, a placement that may satisfy the rest, or a bound and a start."""
    name, beyond = "dynamic programming", ignored(problem, contiguous.SUPPORTS)
    if problem.execution.options is not None:
        from placedsl.algorithms.pipelines.parallel_plans import plans_of_problems

        name, beyond = "dynamic programming over plans", plans_of_problems.beyond(problem)
    if not beyond:
        return Outlook(name, settles=True)
    # It gives a placement, no values of variables, and looks at the first objective alone.
    beyond_help = bool(problem.variables) or any(name.startswith("then ") for name in beyond)
    if request.method == "dp":
        refused = "none: method dp cannot take " + ", ".join(beyond)
        return Outlook(refused if beyond_help else "dynamic programming, whose placement has to satisfy the rest")
    if beyond_help:
        return Outlook("dynamic programming for a bound and a start", "; then ")
    return Outlook("dynamic programming, whose placement is the answer if it satisfies the rest", "; else ")


def by_dynamic_programming(run: Run) -> tuple[str, str] | None:
    """Run it; None when a program has to go on."""
    run.method = "dp"
    if run.problem.execution.options is not None:
        from placedsl.planner.strategies.parallel_plans import by_plans

        return by_plans(run)
    limit = run.request.time_limit
    yields = run.request.method == "auto" and run.isolated and not path_program.against(run.problem, run.request)
    with compilation_seconds() as compiling:
        found = contiguous.solve(
            run.problem, deadline=None if limit is None else run.began + limit,
            stop=lambda: _patience_over(run, compiling()) if yields else _closed(run, compiling()),
            progress=lambda placement, _, bound: run.heard(placement, bound, _BY, _PROOF),
        )  # fmt: skip
    accepted = found.placement is not None and run.best.offer(found.placement, found.values)
    run.best.bound(found.bound if found.bound < np.inf else -np.inf, by=_BY, certificate=_PROOF)
    run.relaxed = found.placement
    beyond, goal = ignored(run.problem, contiguous.SUPPORTS), run.problem.objectives[0]
    if len(run.problem.objectives) > 1 and not found.fewest and not any(b.startswith("then ") for b in beyond):
        beyond.append(f"then {run.problem.objectives[1].name}")
    if found.complete and found.placement is None:
        return "infeasible", "no contiguous split satisfies the memory limits and what the devices support"
    reached = accepted and run.best.value <= found.value + SAME_VALUE * abs(found.value)
    if found.complete and reached and not any(b.startswith("then ") for b in beyond):
        for k, value in enumerate(run.best.evaluation.objectives if run.best.evaluation else ()):
            run.best.bound(value, k, by=_BY, certificate=_PROOF)
        unseen = ", ".join(name for name in beyond if name not in (ROUTES, PEAKS))
        if unseen:
            run.notes.append(f"dynamic programming does not look at {unseen}; what it found satisfies them")
        if ROUTES in beyond:
            counted = "counts the least that a transfer can cost; what it found costs no more"
            run.notes.append(f"dynamic programming {counted}")
        if PEAKS in beyond:
            run.notes.append(f"dynamic programming leaves out {PEAKS}; with it, what it found takes no longer")
        return "optimal", "proven by dynamic programming over ideals"
    if found.complete and beyond:
        run.notes.append(
            f"dynamic programming bounds {goal.name} by {show(found.bound, goal.dimension)}; "
            f"it does not know: {', '.join(beyond)}"
        )
    if found.complete and not beyond:
        violated = (
            "; ".join(v.message for v in run.best.last_rejected.violations) if run.best.last_rejected else "nothing"
        )
        raise PlacedslError(f"internal error: the evaluator refuses what dynamic programming found: {violated}")
    if found.message:
        run.notes.append(f"dynamic programming was not used: {found.message}")
    elif run.impossible:
        run.best.claimed[0] = -np.inf
        return "infeasible", f"{run.prover} proved that no placement satisfies the constraints"
    elif not found.complete and yields and (run.left is None or run.left > 0.0):
        return None
    elif not found.complete:
        return run.stop_reason(run.gap()) or (
            "time_limit",
            "the time limit was reached during dynamic programming",
        )
    if run.request.method == "dp":
        if found.complete:
            return "error", "method dp cannot take " + ", ".join(beyond) + "; use --method program, or auto"
        return "error", found.message + "; use --method program, or auto"
    if found.message and not yields:
        _poll_portfolio(run)  # while a program is made ready
    return None


def _closed(run: Run, compiling: float) -> bool:
    """Asked during dynamic programming: whether what searches beside it has settled the problem.

    ``compiling``: seconds that went into kernels, on a machine where they have never run.
    """
    run.asked = run.asked or time.monotonic() - compiling
    if run.request.method == "dp" or time.monotonic() - run.asked - compiling < PORTFOLIO_DELAY_S:
        return False
    _poll_portfolio(run)
    return run.impossible or run.stop_reason(run.gap()) is not None


def _patience_over(run: Run, compiling: float) -> bool:
    """Asked where the program over paths comes next: it knows the rules, and needs no bound of what does not."""
    run.asked = run.asked or time.monotonic() - compiling
    return time.monotonic() - run.asked - compiling >= PORTFOLIO_DELAY_S


def _poll_portfolio(run: Run) -> None:
    """Hear what searches beside, and start it the first time."""
    if run.portfolio is None:
        from placedsl.planner.strategies.searches import SEARCHES, members_beside, too_large

        run.portfolio = members_beside(run, 0, 0.0)
        searched = bool(run.portfolio.names & SEARCHES)
        stated = run.isolated and not run.problem.variables and not (searched and too_large(run.problem))
        if run.best.evaluation is None and stated:
            run.portfolio.add(_program_member(run, patient=searched))
    run.tell(run.portfolio)
    run.listen(run.portfolio)


def _program_member(run: Run, *, patient: bool) -> Member:
    """The program beside dynamic programming, where that has no placement to begin with."""
    from placedsl.planner.portfolio.portfolio import Member
    from placedsl.planner.portfolio.program_member import solve_program
    from placedsl.planner.portfolio.throughput_members import LATER_S

    name = solvers_for(run.problem, run.request.solver)[0]
    budget = Budget(run.left, 0.5 * SAME_VALUE, 1, run.request.seed or 0, patient=patient)
    formulation = choose(run.problem, run.formulations())
    later = LATER_S if patient else 0.0
    return Member(f"the program in {name}", solve_program, (run.problem, formulation, name, budget), later)


def against_slicing(problem: Problem, request: Request) -> list[str]:
    """Why no start is cut out of topological orders for a program."""
    reasons = against(problem, request)
    if not request.start:
        return ["no start is asked for"]
    if problem.execution.one_sample:
        return ["it cuts a pipeline"]
    if request.method != "program" and not reasons:
        return ["dynamic programming gives the start"]
    if problem.execution.options is not None:
        return []
    undecided = bool(problem.variables or problem.has_user_formulations)
    return reasons if undecided else reasons_against(problem, contiguous.STARTS)


def start_by_slicing(run: Run) -> None:
    """A first placement from the best contiguous split (contiguity is only more than is asked for)."""
    if run.problem.execution.options is not None:
        from placedsl.planner.strategies.parallel_plans import start_evenly

        start_evenly(run)
        return
    from placedsl.algorithms.partitions import short_annealing as local_search

    limit = run.left
    seconds = 10.0 if limit is None else min(10.0, limit / 4)
    found = contiguous.solve(run.problem, deadline=time.monotonic() + seconds, most=100_000)
    if found.placement is None and not found.complete:
        found = contiguous.sliced(run.problem)  # milliseconds, once kernels are loaded
    if found.placement is None:
        return
    accepted = run.best.offer(found.placement, found.values)
    if accepted and not reasons_against(run.problem, local_search.SUPPORTS):
        local_search.improve(
            run.problem, found.placement, seed=run.request.seed or 0, deadline=time.monotonic() + seconds,
            found=lambda placement: run.heard(placement, -np.inf),
        )  # fmt: skip
    if accepted:
        goal = run.problem.objectives[0]
        run.notes.append(
            f"the solver started from a placement with {goal.name} = {show(run.best.value, goal.dimension)}"
        )
