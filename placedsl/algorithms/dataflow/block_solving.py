"""Blocks solved: annealing and narrowing first, then CP-SAT with ever more effort.

A bound comes from limits that are refuted: the nearer a limit is to the bound, the less of the block it leaves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placedsl.algorithms.dataflow.anneal_kernel import Cooling
from placedsl.algorithms.dataflow.annealing import annealed
from placedsl.algorithms.dataflow.arrays import Flow
from placedsl.algorithms.dataflow.blocks import Block, take
from placedsl.algorithms.dataflow.exact import solve_exactly
from placedsl.algorithms.dataflow.kernel import Order
from placedsl.algorithms.dataflow.narrowing import refuted
from placedsl.algorithms.dataflow.starts import starts
from placedsl.algorithms.dataflow.walk_kernel import walk_from

#: Annealing of a block: runs, steps a node, and where it begins and ends as a share of its latency.
RUNS, _STEPS, _HOT, _COLD = 4, 400, 0.03, 0.0003
#: Steps a node of the first runs where there are many blocks and no proofs; twice as many the next time.
_QUICK = 30
#: CP-SAT's deterministic time at first; each further time four times as much.
_EFFORT = 0.5
#: Blocks of more nodes are not annealed where there are proofs; of more than the second, never, nor given to CP-SAT.
_ANNEALED, _MOST = 150, 400
#: Limits that are tried in a row, the first half way to what the block is known to take, then nearer by this factor
#: after each that is not decided; a gap of so small a share is closed at once.
_TRIALS, _NEARER, _NARROW = 6, 0.25, 0.01


def improver(
    flow: Flow, seed: int, *, runs: int = RUNS, prove: bool = True
) -> Callable[[Block, int, int, float], None]:  # fmt: skip
    """What :func:`placedsl.algorithms.dataflow.blocks.refined` asks for; ``runs`` of annealing for each block, without
    ``prove`` nothing else."""
    rng = np.random.default_rng(seed)
    alike: dict[tuple[object, ...], Order] = {}

    def improve(block: Block, a: int, b: int, needed: float) -> None:
        inner = block.orders[a, b][1] if (a, b) in block.orders else block.flow(flow, a, b)
        effort = int(block.effort[a, b])
        if effort == 0 or not prove:
            if inner.nodes <= _MOST:
                key = _structure(inner)
                take(block, a, b, alike.get(key), inner)
                if prove:
                    _anneal(block, a, b, inner, rng, runs if inner.nodes <= _ANNEALED else 0, _STEPS)
                else:
                    _anneal(block, a, b, inner, rng, runs, min(_STEPS, _QUICK << effort))
                if (a, b) in block.orders:
                    alike[key] = block.orders[a, b][0]
            if prove:
                _refute(block, a, b, inner, min(float(block.takes[a, b]), needed))
            return
        if inner.nodes > _MOST:
            block.final[a, b] = True
            return
        _decide(block, a, b, inner, needed, effort, rng)

    return improve


def _structure(inner: Flow) -> tuple[object, ...]:
    """What blocks have in common for which the same order is one: layers of one kind, say."""
    able = np.isfinite(inner.time)
    arrays = (able, inner.producer, inner.reader_start, inner.reader, inner.unit)
    return tuple(array.tobytes() for array in arrays)


def _anneal(
    block: Block, a: int, b: int, inner: Flow, rng: np.random.Generator, runs: int, steps: int
) -> None:  # fmt: skip
    """Schedules of a block, list schedules and by annealing from the best, so many steps a node and run."""
    for order in starts(inner):
        take(block, a, b, order, inner)
    for _ in range(runs):
        if not np.isfinite(block.takes[a, b]) or block.final[a, b]:
            return
        walk, latency = walk_from(inner, block.orders[a, b][0])
        heat = max(latency, 1e-300)
        cooling = Cooling(steps * inner.nodes, _HOT * heat, _COLD * heat, int(rng.integers(2**31)))
        take(block, a, b, annealed(inner, walk, latency, float(block.takes[a, b]), cooling)[1], inner)


def _raise(block: Block, a: int, b: int, proven: float) -> None:
    block.least[a, b] = max(block.least[a, b], proven)
    block.final[a, b] |= block.takes[a, b] <= block.least[a, b] * (1.0 + 1e-12)


def _refute(block: Block, a: int, b: int, inner: Flow, upper: float) -> None:
    """The largest limit that narrowing alone refutes."""
    if np.isfinite(upper):
        _raise(block, a, b, refuted(inner, float(block.least[a, b]), upper))


def _decide(
    block: Block, a: int, b: int, inner: Flow, needed: float, effort: int, rng: np.random.Generator
) -> None:  # fmt: skip
    """Limits between what is proven and what the block is known to take, or needs to, given to CP-SAT."""
    share = 0.5
    for _ in range(_TRIALS):
        upper, least = min(float(block.takes[a, b]), needed), float(block.least[a, b])
        if not np.isfinite(upper):
            block.final[a, b] = True
            return
        if upper <= least * (1.0 + 1e-9):
            block.effort[a, b] += 100
            return
        limit = upper if upper - least <= _NARROW * upper else least + share * (upper - least)
        hint = block.orders[a, b][0] if limit == block.takes[a, b] else None
        work, number = _EFFORT * 4.0 ** (effort - 1), int(rng.integers(2**31))
        solved = solve_exactly(inner, hint, limit, effort=work, seed=number, target=least)
        _raise(block, a, b, min(solved.bound, limit))
        take(block, a, b, solved.order, inner)
        if solved.final and limit >= block.takes[a, b] * (1.0 - 1e-12):
            block.final[a, b] = True
        if not solved.final:
            share *= _NEARER
            if limit == upper or share * (upper - least) <= _NARROW * upper:
                return
