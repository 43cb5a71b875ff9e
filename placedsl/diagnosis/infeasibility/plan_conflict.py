"""Why a problem that asks for a plan has none, by the search for plans: no program states them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans import plans_of_problems as plans
from placedsl.diagnosis.infeasibility.conflict import Conflict, Member
from placedsl.diagnosis.infeasibility.hardware_repairs import readable
from placedsl.diagnostics import Diagnostic, InputError, LimitError
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem
from placedsl.units import DATA, show

#: The least memory is sought to within this share.
_NEAR = 1e-4


def conflict_of_plans(problem: Problem, deadline: float | None, progress: Callable[[str], None]) -> Conflict | None:
    """The conflict; None where there is a plan.  LimitError when the time was over before that was known."""
    reasons = plans.against(problem)
    if reasons:
        sharing = problem.execution.data_parallelism
        message = "the search for plans does not apply here: " + "; ".join(reasons)
        raise InputError([Diagnostic(message, None if sharing is None else sharing.span)])
    progress("searching for a plan")
    if _peak(problem, problem.device_memory, deadline) is not None:
        return None
    rule = problem.constraint("memory")
    free = np.full(len(problem.machine.devices), np.inf)
    largest = None if rule is None else _peak(problem, free, deadline)
    if rule is None or largest is None:
        return Conflict((Member("supported", None, (), problem.graph.nodes),), True, True)
    now = float(problem.device_memory[0])
    low, high = now, largest
    progress("searching for the least memory that is enough")
    late = False
    while high - low > _NEAR * high:
        wanted = (low + high) / 2.0
        if deadline is not None and time.monotonic() > deadline:
            late = True
            break
        found = _peak(problem, np.full(len(free), wanted), deadline)
        if found is None:
            low = wanted
        else:
            high = min(found, wanted)
    family = problem.machine.devices[0].family
    repair = f"memory of {family}: {readable(high)} instead of {show(now, DATA)}"
    return Conflict(
        (Member("memory", rule.span, cures=True),), True, repair=(repair + (" (less may be enough)" if late else ""),)
    )


def _peak(problem: Problem, memory: np.ndarray, deadline: float | None) -> float | None:
    """The most memory that a plan takes of one device, where there is a plan with so much on each; None without."""
    devices = tuple(replace(d, memory=float(m)) for d, m in zip(problem.machine.devices, memory, strict=True))
    changed = replace(problem, machine=replace(problem.machine, devices=devices))
    found = plans.solve(changed, deadline=deadline)
    if found.placement is None:
        if not found.complete:
            raise LimitError(found.message or "the time limit was reached before it was known whether there is a plan")
        return None
    return max(evaluate(changed, found.placement.tolist(), found.values).memory)
