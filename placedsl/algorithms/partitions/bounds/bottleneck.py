"""The bounds by three superblocks of MTPP (Xie et al. 2023, section 4.2): the heaviest stage, and what is around it.

Some stage of every pipeline works at least as much as the simple bound: the largest unit, or the even share of the work
(Lemma 4.2).  Let it be the middle superblock, and all stages before and after it the others.  The least load of a
middle superblock that works so much is a bound (Corollary 4.3).

    bottleneck          that program
    bottleneck-no-dag   without its order: any set of units that works so much
    bottleneck-no-io    without transfers: consecutive units that work so much

The stage with most work is that of some device, and devices are alike: with hosts or several kinds of them the simple
bound is no longer what one of them works.  Memory and other rules only add.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.superblock_program import Superblocks, pipeline_of, superblock_bound
from placedsl.budget import Budget
from placedsl.problem.problem import Problem
from placedsl.tolerances import PROOF

#: The program of each, and what it is in words.
_MIDDLE = (None, 1.0, None)
PROGRAMS = {
    "bottleneck": (Superblocks(_MIDDLE, heavy=1), "the cheapest stage with an even share of the work"),
    "bottleneck-no-dag": (
        Superblocks(_MIDDLE, heavy=1, ordered=False),
        "the cheapest set of operators with an even share of the work",
    ),
    "bottleneck-no-io": (
        Superblocks(_MIDDLE, heavy=1, transfers=False),
        "the quickest stage with an even share of the work",
    ),
}


def bottleneck_bounds(
    problem: Problem, name: str, seconds: float | None, told: Callable[[Bound], None], workers: int = 1
) -> bool:
    """Tell increasing bounds of one of :data:`PROGRAMS`, until it is solved; whether it is."""
    pipeline = pipeline_of(problem)
    if pipeline is None:
        return False
    asked, words = PROGRAMS[name]
    best = -np.inf

    def heard(bound: float, _: object = None) -> bool:
        nonlocal best
        if bound > best:
            best = bound
            told(Bound(bound, words))
        return False

    budget = Budget(seconds, 0.5 * PROOF, workers)
    value, final = superblock_bound(pipeline, asked, np.inf, budget, heard)
    heard(value)
    return final
