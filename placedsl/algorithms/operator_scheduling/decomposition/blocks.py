"""Blocks between nodes that are comparable with all others: each is an instance of its own.

All nodes between two nodes of a chain start after the first has ended and end before the second starts.  So no schedule
is shorter than the sum over the chain of the times of its nodes and the lower bounds of the blocks between them, for
the best devices of the chain's nodes: a shortest path over pairs of devices.  If every node is in the chain or in a
block, the schedules of the blocks one after the other are a schedule of the whole; it takes that sum if no tensor
bypasses a node of the chain, and it is feasible if no memory limit is binding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import earliest_end
from placedsl.algorithms.operator_scheduling.bounds.work import work_bound
from placedsl.algorithms.operator_scheduling.decomposition.cuts import chosen_cuts, exact_cuts
from placedsl.algorithms.operator_scheduling.decomposition.cuts_kernel import places_along
from placedsl.algorithms.operator_scheduling.decomposition.symmetry import alike_devices, renamed, renamings
from placedsl.algorithms.operator_scheduling.instance import SchedulingInstance, floats, integers, options
from placedsl.algorithms.operator_scheduling.list_scheduling import heft
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, schedule_of, sequence_of
from placedsl.algorithms.operator_scheduling.subproblem import subproblem
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.tolerances import EQUAL_COSTS, IMPROVEMENT

#: Blocks of more nodes have bounds by their work: one for each pair of devices if there are at most so many devices,
#: else one for all pairs.
_BY_WORK, _FEW = 120, 6
#: What it takes to refine a block for the second time, in terms of the first; four times as much each further time.
_AGAIN = 40.0


@dataclass(eq=False)
class Block:
    """The nodes between two nodes of the chain, ``before`` and ``after`` (-1: before the first, after the last).

    ``nodes``        in topological order, with ``before`` and ``after`` where they exist
    ``lower_bound``  D x D seconds: proven for each pair of devices of the two ends
    ``latency``      D x D seconds: that of the best schedule in ``sequences`` (inf: none)
    ``final``        D x D flags: no further work improves the pair; ``effort``: how often it has been refined

    Blocks that are equal but for the numbers of their nodes, as repeated layers are, share all of these but the first
    three.
    """

    before: int
    after: int
    nodes: Integers
    lower_bound: Floats
    latency: Floats
    final: np.ndarray
    effort: Integers
    sequences: dict[tuple[int, int], tuple[OperatorSequence, SchedulingInstance]] = field(default_factory=dict)
    _inner: SchedulingInstance | None = None

    def gap(self, a: int, b: int) -> float:
        """The gap between the best latency and the lower bound of a pair of devices."""
        return (
            float(self.latency[a, b] - self.lower_bound[a, b])
            if self.latency[a, b] < np.inf
            else float(self.lower_bound[a, b])
        )

    def ends(self, device: Integers) -> tuple[int, int]:
        """The devices of the two ends (0 for an end that is not there), by those of all nodes."""
        return (
            int(device[self.before]) if self.before >= 0 else 0,
            int(device[self.after]) if self.after >= 0 else 0,
        )

    def with_fixed_ends(self, instance: SchedulingInstance, a: int, b: int) -> SchedulingInstance:
        """The instance of the block with its ends on devices a and b, where they take no time."""
        time = instance.time[self.nodes].copy()
        for place, node, device in ((0, self.before, a), (-1, self.after, b)):
            if node >= 0:
                time[place] = np.inf
                time[place, device] = 0.0
        return self.with_times(instance, time)

    def with_times(self, instance: SchedulingInstance, time: Floats) -> SchedulingInstance:
        """The instance of the block with these running times (nodes of the block x D seconds)."""
        if self._inner is None:
            self._inner = subproblem(instance, self.nodes, time)
        return self._inner._replace(time=floats(time))

    def spread(self, alike: Integers, a: int, b: int) -> None:
        """What is known for a pair of devices holds for all pairs like it."""
        for new in renamings(alike, a, b, (self.before >= 0, self.after >= 0)):
            x, y = int(new[a]) if self.before >= 0 else a, int(new[b]) if self.after >= 0 else b
            for known in (self.lower_bound, self.latency, self.final, self.effort):
                known[x, y] = known[a, b]
            if (a, b) in self.sequences:
                sequence, inner = self.sequences[a, b]
                time = np.empty_like(inner.time)
                time[:, new] = inner.time
                self.sequences[x, y] = (renamed(sequence, new), inner._replace(time=time))


#: See :func:`refine`.
Improve = Callable[[Block, int, int, float], None]
Taken = Callable[[Block, int, int], bool]


@dataclass(eq=False)
class Chain:
    """Nodes of a path and the blocks around them, one more than nodes; ``whole``: no node is left out; ``alike``: D,
    the least of the devices that may change places; ``also``: devices of the
    nodes that bounds with prices rest on; ``finer``: a chain with these nodes and others; ``spent``: the work of
    refining, in blocks that are asked for the first time.
    """

    instance: SchedulingInstance
    nodes: Integers
    blocks: list[Block]
    whole: bool
    alike: Integers
    also: dict[object, list[list[int]]] = field(default_factory=dict)
    finer: Chain | None = None
    spent: float = 0.0

    def shortest(
        self, of: Callable[[Block], Floats], allowed: Booleans | None = None
    ) -> tuple[float, list[int]]:  # fmt: skip
        """The least total over the devices of the chain's nodes, and these devices; ``of``: the D x D costs of a
        block; ``allowed``: nodes x D flags, None for all devices.
        """
        reach = of(self.blocks[0])[0].copy()
        came: list[Integers] = []
        time = self.instance.time[self.nodes]
        if allowed is not None:
            time = np.where(allowed, time, np.inf)
        for here, block in zip(time, self.blocks[1:], strict=True):
            step = (reach + here)[:, None] + of(block)
            came.append(step.argmin(axis=0))
            reach = step.min(axis=0)
        best = int(reach.argmin())
        path, d = [], best
        for earlier in reversed(came):
            d = int(earlier[d])
            path.append(d)
        return float(reach[best]), path[::-1]

    def take_from_finer(self) -> None:
        """Raise lower bounds to what the blocks of the finer chain prove between the ends of each block."""
        if self.finer is None:
            return
        place = {v: k for k, v in enumerate(self.finer.nodes.tolist())}
        ends = [-1, *(place[v] for v in self.nodes.tolist()), len(self.finer.nodes)]
        for block, first, last in zip(self.blocks, ends, ends[1:], strict=False):
            reach = self.finer.blocks[first + 1].lower_bound
            for k in range(first + 1, last):
                reach = reach + self.instance.time[self.finer.nodes[k]]
                reach = (reach[:, :, None] + self.finer.blocks[k + 1].lower_bound[None]).min(axis=1)
            np.maximum(block.lower_bound, reach, out=block.lower_bound)

    def largest(self) -> int:
        """The number of nodes of the largest block."""
        return max(len(block.nodes) for block in self.blocks)

    def bound(self) -> float:
        """The lower bound on the latency that the blocks prove."""
        return self.shortest(lambda block: block.lower_bound)[0]


def chain_of(instance: SchedulingInstance, most: int | None = None) -> Chain:
    """The chain of nodes that are comparable with all others.

    With ``most``: a chain of nodes such that blocks have at most so many nodes as far as possible, and little work lies
    beside.
    """
    return chain_between(instance, exact_cuts(instance) if most is None else chosen_cuts(instance, most)[0], most)


def chain_between(instance: SchedulingInstance, cuts: Integers, most: int | None = None) -> Chain:
    """The chain of these nodes, each of which comes after those before it; blocks of more than ``most`` nodes have no
    list schedules at first.
    """
    devices = instance.devices
    alike = alike_devices(instance)
    able = options(instance)
    blocks: list[Block] = []
    equal: dict[tuple[object, ...], Block] = {}
    for before, after, inside in _between(instance, cuts):
        block = Block(
            before,
            after,
            inside,
            np.zeros((devices, devices)),
            np.full((devices, devices), np.inf),
            np.zeros((devices, devices), dtype=bool),
            np.zeros((devices, devices), dtype=np.int64),
        )
        free = _with_free_ends(instance, block, able)
        known = equal.setdefault(_contents(block, free), block)
        if known is block:
            _initial_bounds(instance, block, alike, able, list_schedules=most is None or len(block.nodes) <= most)
            if len(block.nodes) > _BY_WORK and instance.devices > _FEW:
                np.maximum(block.lower_bound, work_bound(free), out=block.lower_bound)
        else:
            block.lower_bound, block.latency, block.final = known.lower_bound, known.latency, known.final
            block.effort, block.sequences = known.effort, known.sequences
        blocks.append(block)
    covered = sum(len(b.nodes) - (b.before >= 0) - (b.after >= 0) for b in blocks) + len(cuts)
    return Chain(instance, cuts, blocks, covered == instance.nodes, alike)


def _between(instance: SchedulingInstance, cuts: Integers) -> Iterator[tuple[int, int, Integers]]:
    """The cuts before and after each block (-1: none), and its nodes with these, in topological order."""
    last, first = places_along(instance, cuts)
    block = np.where(first == last + 1, first, -1)[instance.topological]
    order = np.argsort(block, kind="stable")
    inside = np.split(instance.topological[order], np.searchsorted(block[order], np.arange(len(cuts) + 1)))[1:]
    ends = [-1, *cuts.tolist(), -1]
    for before, after, nodes in zip(ends, ends[1:], inside, strict=False):
        all_of_it = np.concatenate([[before], nodes, [after]])
        yield before, after, integers(all_of_it[all_of_it >= 0])


def _with_free_ends(instance: SchedulingInstance, block: Block, able: Booleans) -> SchedulingInstance:
    """The instance of a block with its ends on any device, where they take no time."""
    time = instance.time[block.nodes].copy()
    for place, node in ((0, block.before), (-1, block.after)):
        if node >= 0:
            time[place] = np.where(able[node], 0.0, np.inf)
    return block.with_times(instance, time)


def _contents(block: Block, inner: SchedulingInstance) -> tuple[object, ...]:
    """What two blocks have in common if they are equal but for the numbers of their nodes."""
    arrays = (inner.time, inner.producer, inner.reader_start, inner.reader, inner.unit, inner.size, inner.given)
    return (block.before >= 0, block.after >= 0, *(array.tobytes() for array in arrays))


def keep_if_better(block: Block, a: int, b: int, sequence: OperatorSequence | None, inner: SchedulingInstance) -> None:
    """Keep a sequence of a block if it is better; None is ignored."""
    if sequence is None:
        return
    latency, _ = schedule_of(inner, sequence)
    if latency < block.latency[a, b]:
        block.latency[a, b] = latency
        block.sequences[a, b] = (sequence, inner)
        block.final[a, b] |= latency <= block.lower_bound[a, b] * (1.0 + IMPROVEMENT)


def _initial_bounds(
    instance: SchedulingInstance, block: Block, alike: Integers, able: Booleans, *, list_schedules: bool
) -> None:
    """Bound a block by its longest path, and find list schedules; pairs of devices that are impossible are final."""
    done = np.zeros((instance.devices, instance.devices), dtype=bool)
    for a in range(instance.devices):
        for b in range(instance.devices):
            if done[a, b]:
                continue
            if (block.before < 0 and a > 0) or (block.after < 0 and b > 0):  # an end that is not there has one device
                block.lower_bound[a, b] = np.inf
                block.final[a, b] = True
                continue
            if (block.before >= 0 and not able[block.before, a]) or (block.after >= 0 and not able[block.after, b]):
                block.lower_bound[a, b] = np.inf
                block.final[a, b] = True
                continue
            inner = block.with_fixed_ends(instance, a, b)
            block.lower_bound[a, b] = float(earliest_end(inner).max(initial=0.0))
            if len(block.nodes) > _BY_WORK and instance.devices <= _FEW:
                block.lower_bound[a, b] = max(block.lower_bound[a, b], work_bound(inner))
            if list_schedules:
                keep_if_better(block, a, b, heft.best(inner, inner.memory_limit)[1], inner)
            for new in renamings(alike, a, b, (block.before >= 0, block.after >= 0)):
                done[new[a] if block.before >= 0 else a, new[b] if block.after >= 0 else b] = True
            block.spread(alike, a, b)


def refine(
    chain: Chain,
    improve: Improve,
    upper: Callable[[], float],
    most: int,
    taken: Taken = lambda *_: False,
    turn: int = 0,
) -> Iterator[tuple[float, OperatorSequence | None]]:
    """Increasing bounds, and sequences if the chain is ``whole``, until the two meet or nothing is left to improve.

    ``improve(block, a, b, needed)`` works on one block for one pair of devices: it raises ``lower_bound``, lowers
    ``latency`` or sets ``final``; a block that takes ``needed`` seconds or longer cannot be part of a schedule below
    ``upper()``.  ``most``: how often a block is refined for one pair.  ``taken(block, a, b)``: others refine it
    meanwhile, so that it comes last; ``turn``: so many others begin with the blocks that say most.
    """
    shown = reached = np.inf
    while True:
        bound, path = chain.shortest(lambda block: block.lower_bound)
        sequence = None
        if chain.whole:
            value, best = chain.shortest(lambda block: block.latency)
            if value < shown * (1.0 - IMPROVEMENT):
                shown, sequence = value, assemble(chain, best)
                reached = min(reached, schedule_of(chain.instance, sequence)[0])
        yield bound, sequence
        least = min(upper(), reached)
        if bound >= least * (1.0 - EQUAL_COSTS):
            return
        paths = [path, *([best] if chain.whole else []), *(way for ways in chain.also.values() for way in ways)]
        open_ones = {
            (taken(block, a, b), int(block.effort[a, b]), -block.gap(a, b), i, a, b)
            for way in paths
            for i, (block, a, b) in enumerate(zip(chain.blocks, [0, *way], [*way, 0], strict=True))
            if not block.final[a, b] and block.effort[a, b] < most
        }
        if not open_ones:
            return
        *_, i, a, b = sorted(open_ones)[min(turn, len(open_ones) - 1)] if turn else min(open_ones)
        block = chain.blocks[i]
        effort = int(block.effort[a, b])
        chain.spent += _AGAIN * 4.0 ** (effort - 1) if effort else 1.0
        improve(block, a, b, _needed(chain, i, a, b, least))
        block.effort[a, b] += 1
        block.spread(chain.alike, a, b)


def _needed(chain: Chain, i: int, a: int, b: int, upper: float) -> float:
    """How long a block may take for two devices of its ends if the whole is to stay below ``upper`` seconds."""
    instance, blocks, nodes = chain.instance, chain.blocks, chain.nodes.tolist()
    reach = blocks[0].lower_bound[0].copy()
    before = 0.0
    for k in range(1, i + 1):
        if k == i:
            before = float(reach[a] + instance.time[nodes[k - 1], a])
            break
        reach = ((reach + instance.time[nodes[k - 1]])[:, None] + blocks[k].lower_bound).min(axis=0)
    reach = blocks[-1].lower_bound[:, 0].copy()
    after = 0.0
    for k in range(len(blocks) - 2, i - 1, -1):
        if k == i:
            after = float(reach[b] + instance.time[nodes[k], b])
            break
        reach = (blocks[k].lower_bound + (instance.time[nodes[k]] + reach)[None, :]).min(axis=1)
    return upper - before - after


def absorb(chain: Chain, sequence: OperatorSequence) -> None:
    """Keep the parts of a sequence of the whole that are better than the sequences of the blocks."""
    _, times = schedule_of(chain.instance, sequence)
    for block in chain.blocks:
        a, b = block.ends(sequence.device)
        inner = block.sequences[a, b][1] if (a, b) in block.sequences else block.with_fixed_ends(chain.instance, a, b)
        sent = times.sent[tensors_among(chain.instance, block.nodes)]
        keep_if_better(
            block, a, b, sequence_of(inner, sequence.device[block.nodes], times.begun[block.nodes], sent), inner
        )
        block.spread(chain.alike, a, b)


def assemble(chain: Chain, path: list[int]) -> OperatorSequence:
    """The sequences of the blocks one after the other, for these devices of the chain's nodes."""
    instance = chain.instance
    device = np.zeros(instance.nodes, dtype=np.int64)
    begun = np.zeros(instance.nodes)
    sent = np.full((len(instance.producer), instance.devices), np.inf)
    now = 0.0
    for block, a, b in zip(chain.blocks, [0, *path], [*path, 0], strict=True):
        sequence, inner = block.sequences[a, b]
        latency, times = schedule_of(inner, sequence)
        device[block.nodes] = sequence.device
        inner_nodes = block.nodes != block.before
        begun[block.nodes[inner_nodes]] = (times.begun + now)[inner_nodes]
        tensor = tensors_among(instance, block.nodes)
        found = np.isfinite(times.sent)
        sent[tensor] = np.where(found, times.sent + now, sent[tensor])
        now += latency
        if block.after >= 0:
            begun[block.after] = now
            device[block.after] = b
            now += float(instance.time[block.after, b])
    return sequence_of(instance, device, begun, sent)


def tensors_among(instance: SchedulingInstance, nodes: Integers) -> Integers:
    """The tensors of a subproblem, as :func:`placedsl.algorithms.operator_scheduling.subproblem.subproblem` numbers
    them.
    """
    inside = np.zeros(instance.nodes, dtype=bool)
    inside[nodes] = True
    tensor = np.repeat(np.arange(len(instance.producer)), np.diff(instance.reader_start))
    return np.unique(tensor[inside[instance.producer[tensor]] & inside[instance.reader]])
