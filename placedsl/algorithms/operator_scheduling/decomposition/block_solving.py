"""Blocks solved: annealing, domain reduction and the bound by what is broadcast first, then CP-SAT with more and more
effort.

Bounds are destructive: a limit on the latency is refuted.  The nearer a limit is to the bound, the less it leaves of
the block.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placedsl.algorithms.annealing import CoolingSchedule
from placedsl.algorithms.operator_scheduling.bounds.broadcast import Learned, broadcast_bound
from placedsl.algorithms.operator_scheduling.bounds.domain_reduction import destructive_bound
from placedsl.algorithms.operator_scheduling.bounds.relaxation import relaxed_latency
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Block, keep_if_better
from placedsl.algorithms.operator_scheduling.exact_cp_sat import solve_exactly
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence
from placedsl.algorithms.operator_scheduling.search.annealing import run_annealing
from placedsl.algorithms.operator_scheduling.search.incremental_kernel import incremental_schedule
from placedsl.algorithms.operator_scheduling.search.initial_orders import initial_orders
from placedsl.tolerances import EQUAL_COSTS, IMPROVEMENT

#: Annealing of a block: runs, steps per node, and the first and last temperature as shares of its latency.
_RUNS, _STEPS, _HOT, _COLD = 4, 400, 0.03, 0.0003
#: Steps per node of the first runs if there are many blocks and no proofs; doubled each time.
_QUICK = 30
#: CP-SAT's deterministic time at first; four times as much each further time.
_EFFORT = 0.5
#: Blocks of more nodes are not annealed if there are proofs; of more than the second, never, nor solved by CP-SAT.
_ANNEALED, _MOST = 120, 400
#: Limits tried in a row, the first halfway from the bound to the best latency, then nearer to the bound by this factor
#: after each that is not decided; a gap below this share is closed at once.
_TRIALS, _NEARER, _NARROW = 6, 0.25, 0.01
#: Blocks of more nodes than CP-SAT decides in short time have the bound of a linear program of work, paths and
#: transfers, which takes so many seconds at most, where no tensor that is broadcast says more.
_MOST_EXACT, _SECONDS = 120, 5.0


def block_improver(
    instance: SchedulingInstance, seed: int, *, schedules: bool = True, prove: bool = True
) -> Callable[[Block, int, int, float], None]:  # fmt: skip
    """A function that improves one block, as :func:`.blocks.refine` calls it.

    Without ``schedules``, that is where those of the blocks are none of the whole, a block is annealed once, and only
    before CP-SAT; without ``prove`` nothing else is done.
    """
    rng = np.random.default_rng(seed)
    alike: dict[tuple[object, ...], OperatorSequence] = {}
    learned: dict[int, Learned] = {}

    def improve(block: Block, a: int, b: int, needed: float) -> None:
        inner = block.sequences[a, b][1] if (a, b) in block.sequences else block.with_fixed_ends(instance, a, b)
        effort = int(block.effort[a, b])
        if effort == 0 or not prove:
            if inner.nodes <= _MOST:
                key = _structure(inner)
                keep_if_better(block, a, b, alike.get(key), inner)
                _list(block, a, b, inner)
                if not prove:
                    _anneal(block, a, b, inner, rng, _RUNS, min(_STEPS, _QUICK << effort))
                elif schedules and inner.nodes <= _ANNEALED:
                    _anneal(block, a, b, inner, rng, _RUNS, _STEPS)
                if (a, b) in block.sequences:
                    alike[key] = block.sequences[a, b][0]
            if prove:
                upper = min(float(block.latency[a, b]), needed)
                _refute(block, a, b, inner, upper)
                known = float(block.lower_bound[a, b])
                _raise(block, a, b, broadcast_bound(inner, known, upper, learned.setdefault(inner.nodes, Learned())))
                if inner.nodes > _MOST_EXACT and not block.final[a, b] and block.lower_bound[a, b] == known:
                    _raise(block, a, b, relaxed_latency(inner, _SECONDS))
            return
        if inner.nodes > _MOST:
            block.final[a, b] = True
            return
        if effort == 1 and not schedules and inner.nodes <= _ANNEALED:
            _anneal(block, a, b, inner, rng, 1, _STEPS)
        _decide(block, a, b, inner, needed, effort, rng)

    return improve


def _structure(inner: SchedulingInstance) -> tuple[object, ...]:
    """A key that blocks share if a sequence of one is valid for the other: equal layers, for instance."""
    able = np.isfinite(inner.time)
    arrays = (able, inner.producer, inner.reader_start, inner.reader, inner.unit)
    return tuple(array.tobytes() for array in arrays)


def _list(block: Block, a: int, b: int, inner: SchedulingInstance) -> None:
    """Find list schedules of a block."""
    for sequence in initial_orders(inner):
        keep_if_better(block, a, b, sequence, inner)


def _anneal(
    block: Block, a: int, b: int, inner: SchedulingInstance, rng: np.random.Generator, runs: int, steps: int
) -> None:  # fmt: skip
    """Anneal the best schedule of a block, with ``steps`` steps per node and run."""
    for _ in range(runs):
        if not np.isfinite(block.latency[a, b]) or block.final[a, b]:
            return
        schedule, latency = incremental_schedule(inner, block.sequences[a, b][0])
        heat = max(latency, 1e-300)
        cooling = CoolingSchedule(steps * inner.nodes, _HOT * heat, _COLD * heat, int(rng.integers(2**31)))
        keep_if_better(
            block, a, b, run_annealing(inner, schedule, latency, float(block.latency[a, b]), cooling)[1], inner
        )


def _raise(block: Block, a: int, b: int, proven: float) -> None:
    """Raise the lower bound of a block."""
    block.lower_bound[a, b] = max(block.lower_bound[a, b], proven)
    block.final[a, b] |= block.latency[a, b] <= block.lower_bound[a, b] * (1.0 + IMPROVEMENT)


def _refute(block: Block, a: int, b: int, inner: SchedulingInstance, upper: float) -> None:
    """Raise the bound to the largest limit that domain reduction alone refutes."""
    if np.isfinite(upper):
        _raise(block, a, b, destructive_bound(inner, float(block.lower_bound[a, b]), upper))


def _decide(
    block: Block, a: int, b: int, inner: SchedulingInstance, needed: float, effort: int, rng: np.random.Generator
) -> None:  # fmt: skip
    """Have CP-SAT decide limits between the proven bound and the best latency, or the latency needed."""
    share = 0.5
    for _ in range(_TRIALS):
        upper, least = min(float(block.latency[a, b]), needed), float(block.lower_bound[a, b])
        if not np.isfinite(upper):
            block.final[a, b] = True
            return
        if upper <= least * (1.0 + EQUAL_COSTS):
            block.effort[a, b] += 100
            return
        limit = upper if upper - least <= _NARROW * upper else least + share * (upper - least)
        hint = block.sequences[a, b][0] if limit == block.latency[a, b] else None
        work, number = _EFFORT * 4.0 ** (effort - 1), int(rng.integers(2**31))
        solved = solve_exactly(inner, hint, limit, effort=work, seed=number, target=least)
        _raise(block, a, b, min(solved.bound, limit))
        keep_if_better(block, a, b, solved.sequence, inner)
        if solved.final and limit >= block.latency[a, b] * (1.0 - IMPROVEMENT):
            block.final[a, b] = True
        if not solved.final:
            share *= _NEARER
            if limit == upper or share * (upper - least) <= _NARROW * upper:
                return
