"""Walking the planner's decision: each path in turn, until one settles the problem.

Which paths those are :mod:`placedsl.planner.decision` says, from the rows of
:mod:`placedsl.planner.strategies.registry`.  Whatever finds a placement, only the evaluator says what it costs and
whether it counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from placedsl.algorithms.exclusion import with_implied
from placedsl.algorithms.simple_bounds import SIMPLE, STREAMED, path_bound, simple_bound, streamed_bound
from placedsl.diagnostics import PlacedslError, UsageError
from placedsl.planner.answer import Answer
from placedsl.planner.incumbent import Incumbent, Progress
from placedsl.planner.pipeline_order import in_pipeline_order
from placedsl.planner.request import Request, resolve
from placedsl.planner.run import Run, is_quantity
from placedsl.planner.strategies.registry import decision
from placedsl.problem.formulation import Formulation
from placedsl.problem.instance_limits import refuse_many_instances
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values
from placedsl.system import interruption
from placedsl.units import show


def solve(
    problem: Problem,
    formulations: Callable[[], Iterable[Formulation]],
    request: Request | None = None,
    progress: Progress | None = None,
    read_seconds: float = 0.0,
    isolated: bool = True,
    known: tuple[Sequence[int], Values] | None = None,
) -> Answer:
    """Find a placement.  Interruption (Ctrl-C) ends the search and returns the best so far.

    ``known``: a placement and the values of variables that are known beforehand; one that violates a constraint is not
    used, and a note says so.
    """
    refuse_many_instances(problem)
    problem = with_implied(problem)
    run = Run(problem, formulations, resolve(problem, request or Request()), progress, read_seconds, isolated)
    if run.request.dask is not None:
        from placedsl.planner.portfolio.cluster import Cluster

        run.cluster = Cluster(run.request.dask)
    if known is not None:
        _offer(run, *known)
    return _answer(run)


def _offer(run: Run, placement: Sequence[int], values: Values) -> None:
    """Begin with a placement that is known."""
    goal = run.problem.objectives[0]
    if run.best.offer(np.asarray(placement), values):
        run.began_with_placement = True
        run.notes.append(f"the search began with a placement of {goal.name} = {show(run.best.value, goal.dimension)}")
    elif run.best.last_rejected is not None:
        broken = ", ".join(dict.fromkeys(violation.rule for violation in run.best.last_rejected.violations))
        run.notes.append(f"the given placement was not used: it violates {broken}")


def _answer(run: Run) -> Answer:
    """Walk the paths until one settles the problem."""
    try:
        termination, message = _walk(run)
    except KeyboardInterrupt:
        termination, message = "interrupted", "stopped by the user"
    except Exception:
        if not interruption.pending():
            raise
        termination, message = "interrupted", "stopped by the user"
    finally:
        with interruption.finishing(forget=True):
            interruption.caught()
            if run.portfolio is not None:
                run.portfolio.stop()
            if run.cluster is not None:
                run.notes += run.cluster.notes()
                run.cluster.close()
    with interruption.finishing(forget=True):
        return _told(run, termination, message)


def _told(run: Run, termination: str, message: str) -> Answer:
    """What was found, as the answer."""
    best = run.best
    if not run.began_with_placement:
        best.rearrange(in_pipeline_order)
    if best.refuted():
        termination = "error"
        message = f"{run.solver or run.method} claims a bound that a verified placement refutes; try another one"
    bounds = best.bounds
    if best.evaluation is not None:
        if bounds[0] > best.value + best.open():
            raise PlacedslError(
                f"internal error: the bound {bounds[0]!r} exceeds the verified value {best.value!r}; "
                "please report this with the spec"
            )
        bounds = [min(b, v) for b, v in zip(bounds, best.evaluation.objectives, strict=True)]
    total = run.read_seconds + time.monotonic() - run.began
    read, build, verify = run.read_seconds, run.build_seconds, best.verifying
    solving = max(0.0, total - read - build - verify)
    seconds = {"read": read, "build": build, "solve": solving, "verify": verify, "total": total}
    placement = None if best.placement is None else tuple(int(d) for d in best.placement)
    return Answer(
        run.problem, termination, message, placement, best.evaluation, tuple(bounds), run.method, run.solver,
        run.request.seed or 0, seconds, run.used_versions, tuple(run.notes),
        tuple(best.proof(k).by for k in range(len(bounds))), best.proof().certificate, _history(best, bounds[0]),
    )  # fmt: skip


def _history(best: Incumbent, bound: float) -> tuple[tuple[float, float, float], ...]:
    """How value and bound came about, with the end.

    A bound that was dropped is not told: none of the moments has more than the final one, which holds at all times.
    """
    end = (time.monotonic() - best.began, best.value, bound)
    return tuple((seconds, value, min(known, bound)) for seconds, value, known in [*best.history, end])


def _walk(run: Run) -> tuple[str, str]:
    """Termination and message: the steps of the decision in turn, until one settles the problem."""
    if is_quantity(run.problem.objectives[0].body, "time_per_sample"):
        run.best.bound(simple_bound(run.problem), by=SIMPLE, certificate={"kind": "simple"})
        run.best.bound(streamed_bound(run.problem), by=STREAMED, certificate={"kind": "streamed"})
    planned = decision(run.problem, run.request)
    if planned.refusal:
        raise UsageError(planned.refusal + (". Use --method program, or auto" if run.request.method == "dp" else ""))
    run.notes += planned.notes
    if run.best.proven[0] == np.inf:
        run.best.proven[0] = -np.inf
        without = "has no device that supports it and that the constraints allow"
        return "infeasible", f"some node, or group of nodes that must share a device, {without}"
    if run.problem.execution.one_sample and is_quantity(run.problem.objectives[0].body, "latency"):
        run.best.bound(path_bound(run.problem), by="the longest path", certificate={"kind": "path"})
    for step in planned.steps:
        ended = step.strategy.run(run)
        if ended is not None:
            return ended
    return "ended", "no path settled the problem"
