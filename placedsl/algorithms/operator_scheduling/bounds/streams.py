"""Proven lower bounds on the latency of operator scheduling, from quick to strong.

First the longest path with each node on its best device, transfers counted only where a node is not supported by the
same device; then the blocks between nodes of a path, each solved for all pairs of devices of its ends; between two
rounds of those, or after the last, a linear program of work, memory and paths.  Where memory may bind, and where work
is beside the blocks, prices of memory and of time take turns with the blocks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.exchange import ALONE, Exchange
from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import earliest_end
from placedsl.algorithms.operator_scheduling.bounds.memory_prices import memory_uses
from placedsl.algorithms.operator_scheduling.bounds.price_search import priced_bounds
from placedsl.algorithms.operator_scheduling.bounds.priced_chain import Uses
from placedsl.algorithms.operator_scheduling.bounds.relaxation import relaxed_latency
from placedsl.algorithms.operator_scheduling.bounds.time_prices import time_uses
from placedsl.algorithms.operator_scheduling.decomposition.block_solving import BlockImprover
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Chain, chain_between, chain_of, refine
from placedsl.algorithms.operator_scheduling.decomposition.cuts import chosen_cuts, not_bypassed
from placedsl.algorithms.operator_scheduling.decomposition.shared_blocks import SharedBlocks
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, scheduling_instance
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence
from placedsl.problem.problem import Problem
from placedsl.tolerances import EQUAL_COSTS, IMPROVEMENT

#: Up to so many nodes times devices the linear program is solved, within so many seconds; of more than the first number
#: it takes these, and comes last beside prices of time, which say more.
_SOON, _MOST_SHARES, _SECONDS = 2_500, 12_000, 60.0
#: Up to so many nodes blocks are used; how often a block is refined for one pair of devices, before the linear program
#: and in total.
_MOST_NODES, _FIRST_ROUNDS, _ROUNDS = 40_000, 3, 9
#: A block of more nodes is rarely solved: then cuts with work beside them are tried as well, for blocks of at most so
#: many nodes, and of at most so many: small blocks count less of the work, and what they count is proven sooner.
_LARGE, _SMALL = 120, 40
#: A block with prices of memory counts so much for each node, where a refined one counts the square of its nodes: most
#: of the time is for prices until they are found, for where memory binds the blocks alone say little.
_PRICED = 0.25
#: The same for prices of time, as a share of the square of the nodes.
_TIMED = 0.01
#: Beside prices of time a step on a chain counts so many times if the bound of another one is higher.
_BEHIND = 16.0
#: What the blocks of a finer chain prove together takes so many additions at most.
_MOST_JOINED = 1_000_000
#: A block of more nodes is too large for the work of whole blocks to say something.
_WHOLE = 400


def proven_bounds(
    problem: Problem, *, upper: Callable[[], float], deadline: float | None, stop: Callable[[], bool]
) -> Iterator[float]:
    """Increasing bounds in seconds for a problem whose constraints the search supports; inf if it is infeasible."""
    for bound, _ in bounds_and_sequences(scheduling_instance(problem), upper=upper, deadline=deadline, stop=stop):
        yield bound


def bounds_and_sequences(
    instance: SchedulingInstance,
    *,
    upper: Callable[[], float] = lambda: np.inf,
    deadline: float | None = None,
    stop: Callable[[], bool] = lambda: False,
    seed: int = 0,
    exchange: Exchange = ALONE,
    turn: int = 0,
) -> Iterator[tuple[float, OperatorSequence | None]]:
    """The same for arrays, with sequences found on the way (they may exceed memory limits).

    ``deadline``: ``time.monotonic()``, None for none.  ``exchange``: the line to others who refine blocks; ``turn``: so
    many of them go before.  All but the first refine blocks and do nothing else.
    """
    if not instance.nodes:
        yield 0.0, None
        return
    best = float(earliest_end(instance).max())
    yield best, None

    def done() -> bool:
        late = deadline is not None and time.monotonic() >= deadline
        return best >= upper() * (1.0 - EQUAL_COSTS) or stop() or late

    chains: list[Chain] = []
    if not done():
        for chain in _chains(instance):
            chains.append(chain)
            best = max(best, chain.bound())
            yield best, None
    first = turn == 0
    priced = [(chain, uses, priced_bounds(chain, uses)) for chain in chains if first for uses in _uses(chain)]
    shares = instance.nodes * instance.devices
    late = shares > _SOON and any(uses.timed for _, uses, _ in priced)
    for last, rounds in enumerate((_ROUNDS if late else _FIRST_ROUNDS, _ROUNDS)):
        for bound, sequence in _in_turn(instance, chains, priced, upper, rounds, seed, exchange, turn):
            if bound > best or sequence is not None:
                best = max(best, bound)
                yield best, sequence
            if done():
                return
        if not last and first and not done() and shares <= _MOST_SHARES:
            for pairs in (False, True):
                left = _SECONDS if deadline is None else min(_SECONDS, deadline - time.monotonic())
                best = max(best, relaxed_latency(instance, max(left, 0.1), pairs=pairs))
                yield best, None


def _chains(instance: SchedulingInstance) -> Iterator[Chain]:
    """The chains whose blocks are refined in turn: that of the whole unless a block of it is far too large, two with
    smaller blocks and work beside them, and of the first of these one with those cuts alone that no tensor bypasses.
    """
    if instance.nodes > _MOST_NODES:
        return
    whole = chain_of(instance)
    if whole.largest() <= _WHOLE:
        yield whole
    if whole.largest() <= _LARGE:
        return
    known = [whole.nodes]
    for most, cuts in zip((_LARGE, _SMALL), chosen_cuts(instance, _LARGE, _SMALL), strict=True):
        if not any(np.array_equal(cuts, others) for others in known):
            known.append(cuts)
            finer = chain_between(instance, cuts, most)
            yield finer
            kept = not_bypassed(instance, cuts)
            if most == _LARGE and len(kept) < len(cuts) and len(cuts) * instance.devices**3 <= _MOST_JOINED:
                chain = chain_between(instance, kept, most)
                if chain.largest() <= max(_LARGE, finer.largest()):
                    chain.finer = finer
                    yield chain


def _uses(chain: Chain) -> Iterator[Uses]:
    """What the blocks of a chain share: memory, and time where work is beside them."""
    memory = memory_uses(chain)
    if memory is not None:
        yield memory
    yield from time_uses(chain)


@dataclass(eq=False)
class _Turns:
    """Steps on a chain, each with a bound, a sequence (None: none), and whether what there is to do waits for blocks to
    rise.

    ``weight``  what a step counts;  ``spent``  what has been counted;  ``refines``: it makes blocks rise;  ``bound``:
    the best so far;  ``seen``: what the finer chain had spent, and how often others had told of blocks, when its bounds
    were taken;  ``heard``: the latter at the last step
    """

    chain: Chain
    steps: Iterator[tuple[float, OperatorSequence | None, bool]]
    weight: float
    spent: float
    refines: bool
    bound: float = 0.0
    seen: tuple[float, int] = (-1.0, 0)
    heard: int = 0

    def take_from_finer(self, heard: int) -> None:
        """Take the bounds of the finer chain if its blocks have been refined, here or by others."""
        finer = self.chain.finer
        if finer is not None and self.seen != (finer.spent, heard):
            self.seen = finer.spent, heard
            self.chain.take_from_finer()


def _of_prices(chain: Chain, uses: Uses, bounds: Iterator[tuple[float, bool]]) -> _Turns:
    steps = ((bound, None, waits) for bound, waits in bounds)
    square = float(chain.largest() ** 2)
    if not uses.timed:
        return _Turns(chain, steps, _PRICED * chain.largest(), 0.0, False)
    # Time has prices once blocks have bounds of their own.
    different = len({id(block.lower_bound) for block in chain.blocks if len(block.nodes) > 2})
    return _Turns(chain, steps, _TIMED * square, different * square, False)


def _in_turn(
    instance: SchedulingInstance, chains: list[Chain], priced: list[tuple[Chain, Uses, Iterator[tuple[float, bool]]]],
    upper: Callable[[], float], rounds: int, seed: int, exchange: Exchange, turn: int,
) -> Iterator[tuple[float, OperatorSequence | None]]:  # fmt: skip
    """Refine chains, or price what their blocks share, one step of one of them at a time: a block that is refined for
    the first time counts as the square of the largest.
    """
    turns = [_of_prices(*one) for one in priced]
    timed = any(uses.timed for _, uses, _ in priced)
    shared = SharedBlocks(chains, exchange, takes_work=turn > 0)
    for chain in chains:
        improver = BlockImprover(instance, seed + turn, schedules=chain.whole, placements=not chain.whole)
        refined = refine(chain, shared.watched(improver), upper, rounds, shared.taken, turn)
        steps = ((bound, sequence, False) for bound, sequence in refined)
        turns.append(_Turns(chain, steps, float(chain.largest() ** 2), 0.0, True))
    while turns:
        shared.exchange()
        one = min(turns, key=lambda turn: turn.spent)
        one.take_from_finer(shared.heard)
        before = one.chain.spent
        step = next(one.steps, None)
        # Prices wait for the bounds of blocks to rise, as long as some are refined.
        refining = [turn.spent for turn in turns if turn.refines]
        idle = one.heard == shared.heard
        one.heard = shared.heard
        if step is None or (step[2] and not refining and idle):
            turns.remove(one)
            continue
        if step[2] and refining:
            one.spent = max(one.spent, min(refining))
        # Beside prices of time a block counts as the work that it takes: what refining gains the second time is little.
        count = one.weight * (one.chain.spent - before if one.refines and timed else 1.0)
        one.bound = max(one.bound, step[0])
        of_chain = max(turn.bound for turn in turns if turn.chain is one.chain)
        behind = timed and of_chain < max(turn.bound for turn in turns) * (1.0 - IMPROVEMENT)
        one.spent += _BEHIND * count if behind else count
        yield step[:2]
