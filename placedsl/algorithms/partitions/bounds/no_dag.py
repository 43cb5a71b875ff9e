"""The bound by the heaviest stage, as any set of units: what an even share of the work and its transfers cost.

Some device works at least as much as the simple bound: the largest unit, or the even share of the work (MTPP, Lemma
4.2).  Its load is at least that of the cheapest set of units that works so much,

    min over sets S of units with  work(S) >= max(largest unit, all work / k)  of  load(S)

which a program finds: a column for each unit, and one for each tensor that is cut.  It is bottleneck-no-dag of MTPP,
with one set in place of three superblocks.  Stages need not be contiguous; devices have to be alike, and no hosts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.superblock_program import (
    MOST_COLUMNS,
    Superblocks,
    columns,
    pipeline_of,
    superblock_bound,
)
from placedsl.budget import Budget
from placedsl.problem.problem import Problem
from placedsl.tolerances import PROOF

#: What it is, in words.
WORDS = "the cheapest set of operators with an even share of the work"


def no_dag_bounds(
    problem: Problem, seconds: float | None, told: Callable[[Bound], None],
    over: Callable[[float], bool] = lambda _: False, workers: int = 1,
) -> bool:  # fmt: skip
    """Tell increasing bounds until the program is solved; whether it is.  ``over(bound)`` says whether to stop."""
    pipeline = pipeline_of(problem)
    if pipeline is None or columns(pipeline, 2) > MOST_COLUMNS:
        return False
    best = -np.inf

    def heard(bound: float, _: object = None) -> bool:
        nonlocal best
        if bound > best:
            best = bound
            told(Bound(bound, WORDS, {"kind": "even share"}))
        return over(best)

    asked = Superblocks((1.0, None), heavy=0, ordered=False)
    budget = Budget(seconds, 0.5 * PROOF, workers)
    value, final = superblock_bound(pipeline, asked, np.inf, budget, heard)
    heard(value)
    return final
