"""What searches beside a solver, and instead of one where a program would be too large."""

from __future__ import annotations

import time

from placedsl.planner.portfolio.portfolio import Portfolio
from placedsl.planner.portfolio.throughput_members import further_members, members_for
from placedsl.planner.run import PORTFOLIO_DELAY_S, Run
from placedsl.problem.problem import Problem

#: With more nodes times devices than this there are searches and bounds only; which searches those have to be.
MOST_ENTRIES = 1_000_000
SEARCHES = {"annealing of stages", "search 1"}
#: Seconds between two looks at what they have found.
_PAUSE_S = 0.05


def members_beside(run: Run, position: int, delay: float = PORTFOLIO_DELAY_S) -> Portfolio:
    """What searches beside the solver, for the first objective."""
    if position or not run.isolated or not run.request.start:
        return Portfolio(())
    workers, seed = run.request.workers or 0, run.request.seed or 0
    further = run.host(further_members(run.problem, run.known_placement, seed))
    return Portfolio(members_for(run.problem, run.best.placement, workers, seed), delay, further=further)


def too_large(problem: Problem) -> bool:
    """Whether a program would have more columns than are stated beside searches."""
    return problem.graph.nodes * len(problem.machine.devices) > MOST_ENTRIES


def by_searches_alone(run: Run) -> tuple[str, str] | None:
    """Searches and bounds alone, where a program would have too many columns; None where there is one, or no search."""
    if run.request.method != "auto" or not too_large(run.problem) or not run.isolated:
        return None
    beside = run.portfolio if run.portfolio is not None else members_beside(run, 0, 0.0)
    if not beside.names & SEARCHES:
        return None
    run.method = "search"
    entries = run.problem.graph.nodes * len(run.problem.machine.devices)
    run.notes.append(f"no program was stated: it would have {entries:,} columns or more")
    with beside:
        while run.left is None or run.left > 0.0:
            run.tell(beside)
            run.listen(beside)
            if (reason := run.stop_reason(run.gap())) is not None:
                return reason
            if run.impossible:
                run.best.disclaim()
                return "infeasible", f"{run.prover} proved that no placement satisfies the constraints"
            if not beside.active:
                return "ended", "the searches came to their end"
            time.sleep(_PAUSE_S)
    run.listen(beside)
    return run.stop_reason(run.gap()) or ("time_limit", "the time limit was reached")


def search_on(run: Run, beside: Portfolio, gap: float) -> None:
    """A solver ends before its time where its next step would end after it: what searches beside it has the rest."""
    while run.left is not None and run.left > 0.0 and beside.active and run.best.gap() > gap and not run.impossible:
        run.tell(beside)
        run.listen(beside)
        time.sleep(_PAUSE_S)
