"""The path of pipelines under rules of the spec: a program over paths of ideals, before one over nodes and devices."""

from __future__ import annotations

import time
from collections.abc import Sequence

from placedsl.algorithms.pipelines.path_program import applies
from placedsl.planner.decision import Outlook
from placedsl.planner.request import Request
from placedsl.planner.run import Run
from placedsl.problem.problem import Problem

#: It is alone for this share of the time that is left, and for no longer than so many seconds.
_ALONE, _MOST_ALONE_S = 0.7, 60.0
#: Seconds between two looks at what it has found.
_PAUSE_S = 0.02


def against(problem: Problem, _request: Request) -> Sequence[str]:
    """Why it does not apply."""
    return applies.against(problem)


def outlook(_problem: Problem, _request: Request) -> Outlook:
    """It ends where the paths are few enough."""
    return Outlook(f"{applies.NAME}, with the rules as rows over stages", "; else ")


def by_paths(run: Run) -> tuple[str, str] | None:
    """Run it in a process of its own; None where a solver has to go on, beside it."""
    from placedsl.planner.portfolio.path_program_member import member
    from placedsl.planner.strategies.searches import members_beside

    if not run.isolated:
        return None
    left = run.left
    if left is not None and left <= 0.0:
        return None
    if run.portfolio is None:
        run.portfolio = members_beside(run, 0, 0.0)
        later, run.portfolio.members = run.portfolio.members, [member(run.problem, run.request.seed or 0)]
    else:
        later = []
    run.method = "paths"
    alone = time.monotonic() + (_MOST_ALONE_S if left is None else min(_MOST_ALONE_S, _ALONE * left))
    beside = run.portfolio
    while time.monotonic() < alone:
        over = not beside.members and all(process.name != applies.NAME or process.ended for process in beside.running)
        run.tell(beside)
        run.listen(beside)
        if (reason := run.stop_reason(run.gap())) is not None:
            beside.stop()
            return reason
        if run.impossible:
            beside.stop()
            run.best.disclaim()
            return "infeasible", f"{run.prover} proved that no placement satisfies the constraints"
        if over:
            break
        time.sleep(_PAUSE_S)
    beside.members += later
    return None
