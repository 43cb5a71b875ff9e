"""Why a problem that asks for a plan has none, by the search for plans, where that knows all that is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from placedsl.algorithms.pipelines.parallel_plans import plans_of_problems as plans
from placedsl.diagnosis.infeasibility.conflict import Conflict, Member
from placedsl.diagnosis.infeasibility.hardware_repairs import instead, readable
from placedsl.diagnostics import LimitError
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.strategies.parallel_plans import MOST_COLUMNS, columns_of_program
from placedsl.problem.problem import Constraint, Problem

#: The least memory is sought to within this share.
_NEAR = 1e-4


class UndecidedError(LimitError):
    """The search for plans does not decide the constraints; a program does."""


def conflict_of_plans(problem: Problem, deadline: float | None, progress: Callable[[str], None]) -> Conflict | None:
    """The conflict; None where there is a plan.  LimitError when the time was over before that was known, and
    :class:`UndecidedError` where a program has to say.

    Constraints are left out one after the other for as long as there is no plan: what is left cannot be spared.
    """
    if plans.against(problem):
        raise UndecidedError("; ".join(plans.against(problem)))
    progress("searching for a plan")
    if _peak(problem, deadline) is not None:
        return None
    unseen, members = {*plans.beyond(problem)}, list[Constraint]()
    left = [rule for rule in problem.constraints if rule.name not in unseen]
    for rule in [rule for rule in left if rule.built_in != "contiguous"]:
        progress(f"leaving out {rule.name}")
        without = [other for other in left if other is not rule]
        if _peak(replace(problem, constraints=tuple(without)), deadline) is None:
            left = without
        else:
            members.append(rule)
    sharing = problem.execution.data_parallelism
    if not members and sharing is not None and sharing.chunks > problem.graph.nodes:
        return Conflict((Member("chunks", sharing.span),), True, True)
    if not members:
        return Conflict((Member("supported", None, (), problem.graph.nodes),), True, True)
    told, repair = list[Member](), list[str]()
    for rule in members:
        rest = tuple(other for other in problem.constraints if other is not rule)
        peak = _peak(replace(problem, constraints=rest), deadline)
        told.append(Member(rule.name, rule.span, cures=peak is not None))
        if rule.built_in == "memory" and peak is not None:
            repair.append(_enough_memory(problem, peak, deadline, progress))
    return Conflict(tuple(told), True, repair=tuple(repair))


def _enough_memory(problem: Problem, high: float, deadline: float | None, progress: Callable[[str], None]) -> str:
    """The least memory that lets there be a plan, as a change; ``high``: bytes that do."""
    now = float(problem.device_memory[0])
    low, late = now, False
    progress("searching for the least memory that is enough")
    while high - low > _NEAR * high:
        wanted = (low + high) / 2.0
        if deadline is not None and time.monotonic() > deadline:
            late = True
            break
        devices = tuple(replace(d, memory=wanted) for d in problem.machine.devices)
        found = _peak(replace(problem, machine=replace(problem.machine, devices=devices)), deadline)
        if found is None:
            low = wanted
        else:
            high = min(found, wanted)
    repair = f"memory of {problem.machine.devices[0].family}: {instead(readable(high), now)}"
    return repair + (" (less may be enough)" if late else "")


def _peak(problem: Problem, deadline: float | None) -> float | None:
    """The most memory that a plan takes of one device; None where there is no plan."""
    found = plans.solve(problem, deadline=deadline)
    if found.placement is not None:
        evaluation = evaluate(problem, found.placement.tolist(), found.values)
        if not evaluation.violations:
            return max(evaluation.memory)
    elif found.complete:
        return None
    unseen = ", ".join(found.beyond)
    if unseen and columns_of_program(problem) <= MOST_COLUMNS:
        raise UndecidedError(unseen)
    raise LimitError(found.message or "the time limit was reached before it was known whether there is a plan")
