"""The path for one sample's latency: searches and bounds, and a program beside them."""

from __future__ import annotations

import time

import numpy as np

from placedsl.algorithms.fill_devices import first_placements
from placedsl.algorithms.repair import repaired
from placedsl.planner.decision import Outlook
from placedsl.planner.portfolio.latency_members import against as reasons_against_search
from placedsl.planner.portfolio.latency_members import (
    alone,
    columns,
    further_members_for_one_sample,
    members_for_a_start,
    members_for_one_sample,
)
from placedsl.planner.portfolio.portfolio import Portfolio
from placedsl.planner.request import Request
from placedsl.planner.run import Run
from placedsl.problem.problem import Problem

#: Seconds that searches for one sample's run have before a program is made beside them, at most; of a program of so few
#: columns; and between two looks.
_HEAD_START, _SHORT, _FEW, _NAP = 3.0, 0.5, 300, 0.02
#: Seconds for first schedules: until there is one, and for the others after that.
_FIRST, _MORE = 2.0, 0.3
#: Seconds for the repair of a first schedule that violates what is asked for.
_REPAIR = 0.5
#: Seconds without news after which searches without a time limit end.
_PATIENCE = 20.0


def outlook(problem: Problem, request: Request) -> Outlook:
    """Searches where they know all that is asked for; else first schedules, for a program."""
    if reasons_against_search(problem):
        return Outlook("")
    if alone(problem, request.method, request.solver):
        return Outlook("searches for schedules, and lower bounds; a program would be too large to help", settles=True)
    return Outlook("searches for schedules, and lower bounds", f"; after {head_start(problem):g} s, beside them, a ")


def search(run: Run) -> tuple[str, str] | None:
    """Searches and bounds first, for a start; None where a program has to go on beside them."""
    if run.request.start:
        _begin(run)
    if run.request.start and run.isolated:
        workers, seed = run.request.workers or 0, run.request.seed or 0
        by_itself = alone(run.problem, run.request.method, run.request.solver)
        members = members_for_one_sample(run.problem, workers, seed, run.left, alone=by_itself)
        if members:
            run.portfolio = Portfolio(members, further=run.host(further_members_for_one_sample(run.problem, seed)))
            ended = _poll(run, None if by_itself else head_start(run.problem))
            if ended is not None or by_itself:
                run.method = "search"
                return ended or ("ended", "the searches came to their end without a proof")
        else:
            run.portfolio = Portfolio(members_for_a_start(run.problem, seed), brief=True)
    return None


def head_start(problem: Problem) -> float:
    """Seconds that searches have before a program is made beside them."""
    return _HEAD_START if columns(problem) > _FEW else _SHORT


def _begin(run: Run) -> None:
    """First schedules, which need no process and no compiled code: list schedules of simple placements.

    The evaluator says which of them keep all that is asked for, whatever it is.  Where none does, one is repaired.
    """
    began, left = time.monotonic(), run.left
    seconds = _FIRST if left is None else min(_FIRST, left / 4.0)
    # Of the spec's own variables no placement says anything.
    for placement in first_placements(run.problem) if not run.problem.variables else ():
        run.best.offer(placement)
        if time.monotonic() - began > (seconds if run.best.evaluation is None else min(seconds, _MORE)):
            break
    if run.best.evaluation is None:
        found = repaired(run.problem, run.request.seed or 0, min(_REPAIR, seconds))
        if found is not None:
            run.best.offer(found.placement, found.values)


def _poll(run: Run, seconds: float | None) -> tuple[str, str] | None:
    """Hear the members for some seconds; without a limit, until long after the last news of them."""
    assert run.portfolio is not None
    beside, left = run.portfolio, run.left
    began = news = time.monotonic()
    known = (np.inf, -np.inf)
    while True:
        active = beside.active
        run.tell(beside)
        run.listen(beside)
        if (now := (run.best.value, run.best.bounds[0])) != known:
            known, news = now, time.monotonic()
        if run.impossible:
            run.best.claimed[0] = -np.inf
            return "infeasible", f"{run.prover} proved that no placement satisfies the constraints"
        if (reason := run.stop_reason(run.gap())) is not None:
            return reason
        passed = time.monotonic() - began
        if not active or (seconds is not None and passed > min(seconds, (left or np.inf) / 8.0)):
            return None
        if left is not None and passed > left:
            return "time_limit", "the time limit was reached"
        if left is None and time.monotonic() - news > max(_PATIENCE, news - began):
            return "ended", "nothing better was found for long; with a --time-limit the search goes on to it"
        time.sleep(_NAP)
