"""Bounds by superblocks: the stages of a pipeline taken together to a few, by an integer program.

Let the stages of any pipeline over k like devices be taken together in order to r superblocks of m[1], ..., m[r]
stages, empty ones among them, k in all.  A set of stages loads no more than its stages together, for a tensor that it
cuts is cut by one of them.  So every superblock i has  load(i) <= m[i] * T  where T is the largest load of a stage, and
the least T for which there are such superblocks is a bound.  Superblocks of a stage each are the pipeline itself.

It holds whatever else is asked for, memory among it, for accelerators that are all alike: what a host reads and writes
costs nothing, and the stages of unlike devices have different loads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.superblock_program import (
    MOST_COLUMNS,
    Superblocks,
    alike,
    columns,
    pipeline_of,
    superblock_bound,
)
from placedsl.algorithms.supports import PLACING, Supports
from placedsl.arrays import Integers
from placedsl.budget import Budget
from placedsl.problem.execution import Execution
from placedsl.problem.problem import Problem
from placedsl.tolerances import PROOF

#: A pipeline of devices that are all alike; whatever else is asked for only adds.
SUPPORTS = Supports(
    objectives=("time_per_sample",), executions=(Execution(),), requires=("contiguous",),
    constraints=PLACING | {"contiguous", "convex"}, clusters=False, formulations=True, relaxes=True,
)  # fmt: skip


def sizes(devices: int, blocks: int) -> tuple[int, ...]:
    """So many superblocks of about the same size."""
    return tuple(devices // blocks + (k < devices % blocks) for k in range(blocks))


def fits(problem: Problem) -> bool:
    """Whether all devices are alike, and accelerators."""
    return not alike(problem)


def prove_superblocks(
    problem: Problem, upper: Callable[[], float], over: Callable[[], bool],
    told: Callable[[Bound | None, Integers | None], None], blocks: tuple[int, ...], seconds: float | None = None,
    patient: bool = False,
) -> bool:  # fmt: skip
    """Tell increasing bounds of so many superblocks in turn, no more than devices, until all are solved or it is over;
    whether they are.

    ``told`` also hears of placements (n devices), where superblocks are stages.  ``seconds``: of each program;
    ``patient``: others go first where cores are short.
    """
    pipeline = pipeline_of(problem)
    if pipeline is None or pipeline.devices < 2:
        return False
    best, solved = -np.inf, True
    for number in sorted({min(asked, pipeline.devices) for asked in blocks}):
        if columns(pipeline, number) > MOST_COLUMNS or over():
            return False
        size = sizes(pipeline.devices, number)
        words = f"a program of {number} superblocks of {' or '.join(map(str, dict.fromkeys(size)))} stages"
        proof = {"kind": "superblocks", "stages": list(size)}

        def heard(
            bound: float, found: Integers | None = None, words: str = words, alone: bool = number == pipeline.devices,
            proof: dict[str, Any] = proof,
        ) -> bool:  # fmt: skip
            nonlocal best
            if found is not None and alone:
                told(None, found[pipeline.unit_of_node])
            if bound > best:
                best = bound
                told(Bound(bound, words, proof), None)
            return over() or bound >= upper() * (1.0 - PROOF)

        asked = Superblocks(size, ordered=bool(len(pipeline.before)))
        budget = Budget(seconds, 0.5 * PROOF, 1, patient=patient)
        value, final = superblock_bound(pipeline, asked, upper(), budget, heard)
        heard(value)
        solved &= final
    return solved
