"""Blocks solved: annealing, domain reduction and the bound by what is broadcast first, then the bound of placements
where work is beside them, then CP-SAT with more and more effort.

Bounds are destructive: a limit on the latency is refuted.  The nearer a limit is to the bound, the less it leaves of
the block.
"""

from __future__ import annotations

import itertools

import numpy as np

from placedsl.algorithms.annealing import CoolingSchedule
from placedsl.algorithms.operator_scheduling.bounds.broadcast import Learned, broadcast_bound
from placedsl.algorithms.operator_scheduling.bounds.domain_reduction import destructive_bound
from placedsl.algorithms.operator_scheduling.bounds.placement_bound import placement_bound
from placedsl.algorithms.operator_scheduling.bounds.relaxation import relaxed_latency
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Block, keep_if_better
from placedsl.algorithms.operator_scheduling.exact_cp_sat import solve_exactly
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, schedule_of
from placedsl.algorithms.operator_scheduling.search.annealing import run_annealing
from placedsl.algorithms.operator_scheduling.search.incremental_kernel import incremental_schedule
from placedsl.algorithms.operator_scheduling.search.initial_orders import initial_orders
from placedsl.tolerances import EQUAL_COSTS, IMPROVEMENT

#: Annealing of a block: runs, steps per node, and the first and last temperature as shares of its latency.
_RUNS, _STEPS, _HOT, _COLD = 4, 400, 0.03, 0.0003
#: Restarts begin in turn from so many list schedules, those with the least latency.
_STARTS = 3
#: Steps per node of the first runs if there are many blocks and no proofs; doubled each time.
_QUICK = 30
#: CP-SAT's deterministic time at first; four times as much each further time.
_EFFORT = 0.5
#: The same for the bound of placements.
_PLACED = 2.0
#: Blocks of more nodes are not annealed if there are proofs; of more than the second, never, nor solved by CP-SAT.
_ANNEALED, _MOST = 120, 400
#: Limits tried in a row, the first halfway from the bound to the best latency, then nearer to the bound by this factor
#: after each that is not decided; a gap below this share is closed at once.
_TRIALS, _NEARER, _NARROW = 6, 0.25, 0.01
#: Blocks of more nodes than CP-SAT decides in short time have the bound of a linear program of work, paths and
#: transfers, which takes so many seconds at most, where no tensor that is broadcast says more.
_MOST_EXACT, _SECONDS = 120, 5.0


class BlockImprover:
    """Improves one block when called, as :func:`.blocks.refine` calls it.

    Without ``schedules``, that is where those of the blocks are none of the whole, a block is annealed once, and only
    before CP-SAT; without ``prove`` nothing else is done.  With ``placements`` the bound of placements comes before
    CP-SAT, which has its rows: much where there is work beside a chain, and time that is lost where there is none.
    ``restarts``: so many runs of annealing of the first block of a structure begin from list schedules.
    """

    def __init__(
        self,
        instance: SchedulingInstance,
        seed: int,
        *,
        schedules: bool = True,
        prove: bool = True,
        placements: bool = False,
        restarts: int = 0,
    ) -> None:
        self._instance, self._schedules, self._prove = instance, schedules, prove
        self._placements = placements and instance.resources > 0
        self._restarts = restarts
        self._rng = np.random.default_rng(seed)
        self._alike: dict[tuple[object, ...], OperatorSequence] = {}
        self._learned: dict[int, Learned] = {}

    def __call__(self, block: Block, a: int, b: int, needed: float) -> None:
        """Improve a block for devices a and b of its ends; one of ``needed`` seconds or more is of no use."""
        inner = self.take_alike(block, a, b)
        effort = int(block.effort[a, b])
        if inner.nodes > _MOST and effort:
            block.final[a, b] = True
        elif effort == 0 or not self._prove:
            if inner.nodes <= _MOST:
                self._schedule(block, a, b, inner)
            if self._prove:
                self._bound(block, a, b, inner, needed)
        else:
            self._again(block, a, b, inner, needed)
        if (a, b) in block.sequences:
            self._alike[_structure(inner)] = block.sequences[a, b][0]

    def take_alike(self, block: Block, a: int, b: int) -> SchedulingInstance:
        """Keep what has been found for a block like this one if it is better; returns the instance of the block."""
        known = block.sequences.get((a, b))
        inner = block.with_fixed_ends(self._instance, a, b) if known is None else known[1]
        if inner.nodes <= _MOST:
            keep_if_better(block, a, b, self._alike.get(_structure(inner)), inner)
        return inner

    def _schedule(self, block: Block, a: int, b: int, inner: SchedulingInstance) -> None:
        """List schedules, and annealing."""
        orders = list(initial_orders(inner))
        for sequence in orders:
            keep_if_better(block, a, b, sequence, inner)
        if self._restarts and block.effort[a, b] == 0 and _structure(inner) not in self._alike:
            self._restart(block, a, b, inner, orders)
        if not self._prove:
            _anneal(block, a, b, inner, self._rng, _RUNS, min(_STEPS, _QUICK << int(block.effort[a, b])))
        elif self._schedules and inner.nodes <= _ANNEALED:
            _anneal(block, a, b, inner, self._rng, _RUNS, _STEPS)

    def _restart(
        self, block: Block, a: int, b: int, inner: SchedulingInstance, orders: list[OperatorSequence]
    ) -> None:  # fmt: skip
        """Annealing from the best list schedules in turn."""
        latency = np.array([schedule_of(inner, sequence)[0] for sequence in orders])
        starts = [orders[k] for k in np.argsort(latency, kind="stable")[:_STARTS].tolist() if np.isfinite(latency[k])]
        for first in itertools.islice(itertools.cycle(starts), self._restarts):
            _anneal(block, a, b, inner, self._rng, 1, _STEPS, first)

    def _bound(self, block: Block, a: int, b: int, inner: SchedulingInstance, needed: float) -> None:
        """The quick bounds."""
        upper = min(float(block.latency[a, b]), needed)
        if np.isfinite(upper):  # the largest limit that domain reduction alone refutes
            _raise(block, a, b, destructive_bound(inner, float(block.lower_bound[a, b]), upper))
        known, learned = float(block.lower_bound[a, b]), self._learned.setdefault(inner.nodes, Learned())
        _raise(block, a, b, broadcast_bound(inner, known, upper, learned))
        if inner.nodes > _MOST_EXACT and not block.final[a, b] and block.lower_bound[a, b] == known:
            _raise(block, a, b, relaxed_latency(inner, _SECONDS))

    def _again(self, block: Block, a: int, b: int, inner: SchedulingInstance, needed: float) -> None:
        """The bound of placements where transfers are congested, then CP-SAT, with more effort each time."""
        effort = int(block.effort[a, b])
        if effort == 1 and not self._schedules and inner.nodes <= _ANNEALED:
            _anneal(block, a, b, inner, self._rng, 1, _STEPS)
        if effort == 1 and self._placements and inner.nodes <= _MOST_EXACT:
            known, upper = float(block.lower_bound[a, b]), min(float(block.latency[a, b]), needed)
            seed = int(self._rng.integers(2**31))
            _raise(block, a, b, placement_bound(inner, known, upper, effort=_PLACED, seed=seed))
            if not self._schedules and block.lower_bound[a, b] > known * (1.0 + IMPROVEMENT):
                return
        if not block.final[a, b]:
            _decide(block, a, b, inner, needed, self._rng, self._placements)


def _structure(inner: SchedulingInstance) -> tuple[object, ...]:
    """A key that blocks share if a sequence of one is valid for the other: equal layers, for instance."""
    able = np.isfinite(inner.time)
    arrays = (able, inner.producer, inner.reader_start, inner.reader, inner.unit)
    return tuple(array.tobytes() for array in arrays)


def _anneal(
    block: Block, a: int, b: int, inner: SchedulingInstance, rng: np.random.Generator, runs: int, steps: int,
    first: OperatorSequence | None = None,
) -> None:  # fmt: skip
    """Anneal a schedule of a block (None: the best), with ``steps`` steps per node and run."""
    for _ in range(runs):
        if not np.isfinite(block.latency[a, b]) or block.final[a, b]:
            return
        schedule, latency = incremental_schedule(inner, block.sequences[a, b][0] if first is None else first)
        heat = max(latency, 1e-300)
        cooling = CoolingSchedule(steps * inner.nodes, _HOT * heat, _COLD * heat, int(rng.integers(2**31)))
        keep_if_better(
            block, a, b, run_annealing(inner, schedule, latency, float(block.latency[a, b]), cooling)[1], inner
        )


def _raise(block: Block, a: int, b: int, proven: float) -> None:
    """Raise the lower bound of a block."""
    block.lower_bound[a, b] = max(block.lower_bound[a, b], proven)
    block.final[a, b] |= block.latency[a, b] <= block.lower_bound[a, b] * (1.0 + IMPROVEMENT)


def _decide(
    block: Block, a: int, b: int, inner: SchedulingInstance, needed: float, rng: np.random.Generator, one_machine: bool
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
        work, number = _EFFORT * 4.0 ** (int(block.effort[a, b]) - 1), int(rng.integers(2**31))
        solved = solve_exactly(
            inner, hint, limit, effort=work, seed=number, target=least, one_machine=one_machine
        )  # fmt: skip
        _raise(block, a, b, min(solved.bound, limit))
        keep_if_better(block, a, b, solved.sequence, inner)
        if solved.final and limit >= block.latency[a, b] * (1.0 - IMPROVEMENT):
            block.final[a, b] = True
        if not solved.final:
            share *= _NEARER
            if limit == upper or share * (upper - least) <= _NARROW * upper:
                return
