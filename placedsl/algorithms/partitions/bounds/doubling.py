"""The bound by doubling: half of the devices take at most twice as long.

Two stages together load no more than both, for a tensor that they cut is cut by one of them.  So a pipeline over k like
devices with largest load T makes one over k/2, rounded up, with loads of at most 2 T, and

    OPT(k)  >=  OPT(k / 2) / 2  >=  ...  >=  OPT(2) / 2^j

where a program of two stages is solved.  With 2^j devices it is the bound by two superblocks, with others less.  It
holds where that does: for accelerators that are all alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.superblock_program import Superblocks, pipeline_of, superblock_bound
from placedsl.budget import Budget
from placedsl.problem.problem import Problem
from placedsl.tolerances import PROOF


def doubling_bounds(
    problem: Problem, upper: float, seconds: float | None, told: Callable[[Bound], None], workers: int = 1
) -> bool:
    """Tell increasing bounds, up to ``upper``, until that of two devices is solved; whether it is."""
    pipeline = pipeline_of(problem)
    if pipeline is None or pipeline.devices < 2:
        return False
    share, left = 1.0, pipeline.devices
    while left > 2:
        left, share = -(-left // 2), share * 2.0
    best = -np.inf

    def heard(bound: float, _: object = None) -> bool:
        nonlocal best
        if bound > best:
            best = bound
            told(Bound(bound, f"{left} devices that have {share:g} times as long, by a program", proof))
        return False

    proof: dict[str, Any] = {"kind": "superblocks", "stages": [1] * left}
    for _ in range(round(np.log2(share))):
        proof = {"kind": "doubling", "half": proof}
    asked = Superblocks((share, share), ordered=bool(len(pipeline.before)))
    budget = Budget(seconds, 0.5 * PROOF, workers)
    value, final = superblock_bound(pipeline, asked, upper, budget, heard)
    heard(value)
    return final
