"""The least load that a plan can have: a threshold is asked for after another, and every lower load is refuted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.pipelines.parallel_plans.instance import Plan
from placedsl.algorithms.pipelines.search_limits import SearchLimits

#: The best plan is proven when everything below it by this share is refuted.
STRICTLY = 1e-11
#: How near to its bound a plan of groups of units is made.
CLOSE = 1e-3
#: From this distance between bound and value on, so many questions in a row are whether there is anything better.
_NEARLY, _STRICTLY_IN_A_ROW = 0.006, 3
#: The first questions without a plan are for loads that grow by more and more, and from such a share on more slowly.
_UP, _MUCH = 0.02, 0.3
#: The same where questions about more than what is needed take much longer, and how much more each time.
_SLOWLY, _GROWTH = 0.002, 1.3
#: The first question after a plan that is known is for a load that is less by this share.
_DOWN = 0.004
#: What is expected of all devices is asked for with so much more, where that is less than what is known by as much.
_MORE = 5e-4

#: A plan within a load, or none and whether that is sure; None where a limit was reached before.
Question = Callable[[float], tuple[Plan | None, bool] | None]


@dataclass(frozen=True, eq=False)
class PlanResult:
    """The best plan (None: there is none, where ``complete``) and a proven bound on the goal."""

    plan: Plan | None
    bound: float
    complete: bool
    too_many: bool = False
    questions: int = 0


def least_load(
    ask: Question,
    limits: SearchLimits,
    lowest: float,
    ceiling: float,
    within: float = np.inf,
    known: Plan | None = None,
    near: float = 0.0,
    devices: int = 0,
    shortcut: Callable[[], Plan | None] | None = None,
) -> PlanResult:
    """Ask for one load after another: upwards to a first plan, by halves, and at last for anything better.

    ``lowest``, ``ceiling``: no plan has less, and every plan has as much at most.  Where plans have to be ``within`` a
    load, that is asked first; where one is ``known``, for a load somewhat less.  ``near``: how near to its bound the
    load has to be, relatively.  ``devices``: how many there are, if plans have the fewest for their load: that such a
    plan has less work to do by as much as it has fewer devices tells where the best is about.  ``shortcut``: a plan
    that is likely to be the best, or None; asked for after each refuted load on the way up.  It is given where a
    question takes the longer the more its load is above what is needed, so that loads grow slowly, though a plan is
    known.
    """  # fmt: skip
    bound, ceiling = lowest, min(ceiling, within)
    upwards, likely = shortcut is not None, False
    plan, value = known, np.inf if known is None else known.value
    step, questions = (_SLOWLY if upwards else _UP) if within == np.inf else np.inf, 0
    down = 1.0 if known is None else _DOWN
    many = devices * _NEARLY >= 1.0  # one more or less makes little difference
    most_strictly = _STRICTLY_IN_A_ROW if many else 1
    strictly = 0 if known is None else most_strictly  # so many questions in a row were for anything better
    while not limits.passed:
        if limits.told is not None:
            limits.told(plan, bound)
        if value * (1.0 - STRICTLY) <= bound:
            return PlanResult(plan, value, True, questions=questions)
        if value * (1.0 - near) <= bound:
            return PlanResult(plan, bound, True, questions=questions)
        expected = np.inf if plan is None or not many else value * (plan.devices / devices) * (1.0 + _MORE)
        nearly = likely or value - bound <= _NEARLY * value or bound <= 0.0
        nearly = nearly or value * (1.0 - _MORE) <= expected < np.inf
        strictly += 1
        upwards = upwards and bound * (1.0 + step) < value * (1.0 - _DOWN) and bound > 0.0
        if plan is None or upwards:
            load = min(bound * (1.0 + step), ceiling) if bound > 0.0 else ceiling
            step *= (_GROWTH if upwards else 4.0) if step < _MUCH else 1.5
        elif bound < expected < value * (1.0 - _MORE):
            load, strictly = expected, 0
        elif nearly and strictly <= most_strictly:
            load = value * (1.0 - STRICTLY)
        else:
            load, strictly = max((bound + value) / 2.0, value * (1.0 - down)), 0
            down *= 2.0
        answer = ask(load)
        if answer is None:
            break
        found, sure = answer
        questions += 1
        if found is not None:
            plan, value, upwards = found, found.value, False
        elif not sure:
            break
        elif load >= ceiling:
            return PlanResult(None, within, True, questions=questions)
        else:
            bound = max(bound, load)
            better = shortcut() if upwards and shortcut is not None else None
            if better is not None and better.value < value:
                plan, value, upwards, likely, strictly = better, better.value, False, True, 0
    return PlanResult(plan, bound, False, questions=questions)
