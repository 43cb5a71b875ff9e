"""Blocks with work beside them: each is searched on its own, and what is better than the part of a schedule that it
stands for takes its place.

The block keeps its beginning and its end, and the sequence in between is that of the better schedule; what is beside it
keeps its place in time, stretched with the block.

Devices of cuts move together, and so does what comes after one cut and is beside the blocks: with another device for
this cut alone, all that reads from it would have to cross.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from placedsl.algorithms.operator_scheduling.decomposition.block_solving import BlockImprover
from placedsl.algorithms.operator_scheduling.decomposition.blocks import (
    Block,
    Chain,
    absorb,
    chain_between,
    tensors_among,
)
from placedsl.algorithms.operator_scheduling.decomposition.cuts import beside_blocks, chosen_cuts, not_bypassed
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, integers
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, Times, schedule_of, sequence_of
from placedsl.algorithms.operator_scheduling.search.initial_orders import is_feasible
from placedsl.algorithms.operator_scheduling.search.repeated_layers import in_order
from placedsl.algorithms.operator_scheduling.search.schedule_search import PART_HOT, ScheduleSearch, anneal_part
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.tolerances import IMPROVEMENT

#: Blocks have at most so many nodes as far as possible, and at least so many are worth a search of their own.
_MOST, _LEAST = 120, 8
#: Chains of fewer blocks are not worth it.
_FEWEST = 3
#: How often devices of cuts are moved in one round, how many blocks are refined again, and the share of the latency
#: that is worth it.
_MOVES, _REFINED, _LEAST_GAIN = 8, 2, 2e-4
#: How often annealing of a block begins from list schedules.
_RESTARTS = 6
#: Nodes beside the blocks move together if they are at least this share of all work.
_LEAST_BESIDE = 0.005
#: What has not been searched for two devices may take such a share of its list schedules.
_HOPED = 0.5


class _Changed(NamedTuple):
    """A block, its place in the chain, and the devices of its ends, which it does not have in the best sequence."""

    place: int
    block: Block
    a: int
    b: int


class BlocksBeside:
    """Blocks with work beside them in the best sequence.

    ``tried``: the latency with which a block has been put in for two devices in this round;  ``more``: seconds that a
    block takes longer for two devices than alone, as far as other devices of the cuts have been tried in this round;
    ``searched``: flags of blocks and devices for which a block of its structure has been searched
    """

    def __init__(self, search: ScheduleSearch, chain: Chain, *, prove: bool = True) -> None:
        self._search, self._chain = search, chain
        seed = int(search.rng.integers(2**31))
        self._improver = BlockImprover(search.instance, seed, prove=prove, placements=True, restarts=_RESTARTS)
        self._blocks = [block for block in chain.blocks if _LEAST <= len(block.nodes) <= _MOST]
        self._rounds = 0
        self._tried: dict[tuple[int, int, int], float] = {}
        devices = search.instance.devices
        self._more = np.zeros((len(chain.blocks), devices, devices))
        self._searched = np.zeros((len(chain.blocks), devices, devices), dtype=bool)
        self._beside = _beside(chain)

    def run(self) -> Iterator[bool]:
        """One round: refine all blocks once, try other devices for what is beside them and for the cuts, then, but for
        the first round, refine some that may gain most again; those that are shorter than what they stand for go into
        the best sequence.
        """
        assert self._search.best is not None
        absorb(self._chain, self._search.best)
        self._tried.clear()
        self._more[:] = 0.0
        moves, again = _MOVES, min(self._rounds, _REFINED)
        self._rounds += 1
        groups = []
        if self._rounds & (self._rounds - 1) == 0:  # what has failed fails again mostly: in rounds 1, 2, 4, 8 ...
            groups = [(*group, d) for group in self._beside for d in range(self._search.instance.devices)]
        while True:
            yield self._insert_shorter()
            one = self._open()
            if one is not None and one[0] == 0:
                self._improve(*one[1:])
            elif groups:
                yield self._move_beside(*groups.pop(0))
            elif moves:
                moves -= 1
                better = self._move_cuts()
                moves = moves if better is not None else 0
                yield bool(better)
            elif one is not None and again:
                again -= 1
                self._improve(*one[1:])
            else:
                return

    def _open(self) -> tuple[int, Block, int, int] | None:
        """Of the blocks that have been refined the least often that with the most to gain: how often, and its ends."""
        latency, times = self._schedule()
        found = []
        for i, block in enumerate(self._blocks):
            a, b = self._ends(block)
            begin, end = _span(block, latency, times)
            gain = end - begin - float(block.lower_bound[a, b])
            if not block.final[a, b] and gain > _LEAST_GAIN * latency:
                found.append((int(block.effort[a, b]), -gain, i, a, b))
        if not found:
            return None
        effort, _, i, a, b = min(found)
        return effort, self._blocks[i], a, b

    def _improve(self, block: Block, a: int, b: int) -> None:
        self._improver(block, a, b, self._search.value)
        block.effort[a, b] += 1
        block.spread(self._chain.alike, a, b)

    def _insert_shorter(self) -> bool:
        """Put in the blocks that are shorter than what they stand for."""
        before = self._search.value
        for i, block in enumerate(self._blocks):
            a, b = self._ends(block)
            self._improver.take_alike(block, a, b)
            latency, times = self._schedule()
            begin, end = _span(block, latency, times)
            most = min(end - begin, self._tried.get((i, a, b), np.inf))
            if block.latency[a, b] < most * (1.0 - IMPROVEMENT):
                self._tried[i, a, b] = float(block.latency[a, b])
                assert self._search.best is not None
                self._put(self._search.best.device, [block], latency, times)
        return self._search.value < before

    def _move_beside(self, cut: int, nodes: Integers, device: int) -> bool:
        """Put nodes that come after a cut (-1: none) and are beside the blocks on a device, with the cut; those that do
        not run there stay where they are.
        """
        instance, (latency, times) = self._search.instance, self._schedule()
        assert self._search.best is not None
        moved = nodes[np.isfinite(instance.time[nodes, device])]
        if instance.sequential and instance.time[moved, device].sum() >= latency:
            return False
        allowed = np.ones((len(self._chain.nodes), instance.devices), dtype=np.bool_)
        if cut >= 0:
            allowed[cut] = np.arange(instance.devices) == device
        promising = self._promising(latency, times, allowed, -np.inf)
        if promising is None:
            return False
        _, path, changed = promising
        target = self._with_cuts(path)
        target[moved] = device
        if (target == self._search.best.device).all():
            return False
        return self._put(target, [one.block for one in changed], latency, times) < latency

    def _move_cuts(self) -> bool | None:
        """Put cuts on the devices that promise most; None if none promises anything."""
        latency, times = self._schedule()
        promising = self._promising(latency, times, None, _LEAST_GAIN * latency)
        if promising is None:
            return None
        gain, path, changed = promising
        value = self._put(self._with_cuts(path), [one.block for one in changed], latency, times)
        for i, _, a, b in changed:
            self._more[i, a, b] += (max(value - latency, 0.0) + gain) / len(changed)
        return value < latency

    def _with_cuts(self, path: Integers) -> Integers:
        """The best sequence's devices of all nodes, with the cuts on others."""
        assert self._search.best is not None
        device = self._search.best.device.copy()
        device[self._chain.nodes] = path
        return device

    def _promising(
        self, latency: float, times: Times, allowed: Booleans | None, least: float
    ) -> tuple[float, Integers, list[_Changed]] | None:
        """How many seconds devices for the cuts promise to gain, those that promise most of the ones ``allowed`` (cuts
        x D; None: all), and the blocks that change, each of them searched; None if it is no more than ``least``.
        """
        while True:
            gain, path = self._shorter_path(latency, times, allowed)
            if gain <= least:
                return None
            device = self._with_cuts(path)
            changed = [
                _Changed(i, block, *block.ends(device))
                for i, block in enumerate(self._chain.blocks)
                if block.ends(device) != self._ends(block)
            ]
            new = [one for one in changed if not self._searched[one.place, one.a, one.b]]
            if not new:
                return gain, path, changed
            for i, block, a, b in new:
                alone = float(block.latency[a, b])
                self._improver.take_alike(block, a, b)
                if block.latency[a, b] == alone and not block.effort[a, b] and not block.final[a, b]:
                    self._improve(block, a, b)
                self._searched[i, a, b] = True

    def _shorter_path(
        self, latency: float, times: Times, allowed: Booleans | None
    ) -> tuple[float, Integers]:  # fmt: skip
        """How many seconds the most promising devices for the cuts promise (-inf: none are possible), and these:
        a block costs what it takes in the schedule for the devices of its ends there, and for others what it takes
        alone, and ``more``.
        """
        assert self._search.best is not None
        device, nodes = self._search.best.device, self._chain.nodes
        costs: dict[int, Floats] = {}
        now = float(self._search.instance.time[nodes, device[nodes]].sum())
        for i, block in enumerate(self._chain.blocks):
            cost = np.where(self._searched[i] | block.final, block.latency, _HOPED * block.latency) + self._more[i]
            begin, end = _span(block, latency, times)
            cost[self._ends(block)] = end - begin
            now += end - begin
            costs[id(block)] = cost
        value, path = self._chain.shortest(lambda block: costs[id(block)], allowed)
        return now - value, integers(np.array(path, dtype=np.int64))

    def _put(self, device: Integers, blocks: list[Block], latency: float, times: Times) -> float:
        """Put in these blocks, with the other nodes on these devices (n); where that is no gain by itself, with
        annealing around what has changed; returns the latency.
        """
        search = self._search
        assert search.best is not None
        found = _inserted(self._chain, device, blocks, latency, times)
        if not is_feasible(search.instance, found.device):
            return np.inf
        if search.take(found):
            return search.value
        around = [block.nodes for block in blocks] or [np.flatnonzero(found.device != search.best.device)]
        place = np.argsort(found.order)[np.concatenate(around)]
        return anneal_part(
            search, found, range(int(place.min()), int(place.max()) + 1), float(search.rng.choice(PART_HOT))
        )

    def _schedule(self) -> tuple[float, Times]:
        assert self._search.best is not None
        return schedule_of(self._search.instance, self._search.best)

    def _ends(self, block: Block) -> tuple[int, int]:
        assert self._search.best is not None
        return block.ends(self._search.best.device)


def chain_with_work_beside(instance: SchedulingInstance) -> Chain | None:
    """The blocks between cuts that no tensor bypasses, though there may be work beside them; None if there are few."""
    cuts = not_bypassed(instance, chosen_cuts(instance, _MOST)[0])
    if len(cuts) < _FEWEST:
        return None
    chain = chain_between(instance, cuts, _MOST)
    return chain if any(_LEAST <= len(block.nodes) <= _MOST for block in chain.blocks) else None


def _span(block: Block, latency: float, times: Times) -> tuple[float, float]:
    """When a block begins and ends in a schedule, in seconds."""
    return (
        float(times.ended[block.before]) if block.before >= 0 else 0.0,
        float(times.begun[block.after]) if block.after >= 0 else latency,
    )


def _beside(chain: Chain) -> list[tuple[int, Integers]]:
    """The nodes beside the blocks that come after the same cut, and its place (-1: after none), if they are many."""
    instance = chain.instance
    beside, last, _ = beside_blocks(instance, chain.nodes)
    work = np.where(np.isfinite(instance.time), instance.time, np.inf).min(axis=1)
    groups = [(cut, integers(np.flatnonzero(beside & (last == cut)))) for cut in np.unique(last[beside]).tolist()]
    return [(cut, nodes) for cut, nodes in groups if work[nodes].sum() >= _LEAST_BESIDE * work.sum()]


def _inserted(
    chain: Chain, device: Integers, which: Sequence[Block], latency: float, times: Times
) -> OperatorSequence:  # fmt: skip
    """The sequence of these times, in a schedule of this latency, with the nodes on these devices (n), and some blocks'
    own sequences for these.
    """
    instance = chain.instance
    device, begun, sent = device.copy(), times.begun.copy(), times.sent.copy()
    for block in which:
        sequence, inner = block.sequences[block.ends(device)]
        own, within = schedule_of(inner, sequence)
        begin, end = _span(block, latency, times)
        stretch = (end - begin) / own if own > 0.0 else 1.0
        middle = (block.nodes != block.before) & (block.nodes != block.after)
        device[block.nodes] = sequence.device
        begun[block.nodes[middle]] = begin + stretch * within.begun[middle]
        tensors = tensors_among(instance, block.nodes)
        inside = np.isfinite(within.sent)
        sent[tensors] = np.where(inside, begin + stretch * np.where(inside, within.sent, 0.0), sent[tensors])
    return sequence_of(instance, device, in_order(instance, begun), sent)
