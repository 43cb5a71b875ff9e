"""When the program over paths applies, and why it does not: asked of every problem, so that little is imported."""

from __future__ import annotations

from placedsl.algorithms.stages.stage_costs import STAGE_COSTS
from placedsl.algorithms.supports import PLACING, Supports, reasons_against
from placedsl.problem.execution import Execution
from placedsl.problem.problem import SUPPORTED, Constraint, Problem

#: The constraints that are satisfied by every path over stages that fit.
KNOWN = PLACING | {"contiguous", "convex", SUPPORTED}
#: How reports call it.
NAME = "the program over paths of ideals"
#: What it decides; rules of the spec are looked at one by one.
SUPPORTS = Supports(
    objectives=("time_per_sample",), executions=tuple(Execution(communication=c) for c in STAGE_COSTS),
    communications=tuple(STAGE_COSTS), requires=("contiguous",), clusters=False, further=False,
)  # fmt: skip
#: With fewer nodes times devices than this, a program over nodes and devices takes less time than a process to start.
_FEW = 60


def own_rules(problem: Problem) -> list[Constraint]:
    """The rules that a path over stages does not satisfy by itself."""
    return [rule for rule in problem.constraints if rule.equivalent not in KNOWN]


def against(problem: Problem) -> list[str]:
    """Why the program over paths does not apply."""
    if not own_rules(problem):
        return ["there is no rule that dynamic programming does not know"]
    reasons = reasons_against(problem, SUPPORTS)
    entries = problem.graph.nodes * len(problem.machine.devices)
    if not reasons and entries < _FEW:
        reasons.append(f"the program over nodes and devices is small: {entries} pairs")
    return reasons
