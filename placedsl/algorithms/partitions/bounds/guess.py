"""The bounds by guessing the bottleneck of MTPP (Xie et al. 2023, section 4.3): one stage, those before, those after.

For a stage b of k, let the stages before it be one superblock, it another, and those after it a third.  With the
largest load T of a stage, b loads at most T, what is before it at most (b - 1) T, and what is after it at most
(k - b) T; a tensor that enters the last superblock is paid once there.  The least such T is the value of guess b.

    guess           the least value of all guesses: the paper's, for which b is the stage that decides
    guess-maximum   the largest: the three inequalities hold for every b, whichever stage decides, for empty stages may
                    be added anywhere.  It is a bound as well, and never less

Both hold for accelerators that are all alike, as superblocks do.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.superblock_program import (
    Pipeline,
    Superblocks,
    pipeline_of,
    superblock_bound,
)
from placedsl.budget import Budget
from placedsl.problem.problem import Problem
from placedsl.tolerances import PROOF


def guess_bounds(
    problem: Problem, upper: float, seconds: float | None, told: Callable[[Bound], None], workers: int = 1
) -> bool:
    """Tell the least value, up to ``upper``, once every guess has had its time; whether all are solved."""
    pipeline = pipeline_of(problem)
    if pipeline is None:
        return False
    deadline = None if seconds is None else time.monotonic() + seconds
    found: list[tuple[float, bool]] = []
    for stage in _stages(pipeline.devices):
        found.append(_guess(pipeline, stage, upper, _left(deadline, pipeline.devices - len(found)), workers))
    told(Bound(min(value for value, _ in found), f"the least of {len(found)} guesses at the stage that decides"))
    return all(final for _, final in found)


def best_guess_bounds(
    problem: Problem, upper: float, seconds: float | None, told: Callable[[Bound], None], workers: int = 1
) -> bool:
    """Tell increasing bounds, up to ``upper``, by the guesses in the middle first; whether all are solved."""
    pipeline = pipeline_of(problem)
    if pipeline is None:
        return False
    deadline = None if seconds is None else time.monotonic() + seconds
    best, solved = -np.inf, True
    for asked, stage in enumerate(_stages(pipeline.devices)):
        value, final = _guess(pipeline, stage, upper, _left(deadline, pipeline.devices - asked), workers)
        solved &= final
        if value > best:
            best = value
            told(Bound(best, f"stage {stage + 1} and all others before and after it, by a program"))
    return solved


def _left(deadline: float | None, guesses: int) -> float | None:
    """The seconds of the next of so many guesses."""
    return None if deadline is None else max(0.01, (deadline - time.monotonic()) / guesses)


def _stages(devices: int) -> list[int]:
    """All of them, from the middle outwards."""
    return sorted(range(devices), key=lambda b: (abs(2 * b - devices + 1), b))


def _guess(pipeline: Pipeline, stage: int, upper: float, seconds: float | None, workers: int) -> tuple[float, bool]:
    """The value of one guess, as far as it is proven, and whether that is final."""
    devices = pipeline.devices
    most = tuple(size for size in (stage, 1, devices - stage - 1) if size)
    budget = Budget(seconds, 0.5 * PROOF, workers)
    ordered = bool(len(pipeline.before))
    asked = Superblocks(most, ordered=ordered)
    value, final = superblock_bound(pipeline, asked, upper, budget, lambda _bound, _found: False)
    return max(0.0, value), final
