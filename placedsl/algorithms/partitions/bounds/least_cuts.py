"""What the first stages of a pipeline cut at least, if they work so much."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.partitions.bounds.least_cut_kernel import ENDLESS, CutNetwork, CutQuestion, least_cut
from placedsl.algorithms.partitions.bounds.superblock_program import Pipeline
from placedsl.arrays import Booleans, Floats, Integers
from placedsl.graph.order import csr, topological
from placedsl.tolerances import BOUND_ROUNDING, EVALUATION

#: The whole number that all costs of a network are together, with all work at a price of one.
_WHOLE = 2**40


class LeastCuts:
    """The sets of units that hold with a unit all that comes before it, by their work and the tensors that they cut.

    A tensor whose maker comes before all its readers is cut by sets that have the maker and not all readers; one that
    all others come before, by sets that have some of these and not itself.  Tensors that are neither do not count.

    ``until``, ``beyond``: the work of each unit and all before it, and of it and all after it, at least.
    """

    def __init__(self, pipeline: Pipeline, until: Floats, beyond: Floats) -> None:
        self.work, self.before, self.after = pipeline.work, pipeline.before, pipeline.after
        self.until, self.beyond, self.all = until, beyond, float(pipeline.work.sum())
        self.cost = pipeline.edges.cost
        units, count = len(self.work), len(self.cost)
        order = topological(units, self.before, self.after)
        assert order is not None, "units of a pipeline have an order"
        rank = np.empty(units, dtype=np.int64)
        rank[order] = np.arange(units)
        #: Units in an order in which none comes before what comes before it.
        self.order = order
        lengths = np.array([len(own) for own in pipeline.edges.pins], dtype=np.int64)
        pin = np.array([u for own in pipeline.edges.pins for u in own], dtype=np.int64)
        edge = np.repeat(np.arange(count), lengths)
        first = np.cumsum(lengths) - lengths
        pairs = self.before * units + self.after
        hub, ahead = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=bool)
        for is_ahead in (False, True):  # a pair of units is told as maker and reader
            extreme = (np.minimum if is_ahead else np.maximum).reduceat(rank[pin], first) if count else first
            own = order[extreme][edge] if count else pin
            held = (pin == own) | np.isin(own * units + pin if is_ahead else pin * units + own, pairs)
            whole = np.bincount(edge[held], minlength=count) == lengths
            hub[whole], ahead[whole] = order[extreme[whole]], is_ahead
        #: Of each tensor that counts the unit that all others come after (``ahead``), or before; -1: it does not count.
        self.hub, self.ahead = np.where(self.cost > 0.0, hub, -1), ahead
        other = (self.hub[edge] >= 0) & (pin != hub[edge])
        #: The others, by tensors; of each and its hub the work before the one that comes first, and after the other.
        self.pin, self.edge = pin[other], edge[other]
        own, forward = self.hub[self.edge], self.ahead[self.edge]
        self.first_until = until[np.where(forward, own, self.pin)]
        self.last_beyond = beyond[np.where(forward, self.pin, own)]

    def least(self, low: float, high: float, kept: Booleans, enough: float, nodes: int) -> float:
        """What sets that work from ``low`` to ``high`` s cut at least; inf where none cuts less than ``enough``.

        ``kept``   the units beside hubs for which a tensor counts
        ``nodes``  of the tree that it is searched in
        """
        slack = self.all * EVALUATION
        outside, inside = self.until > high + slack, self.beyond > self.all - low + slack
        if (outside & inside).any():
            return np.inf
        network, scale, always = self.network(inside, outside, kept)
        works = float(self.work[inside].sum())
        if not len(network.work):
            return always if low - slack <= works <= high + slack else np.inf
        question = CutQuestion(scale, always, works, low - slack, high + slack, enough)
        least = float(least_cut(network, question, nodes)) * (1.0 - BOUND_ROUNDING)
        return least if least < enough * (1.0 - 2.0 * BOUND_ROUNDING) else np.inf

    def network(self, inside: Booleans, outside: Booleans, kept: Booleans) -> tuple[CutNetwork, float, float]:
        """The network of all other units, in their order, with its whole numbers per second; and what every set cuts.

        ``inside``, ``outside``: with a unit what comes before it, and after it.
        """
        count = len(self.cost)
        # A tensor is cut where its hub is on one side and some other unit on the opposite one.
        hub_on = np.where(self.ahead, inside[self.hub], outside[self.hub]) & (self.hub >= 0)
        hub_off = np.where(self.ahead, outside[self.hub], inside[self.hub]) | (self.hub < 0)
        opposite = kept & np.where(self.ahead[self.edge], outside[self.pin], inside[self.pin])
        touches = opposite | (kept & ~outside[self.pin] & ~inside[self.pin])
        cut = hub_on & (np.bincount(self.edge[opposite], minlength=count) > 0)
        asked = ~hub_off & ~cut & (np.bincount(self.edge[touches], minlength=count) > 0)
        free = self.order[~(inside | outside)[self.order]]
        return *self._network(free, inside, np.flatnonzero(asked), touches), float(self.cost[cut].sum())

    def _network(
        self, free: Integers, inside: Booleans, asked: Integers, touches: Booleans
    ) -> tuple[CutNetwork, float]:
        """The network of the units that are ``free`` and the tensors that are ``asked`` for, and its scale."""
        units, count = len(free), len(asked)
        source, sink = units, units + 1
        number = np.where(inside, source, sink)
        number[free] = np.arange(units)
        vertex = np.full(len(self.cost), -1, dtype=np.int64)
        vertex[asked] = units + 2 + np.arange(count)
        work = self.work[free]
        total = float(self.cost[asked].sum() + work.sum())
        scale = float(2.0 ** np.floor(np.log2(_WHOLE / max(total, 1e-300))))
        room = np.floor(self.cost[asked] * scale * (1.0 - BOUND_ROUNDING)).astype(np.int64)
        hub, ahead = number[self.hub[asked]], self.ahead[asked]
        held = touches & (vertex[self.edge] >= 0)
        pin, tensor, forward = number[self.pin[held]], vertex[self.edge[held]], self.ahead[self.edge[held]]
        pairs = (number[self.before] < units) & (number[self.after] < units)
        earlier, later = number[self.before[pairs]], number[self.after[pairs]]
        every = np.arange(units)
        to_tensor, from_tensor = vertex[asked], vertex[asked]
        tail = np.concatenate(
            (np.where(ahead, hub, to_tensor), np.where(forward, tensor, pin), later, np.full(units, source), every)
        )
        head = np.concatenate(
            (np.where(ahead, from_tensor, hub), np.where(forward, pin, tensor), earlier, every, np.full(units, sink))
        )
        endless, none = np.full(len(pin) + len(later), ENDLESS), np.zeros(2 * units, dtype=np.int64)
        rooms = np.concatenate((room, endless, none))
        arcs, vertices = len(tail), units + 2 + count
        tails, heads = np.concatenate((tail, head)), np.concatenate((head, tail))
        at = np.argsort(tails, kind="stable")
        place = np.empty(2 * arcs, dtype=np.int64)
        place[at] = np.arange(2 * arcs)
        start = np.searchsorted(tails[at], np.arange(vertices + 1))
        back = place[(at + arcs) % (2 * arcs)]
        all_rooms = np.concatenate((rooms, np.zeros(arcs, dtype=np.int64)))[at]
        network = CutNetwork(
            start, heads[at], back, all_rooms, place[arcs - 2 * units : arcs - units], place[arcs - units : arcs], work,
            *csr(later, earlier, units), *csr(earlier, later, units),
        )  # fmt: skip
        return network, scale
