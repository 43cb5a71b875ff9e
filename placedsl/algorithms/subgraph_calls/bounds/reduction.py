"""Reduced instances whose least latency is no larger: adjacent nodes are merged, light ones removed.

Every device is relaxed to the best of its kind: an accelerator has, for each node and tensor, the least time of all,
and the largest memory; the host has the least time of all hosts and no memory limit.  Where an accelerator makes one
call, there are as many calls; where it makes several, each has the memory of an accelerator, and all together that of
all of them (:func:`_budget`).  Then, as often as it applies:

* a node that only one other reads, or that reads only from one other, of the same colour class and therefore on its
  device, becomes one node with it (:func:`_merge`); where times do not add up whatever happens, they are left out;
* where nodes of one class read nothing but what one of them makes, which reads nothing, all become one node
  (:func:`_root`): they share a call, and on the host the first of them is ready when the quickest is;
* a node without makers and with one reader, or without readers and with one maker, whose memory is below a threshold
  and whose tensor nobody else reads, is taken away; a call of the other pays for its time or for its transfer, whatever
  is less (:func:`_absorb`);
* a node without makers or without readers whose time and memory are below a threshold is taken away (:func:`_drop`);
* where all that lies between maker and reader does not fit into one call, no call holds both: the transfers become
  running time of the two, and the reading is taken away where another path joins them (:func:`_charge`);
* where a node reads only from one that reads nothing, as the transpose of a weight does, and is read only so far from
  the other readers of that one that no call holds both, it is taken away: the calls of that one and of
  its reader pay for the one tensor or for the other (:func:`_untie`);
* a reading is taken away whose transfer is below the threshold, where another path joins the two (:func:`_shorten`).

To take away a node or a reading takes time, transfers and memory from calls, and things to wait for: no schedule gets
longer by it.  The calls that remain wait for one another in a circle only if they did so before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.subgraph_calls.latency_kernel import CallInstance
from placedsl.arrays import Floats
from placedsl.tolerances import EVALUATION

#: Into how many grains the memory of one accelerator is divided, and that of all at most.
_GRAINS, _MOST_GRAINS = 16.0, 160.0


@dataclass
class ReducedTensor:
    """The seconds that a call pays to transfer a tensor out or in, and its readers."""

    out: float
    into: float
    readers: set[int]


@dataclass
class ReducedInstance:
    """The remaining nodes by number, their times, memories and tensors.

    ``fast``, ``slow``  the seconds on an accelerator, on the host (inf: not supported)
    ``held``            the nodes of the original instance that were merged into each; ``label``: its class
    ``charged``         the part of ``fast`` that stands for removed transfers of inputs
    ``part``            the bytes of ``memory`` that a call does not hold if it does not hold the node's only maker
    ``capacity``        the bytes of a call; ``slots``: the calls of one accelerator
    ``budget``          what all calls take at most: one each if ``grain`` is 0, else the whole grains of so many bytes
                        in what a call holds
    """

    fast: dict[int, float]
    slow: dict[int, float]
    memory: dict[int, float]
    made: dict[int, list[ReducedTensor]]
    label: dict[int, int]
    held: dict[int, list[int]]
    budget: int
    capacity: float
    grain: float = 0.0
    slots: int = 1
    charged: dict[int, float] = field(default_factory=dict)
    part: dict[int, float] = field(default_factory=dict)

    def readers(self, v: int) -> set[int]:
        """The readers of a node."""
        return set().union(*(t.readers for t in self.made[v]))

    def charge(self, v: int, cost: float) -> None:
        """A call that holds node ``v`` pays ``cost`` for its inputs."""
        self.fast[v] += cost
        self.charged[v] = self.charged.get(v, 0.0) + cost

    def forget(self, u: int, v: int) -> None:
        """Remove the reading of ``u`` by ``v``."""
        for tensor in self.made[u]:
            tensor.readers.discard(v)
        self.made[u] = [t for t in self.made[u] if t.readers]

    def pairs(self) -> list[tuple[int, int]]:
        """Nodes of one class, the second of which reads the first, and neither anything else: in two calls, these are
        of one accelerator.
        """
        makers = self.makers()
        out = []
        for u in self.fast if self.slots > 1 else ():
            readers = self.readers(u)
            if len(readers) == 1 and self.label[u] == self.label[w := next(iter(readers))] and makers[w] == {u}:
                out.append((u, w))
        return out

    def order(self) -> list[int]:
        """The nodes in a topological order."""
        waits = {v: len(m) for v, m in self.makers().items()}
        ready = [v for v in sorted(waits) if not waits[v]]
        for v in ready:  # grows on the way
            for r in sorted(self.readers(v)):
                waits[r] -= 1
                if not waits[r]:
                    ready.append(r)
        return ready

    def makers(self) -> dict[int, set[int]]:
        """The nodes that each node reads from."""
        out: dict[int, set[int]] = {v: set() for v in self.fast}
        for v in self.fast:
            for r in self.readers(v):
                out[r].add(v)
        return out


def _least(rows: Floats, width: int) -> Floats:
    return rows.min(axis=0) if len(rows) else np.full(width, np.inf)


def best_devices(instance: CallInstance) -> ReducedInstance:
    """The instance on the best device of each kind."""
    nodes, accelerators = len(instance.unit), ~instance.host
    fast, slow = (_least(instance.time[which], nodes).tolist() for which in (accelerators, instance.host))
    cost = _least(instance.transfer[accelerators], len(instance.producer)).tolist()
    made: dict[int, list[ReducedTensor]] = {v: [] for v in range(nodes)}
    for t, v in enumerate(instance.producer.tolist()):
        who = set(instance.reader[instance.read_start[t] : instance.read_start[t + 1]].tolist())
        if who:
            paid = cost[t] if np.isfinite(cost[t]) else 0.0
            made[v].append(ReducedTensor(paid, paid, who))
    budget, grain = _budget(instance)
    return ReducedInstance(
        dict(enumerate(fast)), dict(enumerate(slow)), dict(enumerate(instance.memory.tolist())), made,
        dict(enumerate(instance.unit.tolist())), {v: [v] for v in range(nodes)},
        budget, float(instance.capacity[accelerators].max(initial=0.0)), grain,
        slots=instance.slots,
    )  # fmt: skip


def _budget(instance: CallInstance) -> tuple[int, float]:
    """What all calls take at most, and the bytes of a grain (0: calls count).

    Several calls of an accelerator share its memory: where that is too little for the graph, it limits more than their
    number.
    """
    room = instance.capacity[~instance.host]
    calls, total, most = instance.slots * len(room), float(room.sum()), float(room.max(initial=0.0))
    if instance.slots == 1 or not 0.0 < total < instance.memory.sum():
        return calls, 0.0
    grain = most / min(_GRAINS, _MOST_GRAINS * most / total)
    return int(total / grain + 1e-9), grain


def reduce(problem: ReducedInstance, light: float, *, exact_times: bool) -> None:
    """Merge and remove nodes until nothing applies.

    ``light``: the largest time of a node that counts as negligible, as a share of the total, and the same share of the
    memory.  ``exact_times``: nodes of one class on one device share a call.
    """
    total = sum(min(problem.fast[v], problem.slow[v]) for v in problem.fast)
    left = light * problem.capacity
    while True:
        before = (len(problem.fast), sum(len(problem.readers(v)) for v in problem.fast))
        _merge(problem, exact_times=exact_times)
        if exact_times:
            _root(problem)
        _charge(problem)
        if light > 0.0:
            _untie(problem)
            left -= _absorb(problem, left)
            _drop(problem, light * total, light * problem.capacity)
            _shorten(problem, light * total)
        if (len(problem.fast), sum(len(problem.readers(v)) for v in problem.fast)) == before:
            return


def _merge(problem: ReducedInstance, *, exact_times: bool) -> None:
    """Merge adjacent nodes of one class."""
    makers = problem.makers()
    for v in sorted(problem.fast):
        if v not in problem.fast:
            continue
        readers, reads = problem.readers(v), makers[v]
        if len(readers) == 1 and problem.label[w := next(iter(readers))] == problem.label[v]:
            # In two calls of one device, one in front of the other, neither could take over the other's transfers.
            if makers[w] == {v} and exact_times:
                _join(problem, makers, v, w, v, exact_times=True, both=True)
            elif not reads:
                _join(problem, makers, v, w, w, exact_times=exact_times, both=False)
        elif not readers and len(reads) == 1 and problem.label[w := next(iter(reads))] == problem.label[v]:
            _join(problem, makers, w, v, w, exact_times=exact_times, both=False)


def _root(problem: ReducedInstance) -> None:
    """Merge a node that reads nothing with all its readers, if they are of its class and read nothing else."""
    makers = problem.makers()
    for v in sorted(problem.fast):
        if v not in problem.fast or makers[v]:
            continue
        readers = sorted(problem.readers(v))
        if len(readers) < 2 or any(makers[r] != {v} or problem.label[r] != problem.label[v] for r in readers):
            continue
        problem.slow[v] += min(problem.slow[r] for r in readers)
        problem.made[v] = [tensor for r in readers for tensor in problem.made[r]]
        for r in readers:
            problem.fast[v] += problem.fast[r]
            problem.memory[v] += problem.memory[r] - problem.part.get(r, 0.0)
            problem.held[v] += problem.held[r]
            problem.charged[v] = problem.charged.get(v, 0.0) + problem.charged.get(r, 0.0)
            for onward in problem.readers(r):
                makers[onward].discard(r)
                makers[onward].add(v)
            _remove(problem, r)
            makers.pop(r)


def _join(
    problem: ReducedInstance, makers: dict[int, set[int]], u: int, w: int, kept: int, *, exact_times: bool, both: bool
) -> None:
    """Node ``w`` reads from ``u``: make one of them.  On a host their times add up only where ``both`` have no other
    way, on accelerators only where they share a call: elsewhere that of the ``kept`` one alone counts."""
    gone = w if kept == u else u
    if exact_times:
        problem.fast[kept] += problem.fast[gone]
    elif not np.isfinite(problem.fast[gone]):
        problem.fast[kept] = np.inf
    if both:
        problem.slow[kept] += problem.slow[gone]
    elif not np.isfinite(problem.slow[gone]):
        problem.slow[kept] = np.inf
    problem.memory[kept] += problem.memory[gone] - problem.part.get(gone, 0.0)
    problem.held[kept] += problem.held[gone]
    problem.charged[kept] = problem.charged.get(kept, 0.0) + problem.charged.get(gone, 0.0)
    if gone == w:
        problem.forget(u, w)
        problem.made[u] += problem.made[w]
        for r in problem.readers(w):
            makers[r].discard(w)
            makers[r].add(u)
    else:
        makers[w].discard(u)
    _remove(problem, gone)
    makers.pop(gone)


def _remove(problem: ReducedInstance, v: int) -> None:
    for x in (problem.fast, problem.slow, problem.memory, problem.made, problem.label, problem.held):
        x.pop(v)
    problem.part.pop(v, None)


def _drop(problem: ReducedInstance, time: float, memory: float) -> None:
    """Remove light nodes that have no producers, or no readers."""
    makers = problem.makers()
    again = True
    while again:
        again = False
        for v in sorted(problem.fast):
            costs = [max(t.out, t.into) for t in problem.made[v]]
            light = max(min(problem.fast[v], problem.slow[v]), *costs, 0.0) <= time
            if not light or problem.memory[v] > memory or (makers[v] and problem.made[v]):
                continue
            _take_away(problem, makers, v)
            again = True


def _take_away(problem: ReducedInstance, makers: dict[int, set[int]], v: int) -> None:
    for u in makers[v]:
        problem.forget(u, v)
    for r in problem.readers(v):
        makers[r].discard(v)
    _remove(problem, v)
    makers.pop(v)


def _absorb(problem: ReducedInstance, memory: float) -> float:
    """Take away light nodes that hang on one other, which pays for time or transfer in its calls; ``memory``: the most
    that they may have in all.  Returns what they had."""
    makers = problem.makers()
    taken = 0.0
    for v in sorted(problem.fast, key=lambda v: (problem.memory[v], v)):
        if taken + problem.memory[v] > memory or len(problem.fast) == 1:
            break
        own = problem.made[v]
        if not makers[v] and len(own) == 1 and len(own[0].readers) == 1:
            problem.charge(next(iter(own[0].readers)), min(problem.fast[v], own[0].into))
        elif not own and len(makers[v]) == 1:
            read = [t for t in problem.made[next(iter(makers[v]))] if v in t.readers]
            if len(read) > 1 or len(read[0].readers) > 1:
                continue
            problem.fast[next(iter(makers[v]))] += min(problem.fast[v], read[0].out)
        else:
            continue
        taken += problem.memory[v]
        _take_away(problem, makers, v)
    return taken


def _charge(problem: ReducedInstance) -> None:
    """Make transfers between nodes that no call can hold both running time of these."""
    apart = _apart(problem)
    for v in sorted(problem.fast):
        for tensor in problem.made[v]:
            far = [r for r in sorted(tensor.readers) if apart(v, r)]
            if far:
                # Whoever holds the maker sends it.
                problem.fast[v] += tensor.out
                tensor.out = 0.0
            # A call pays once for all that read it: who may share a call with another reader is not charged.
            for r in far:
                alone = all(apart(r, other) or apart(other, r) for other in tensor.readers if other != r)
                if alone and _reaches(problem, problem.readers(v) - {r}, r):
                    problem.charge(r, tensor.into)
                    tensor.readers.discard(r)
        problem.made[v] = [t for t in problem.made[v] if t.readers]


def _apart(problem: ReducedInstance) -> Callable[[int, int], bool]:
    """Whether what lies from one node to another does not fit into one call."""
    before, after = closures(problem)
    most = problem.capacity * (1.0 + EVALUATION)
    return lambda u, w: (
        sum(problem.memory[x] for x in (after[u] | {u}) & (before[w] | {w})) - problem.part.get(u, 0.0) > most
    )


def _untie(problem: ReducedInstance) -> None:
    """Take away what is made of a node that reads nothing, and read far from all others that read that node."""
    makers, apart = problem.makers(), _apart(problem)
    for w in sorted(problem.fast):
        if len(makers[w]) != 1 or len(problem.made[w]) != 1 or len(problem.made[w][0].readers) != 1:
            continue
        u, r = next(iter(makers[w])), next(iter(problem.made[w][0].readers))
        others = problem.readers(u) - {w}
        if makers[u] or not others or not all(apart(s, r) for s in others):
            continue
        # No call holds u and r, for the other readers of u run between them: one of two tensors passes on.
        read = next(tensor for tensor in problem.made[u] if w in tensor.readers)
        problem.charge(r, min(problem.made[w][0].into, read.into + problem.fast[w]))
        sent = min(read.out, problem.fast[w] + problem.made[w][0].out)
        problem.fast[u] += sent
        read.out -= sent
        _take_away(problem, makers, w)
        apart = _apart(problem)


def closures(problem: ReducedInstance) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """All predecessors and all successors of each node."""
    before: dict[int, set[int]] = {}
    after: dict[int, set[int]] = {v: set() for v in problem.fast}
    makers = problem.makers()
    for v in problem.order():
        before[v] = set(makers[v]).union(*(before[u] for u in makers[v]))
        for u in before[v]:
            after[u].add(v)
    return before, after


def _shorten(problem: ReducedInstance, time: float) -> None:
    """Remove cheap readings between nodes that another path joins."""
    for v in sorted(problem.fast):
        for tensor in problem.made[v]:
            if max(tensor.out, tensor.into) > time:
                continue
            for r in sorted(tensor.readers):
                if _reaches(problem, problem.readers(v) - {r}, r):
                    tensor.readers.discard(r)
        problem.made[v] = [t for t in problem.made[v] if t.readers]


def _reaches(problem: ReducedInstance, start: set[int], target: int) -> bool:
    """Whether a path leads to a node."""
    met, waiting = set(start), list(start)
    while waiting:
        v = waiting.pop()
        if v == target:
            return True
        fresh = problem.readers(v) - met
        met |= fresh
        waiting += fresh
    return False
