"""Blocks solved: annealing first, then CP-SAT with ever more effort."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placedsl.algorithms.dataflow.anneal_kernel import Cooling
from placedsl.algorithms.dataflow.annealing import annealed
from placedsl.algorithms.dataflow.arrays import Flow
from placedsl.algorithms.dataflow.blocks import Block, take
from placedsl.algorithms.dataflow.exact import solve_exactly
from placedsl.algorithms.dataflow.starts import starts
from placedsl.algorithms.dataflow.walk_kernel import walk_from

#: Annealing of a block: runs, steps a node, and where it begins and ends as a share of its latency.
_RUNS, _STEPS, _HOT, _COLD = 4, 400, 0.03, 0.0003
#: CP-SAT's deterministic time at first; each further time four times as much.
_EFFORT = 0.5
#: Blocks of more nodes are left to annealing.
_MOST = 120


def improver(flow: Flow, seed: int) -> Callable[[Block, int, int, float], None]:
    """What :func:`placedsl.algorithms.dataflow.blocks.refined` asks for."""
    rng = np.random.default_rng(seed)

    def improve(block: Block, a: int, b: int, needed: float) -> None:
        inner = block.orders[a, b][1] if (a, b) in block.orders else block.flow(flow, a, b)
        effort = int(block.effort[a, b])
        if effort == 0:
            for order in starts(inner):
                take(block, a, b, order, inner)
            for _ in range(_RUNS):
                if not np.isfinite(block.takes[a, b]) or block.final[a, b]:
                    break
                walk, latency = walk_from(inner, block.orders[a, b][0])
                heat = max(latency, 1e-300)
                cooling = Cooling(_STEPS * inner.nodes, _HOT * heat, _COLD * heat, int(rng.integers(2**31)))
                take(block, a, b, annealed(inner, walk, latency, float(block.takes[a, b]), cooling)[1], inner)
            return
        if inner.nodes > _MOST or not np.isfinite(block.takes[a, b]):
            block.final[a, b] = True
            return
        upper = min(float(block.takes[a, b]), needed)
        if upper <= block.least[a, b] * (1.0 + 1e-9):
            block.effort[a, b] += 100
            return
        hint = block.orders[a, b][0]
        solved = solve_exactly(inner, hint, upper, effort=_EFFORT * 4.0 ** (effort - 1), seed=int(rng.integers(2**31)))
        block.least[a, b] = max(block.least[a, b], min(solved.bound, upper))
        take(block, a, b, solved.order, inner)
        if solved.final and upper >= block.takes[a, b] * (1.0 - 1e-12):
            block.final[a, b] = True

    return improve
