"""Which path to a placement fits, and walking it: exact before bounded before heuristic.

The dynamic program over ideals where it applies; a program for a solver elsewhere, with the dynamic program's
placement as a start and its value as a bound where those are to be had.  Whatever finds a placement, only the
evaluator says what it costs and whether it counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np

from placedsl.algorithms import contiguous
from placedsl.algorithms.simple_bound import path_bound, simple_bound
from placedsl.answer import Answer
from placedsl.diagnostics import PlacedslError, UsageError
from placedsl.formulation import Formulation
from placedsl.incumbent import SAME, Progress
from placedsl.paths.dynamic_programming import by_dynamic_programming, start_by_slicing
from placedsl.paths.one_sample import for_one_sample
from placedsl.paths.program import by_program
from placedsl.paths.run import Run, is_quantity
from placedsl.plugged import Ended, run_fitting, run_named
from placedsl.problem import Problem
from placedsl.request import METHODS, Request, settled


def solve(
    problem: Problem,
    formulations: Callable[[], Iterable[Formulation]],
    request: Request | None = None,
    progress: Progress | None = None,
    read_seconds: float = 0.0,
    isolated: bool = True,
) -> Answer:
    """Find a placement.  Interruption (Ctrl-C) ends the search and returns the best so far."""
    return _answer(Run(problem, formulations, settled(problem, request or Request()), progress, read_seconds, isolated))


def _answer(run: Run) -> Answer:
    """Walk the paths until one settles the problem."""
    try:
        termination, message = _walk(run)
    except KeyboardInterrupt:
        termination, message = "interrupted", "stopped by the user"
    finally:
        if run.beside is not None:
            run.beside.stop()
    best = run.best
    if best.refuted():
        termination = "error"
        message = f"{run.solver or run.method} claims a bound that a verified placement refutes; try another one"
    bounds = best.bounds
    if best.evaluation is not None:
        if bounds[0] > best.value + SAME * abs(best.value):
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
    )  # fmt: skip


def _walk(run: Run) -> tuple[str, str]:
    """Termination and message."""
    method = run.request.method
    against = contiguous.structure(run.problem)
    if method == "dp" and against:
        raise UsageError("method dp does not fit: " + "; ".join(against) + ". Use --method program, or auto")
    if is_quantity(run.problem.objectives[0].body, "time_per_sample"):
        run.best.bound(simple_bound(run.problem))
    if run.best.own[0] == np.inf:
        run.best.own[0] = -np.inf
        return "infeasible", "some node, or group of nodes that must share a device, is supported by no device"
    if run.problem.told and is_quantity(run.problem.objectives[0].body, "latency"):
        run.best.bound(path_bound(run.problem))
    if method not in METHODS:
        return _ended(run, run_named(str(method), run.problem, run.request, run.best, run.left))
    if run.problem.told:
        return for_one_sample(run)
    if method != "program" and not against:
        ended = by_dynamic_programming(run)
        if ended is not None:
            return ended
    elif run.request.start and not (against and (run.problem.variables or run.problem.own_formulations)):
        start_by_slicing(run)
    if method == "auto":
        settled_by_plugin = run_fitting(run.problem, run.request, run.best, run.left, run.notes)
        if settled_by_plugin is not None:
            return _ended(run, settled_by_plugin)
    return by_program(run)


def _ended(run: Run, how: Ended) -> tuple[str, str]:
    """Termination and message of a plug-in's algorithm."""
    run.method = how.method
    return how.termination, how.message
