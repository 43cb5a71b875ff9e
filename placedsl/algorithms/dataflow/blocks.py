"""Blocks between nodes that all others come before or after: each is a problem of its own.

Everything between two nodes of a chain begins after the first has ended and ends before the second begins.  So no
schedule
is shorter than the sum over the chain of what the nodes take and what the blocks between them take at least, for
the best
devices of the chain's nodes: a shortest path over pairs of devices.  Where the chain's nodes are before or after
*every*
other node, the schedules of the blocks one after the other are a schedule of the whole; it takes that sum where no
tensor
goes past a node of the chain, and it is feasible where no memory limit binds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.dataflow import heft
from placedsl.algorithms.dataflow.arrays import Flow, options
from placedsl.algorithms.dataflow.cuts import chosen_cuts
from placedsl.algorithms.dataflow.kernel import Order, order_of, schedule
from placedsl.algorithms.dataflow.parts import part
from placedsl.algorithms.dataflow.relaxed_kernel import heads, reaches
from placedsl.graph.graph import Floats, Integers

#: Nodes of a chain are looked for among so many, those with the fewest tensors around them.
_MOST_CANDIDATES = 3000


@dataclass(eq=False)
class Block:
    """What lies between two nodes of the chain (-1: before the first, after the last).

    ``nodes`` in topological order, with ``before`` and ``after`` where there are such.  ``least`` D x D: proven to
              take so
    long for each pair of devices of the two; ``order`` and ``takes``: schedules and their latencies; ``final``:
    nothing is
    to be gained; ``effort``: what has been spent.
    """

    before: int
    after: int
    nodes: Integers
    least: Floats
    takes: Floats
    final: np.ndarray
    effort: Integers
    orders: dict[tuple[int, int], tuple[Order, Flow]] = field(default_factory=dict)

    def gap(self, a: int, b: int) -> float:
        """What is between what a block is known to take at least and at most."""
        return float(self.takes[a, b] - self.least[a, b]) if self.takes[a, b] < np.inf else float(self.least[a, b])

    def flow(self, flow: Flow, a: int, b: int) -> Flow:
        """The problem of the block where its ends are on a and b and take no time."""
        time = flow.time[self.nodes].copy()
        for place, node, device in ((0, self.before, a), (-1, self.after, b)):
            if node >= 0:
                time[place] = np.inf
                time[place, device] = 0.0
        return part(flow, self.nodes, time)


#: See :func:`refined`.
Improve = Callable[[Block, int, int, float], None]


@dataclass(eq=False)
class Chain:
    """Nodes of a path and the blocks around them, one more than nodes; ``whole``: no node is left out."""

    flow: Flow
    nodes: Integers
    blocks: list[Block]
    whole: bool

    def shortest(self, of: Callable[[Block], Floats]) -> tuple[float, list[int]]:
        """The least sum over devices of the chain's nodes, and these devices; ``of``: what to add up of a block."""
        reach = of(self.blocks[0])[0].copy()
        came: list[Integers] = []
        for v, block in zip(self.nodes.tolist(), self.blocks[1:], strict=True):
            step = (reach + self.flow.time[v])[:, None] + of(block)
            came.append(step.argmin(axis=0))
            reach = step.min(axis=0)
        best = int(reach.argmin())
        path, d = [], best
        for earlier in reversed(came):
            d = int(earlier[d])
            path.append(d)
        return float(reach[best]), path[::-1]

    def largest(self) -> int:
        """How many nodes the largest block has."""
        return max(len(block.nodes) for block in self.blocks)

    def bound(self) -> float:
        """What no schedule is shorter than."""
        return self.shortest(lambda block: block.least)[0]


def chain_of(flow: Flow, most: int | None = None) -> Chain:
    """A chain for the problem, of nodes beside which nothing lies; with ``most`` of nodes such that blocks have so many
    nodes at most as far as possible, and little work lies beside."""
    nodes = _beside_nothing(flow) if most is None else chosen_cuts(flow, most).tolist()
    chosen = [(v, reaches(flow, v, True), reaches(flow, v, False)) for v in nodes]
    devices = flow.devices
    everything = np.ones(flow.nodes, dtype=bool)
    blocks = []
    for left, right in zip([None, *chosen], [*chosen, None], strict=True):
        inside = (everything if left is None else left[1]) & (everything if right is None else right[2])
        inside = inside.copy()
        ends = [end[0] for end in (left, right) if end is not None]
        inside[ends] = True
        blocks.append(
            Block(
                -1 if left is None else left[0],
                -1 if right is None else right[0],
                flow.topological[inside[flow.topological]],
                np.zeros((devices, devices)),
                np.full((devices, devices), np.inf),
                np.zeros((devices, devices), dtype=bool),
                np.zeros((devices, devices), dtype=np.int64),
            )
        )
    for block in blocks:
        _first_bounds(flow, block, list_schedules=most is None or len(block.nodes) <= most)
    covered = sum(len(b.nodes) - (b.before >= 0) - (b.after >= 0) for b in blocks) + len(chosen)
    return Chain(flow, np.array(nodes, dtype=np.int64), blocks, covered == flow.nodes)


def _beside_nothing(flow: Flow) -> list[int]:
    """The nodes that all others come before or after."""
    out = []
    for v in _candidates(flow):
        connected = reaches(flow, v, True) | reaches(flow, v, False)
        connected[v] = True
        if connected.all():
            out.append(v)
    return out


def _candidates(flow: Flow) -> list[int]:
    """Nodes in topological order, those with fewest tensors alive around them."""
    place = np.empty(flow.nodes, dtype=np.int64)
    place[flow.topological] = np.arange(flow.nodes)
    tensor = np.repeat(np.arange(len(flow.producer)), np.diff(flow.reader_start))
    change = np.zeros(flow.nodes + 1, dtype=np.int64)
    last = np.zeros(len(flow.producer), dtype=np.int64)
    np.maximum.at(last, tensor, place[flow.reader])
    np.add.at(change, place[flow.producer] + 1, 1)
    np.add.at(change, last, -1)
    alive = np.cumsum(change)[: flow.nodes]
    few = np.sort(np.argsort(alive, kind="stable")[:_MOST_CANDIDATES])
    return [int(v) for v in flow.topological[few]]


def take(block: Block, a: int, b: int, order: Order | None, inner: Flow) -> None:
    """Keep a schedule of a block if it is better."""
    if order is None:
        return
    latency, _ = schedule(inner, order)
    if latency < block.takes[a, b]:
        block.takes[a, b] = latency
        block.orders[a, b] = (order, inner)
        block.final[a, b] |= latency <= block.least[a, b] * (1.0 + 1e-12)


def _first_bounds(flow: Flow, block: Block, list_schedules: bool) -> None:
    """Bounds of a block by its longest path; what its ends cannot be on is final."""
    able = options(flow)
    for a in range(flow.devices):
        for b in range(flow.devices):
            if (block.before < 0 and a > 0) or (block.after < 0 and b > 0):  # an end that is not there has one device
                block.least[a, b] = np.inf
                block.final[a, b] = True
                continue
            if (block.before >= 0 and not able[block.before, a]) or (block.after >= 0 and not able[block.after, b]):
                block.least[a, b] = np.inf
                block.final[a, b] = True
                continue
            inner = block.flow(flow, a, b)
            block.least[a, b] = float(heads(inner).min(axis=1).max(initial=0.0))
            if list_schedules:
                take(block, a, b, heft.best(inner, inner.room)[1], inner)


def refined(
    chain: Chain, improve: Improve, upper: Callable[[], float], most: int
) -> Iterator[tuple[float, Order | None]]:
    """Better and better bounds, and schedules where the chain is ``whole``, until the two meet or nothing is left
    to do.

    ``improve(block, a, b, needed)`` works on one block for one pair of devices: it raises ``least``, lowers ``takes``
    or says ``final``; a block that takes ``needed`` or longer is of no use, the whole would not be below ``upper()``.
    ``most``: how often one block is worked on for one pair.
    """
    shown = reached = np.inf
    while True:
        bound, path = chain.shortest(lambda block: block.least)
        order = None
        if chain.whole:
            value, best = chain.shortest(lambda block: block.takes)
            if value < shown * (1.0 - 1e-12):
                shown, order = value, assembled(chain, best)
                reached = min(reached, schedule(chain.flow, order)[0])
        yield bound, order
        least = min(upper(), reached)
        if bound >= least * (1.0 - 1e-9):
            return
        ends = [*zip([0, *path], [*path, 0], strict=True)]
        both = [ends] if order is None and not chain.whole else [ends, [*zip([0, *best], [*best, 0], strict=True)]]
        open_ones = {
            (int(block.effort[a, b]), -block.gap(a, b), i, a, b)
            for way in both
            for i, (block, (a, b)) in enumerate(zip(chain.blocks, way, strict=True))
            if not block.final[a, b] and block.effort[a, b] < most
        }
        if not open_ones:
            return
        _, _, i, a, b = min(open_ones)
        block = chain.blocks[i]
        improve(block, a, b, _needed(chain, i, a, b, least))
        block.effort[a, b] += 1


def _needed(chain: Chain, i: int, a: int, b: int, upper: float) -> float:
    """What a block may take for two devices of its ends if the whole is to be below ``upper``."""
    flow, blocks, nodes = chain.flow, chain.blocks, chain.nodes.tolist()
    reach = blocks[0].least[0].copy()
    before = 0.0
    for k in range(1, i + 1):
        if k == i:
            before = float(reach[a] + flow.time[nodes[k - 1], a])
            break
        reach = ((reach + flow.time[nodes[k - 1]])[:, None] + blocks[k].least).min(axis=0)
    reach = blocks[-1].least[:, 0].copy()
    after = 0.0
    for k in range(len(blocks) - 2, i - 1, -1):
        if k == i:
            after = float(reach[b] + flow.time[nodes[k], b])
            break
        reach = (blocks[k].least + (flow.time[nodes[k]] + reach)[None, :]).min(axis=1)
    return upper - before - after


def absorb(chain: Chain, order: Order) -> None:
    """Keep what a schedule of the whole is better in than the schedules of the blocks."""
    _, times = schedule(chain.flow, order)
    for block in chain.blocks:
        a = int(order.device[block.before]) if block.before >= 0 else 0
        b = int(order.device[block.after]) if block.after >= 0 else 0
        inner = block.orders[a, b][1] if (a, b) in block.orders else block.flow(chain.flow, a, b)
        sent = times.sent[_tensors(chain.flow, block.nodes)]
        take(block, a, b, order_of(inner, order.device[block.nodes], times.begun[block.nodes], sent), inner)


def assembled(chain: Chain, path: list[int]) -> Order:
    """The schedules of the blocks one after the other, for these devices of the chain's nodes."""
    flow = chain.flow
    device = np.zeros(flow.nodes, dtype=np.int64)
    begun = np.zeros(flow.nodes)
    sent = np.full((len(flow.producer), flow.devices), np.inf)
    now = 0.0
    for block, a, b in zip(chain.blocks, [0, *path], [*path, 0], strict=True):
        order, inner = block.orders[a, b]
        latency, times = schedule(inner, order)
        device[block.nodes] = order.device
        inner_nodes = block.nodes != block.before
        begun[block.nodes[inner_nodes]] = (times.begun + now)[inner_nodes]
        tensor = _tensors(flow, block.nodes)
        found = np.isfinite(times.sent)
        sent[tensor] = np.where(found, times.sent + now, sent[tensor])
        now += latency
        if block.after >= 0:
            begun[block.after] = now
            device[block.after] = b
            now += float(flow.time[block.after, b])
    return order_of(flow, device, begun, sent)


def _tensors(flow: Flow, nodes: Integers) -> Integers:
    """The tensors of a part, as :func:`placedsl.algorithms.dataflow.parts.part` numbers them."""
    inside = np.zeros(flow.nodes, dtype=bool)
    inside[nodes] = True
    tensor = np.repeat(np.arange(len(flow.producer)), np.diff(flow.reader_start))
    return np.unique(tensor[inside[flow.producer[tensor]] & inside[flow.reader]])
