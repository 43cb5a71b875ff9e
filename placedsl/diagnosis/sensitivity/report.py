"""What holds a placement back, and what each change would bring: found by solving the changed problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from placedsl.diagnosis.sensitivity.binding import Binding, Bottleneck, binding, bottlenecks
from placedsl.diagnosis.sensitivity.what_if import Change, changes
from placedsl.diagnostics import UsageError
from placedsl.evaluation.evaluate import evaluate
from placedsl.planner.answer import Answer
from placedsl.planner.request import Request
from placedsl.planner.solve import solve
from placedsl.problem.formulation import Formulation
from placedsl.problem.problem import Objective, Problem
from placedsl.problem.values import Values
from placedsl.tolerances import SAME_VALUE

#: Seconds that each changed problem may take.
EACH = 10.0


@dataclass(frozen=True)
class Effect:
    """What a change would do to the first objective.

    ``before`` is its value now; ``value`` that of the best placement that is known after the change (inf: none),
    ``bound`` what no placement undercuts after the change (-inf: not known).  ``termination`` is how the search ended.
    """

    change: str
    before: float
    value: float
    bound: float
    termination: str

    @property
    def proven(self) -> bool:
        """The value is the least after the change."""
        return self.value <= self.bound + SAME_VALUE * abs(self.value)

    @property
    def helps(self) -> bool:
        """The value is better than now by more than rounding."""
        return self.value < self.before - SAME_VALUE * abs(self.before)


@dataclass(frozen=True)
class Why:
    """What binds, what the bottleneck is, and what each change would do to ``objective``."""

    objective: Objective
    binding: tuple[Binding, ...]
    bottlenecks: tuple[Bottleneck, ...]
    effects: tuple[Effect, ...]


def why(
    answer: Answer,
    formulations: Callable[[], Iterable[Formulation]],
    request: Request | None = None,
    *,
    isolated: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> Why:
    """Look at an answer that has a placement.

    ``request`` says how the changed problems are solved; its time limit is for each of them (None: 10 s).
    ``progress`` hears which change is looked at.
    """
    if answer.placement is None:
        raise UsageError("there is no placement to explain")
    request = request or Request()
    request = replace(request, time_limit=EACH if request.time_limit is None else request.time_limit)
    problem = replace(answer.problem, objectives=answer.problem.objectives[:1])
    placement = answer.placement
    values = answer.evaluation.values if answer.evaluation is not None else {}
    effects = []
    for change in changes(problem):
        progress(f"what would change {problem.objectives[0].name}? {change.text}")
        effects.append(_effect(problem, placement, values, answer.value, change, formulations, request, isolated))
    return Why(
        problem.objectives[0], binding(problem, placement, values), bottlenecks(problem, placement, values),
        tuple(effects),
    )  # fmt: skip


def _effect(
    problem: Problem,
    placement: tuple[int, ...],
    values: Values,
    before: float,
    change: Change,
    formulations: Callable[[], Iterable[Formulation]],
    request: Request,
    isolated: bool,
) -> Effect:
    """Solve the changed problem; the placement at hand counts as well where it still is one."""
    assert len(placement) == problem.graph.nodes
    found = solve(change.problem, formulations, request, isolated=isolated)
    if found.termination == "interrupted":
        raise KeyboardInterrupt
    kept = evaluate(change.problem, placement, values)
    value = min(found.value, kept.objectives[0]) if not kept.violations else found.value
    return Effect(change.text, before, value, min(found.bound, value), found.termination)
