"""Compiled: the dynamic program over ideals for the least latency of subgraph calls.

A state is an ideal (the nodes that have run), the number of calls so far, and when the tensors that are still read were
made.  From it one more node runs on the host, or one more call runs the nodes between the ideal and a larger one.  A
state that another one of its ideal equals or beats in every respect is dropped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Booleans, Floats, Integers


class IdealLattice(NamedTuple):
    """h nodes in topological order, t tensors, N ideals by size (the first is empty, the last has all nodes).

    ``fast``, ``slow``, ``memory``    h: seconds on an accelerator and on the host, bytes
    ``capacity``    the bytes of a call; ``calls``: how many there may be
    ``out``, ``into``  t: the seconds that a call pays for a tensor; ``reader[read_start[t]:read_start[t + 1]]`` read it
    ``made``        the tensors that node v makes, from ``made_start[v]`` to ``made_start[v + 1]``
    ``maker``       the nodes that node v reads from, from ``maker_start[v]`` to ``maker_start[v + 1]``
    ``inside``      N x h flags
    ``next_ideal``, ``next_node``   the ideals with one node more, and that node, from ``next_start[i]``
    ``open_node``   the nodes of ideal i that a node outside reads, from ``open_start[i]`` to ``open_start[i + 1]``
    ``tail``        for each entry of ``open_node``, by the calls left: a lower bound on the time from the node's end to
                    the end of all, when the ideal has run
    ``ahead``       N, by the calls left: the same from the end of the last of the ideal's open nodes
    ``narrow``      N: the number of a narrow ideal (-1: it is not narrow)
    """

    fast: Floats
    slow: Floats
    memory: Floats
    capacity: float
    calls: int
    out: Floats
    into: Floats
    read_start: Integers
    reader: Integers
    made_start: Integers
    made: Integers
    maker_start: Integers
    maker: Integers
    inside: Booleans
    next_start: Integers
    next_ideal: Integers
    next_node: Integers
    open_start: Integers
    open_node: Integers
    tail: Floats
    ahead: Floats
    narrow: Integers


class StateTable(NamedTuple):
    """The states met, s at most.

    ``used``: the calls so far; ``times``: of the ideal's open nodes, then of the latest end; ``later``: the next state
    of its ideal; ``first``: N, the first state of each ideal (-1: none); ``number``: how many states there are, and how
    many were dropped for lack of space; ``ideal``: of each state; ``before``: its predecessor (-1: none); ``found``: by
    the calls allowed, the predecessor, the ideal and the calls so far that attained the least time.
    """

    used: Integers
    times: Floats
    later: Integers
    first: Integers
    number: Integers
    ideal: Integers
    before: Integers
    found: Integers


class ExplorationScratch(NamedTuple):
    """Working memory: N each, then h, then one per open node of an ideal."""

    stamp: Integers
    queue: Integers
    held: Floats
    length: Floats
    where: Integers
    times: Floats
    needed: Booleans


@kernel(no_cpython_wrapper=True)
def _insert(states, j, x, used, times, width):  # type: ignore[no-untyped-def]
    """Add a state unless another of its ideal dominates it; drop those that it dominates."""
    y, last = states.first[j], -1
    while y >= 0:
        following = states.later[y]
        no_worse, no_better = states.used[y] <= used, states.used[y] >= used
        for i in range(width):
            a, b = states.times[y, i], times[i]
            if a > b:
                no_worse = False
            elif a < b:
                no_better = False
            if not no_worse and not no_better:
                break
        if no_worse:
            return
        if no_better:
            if last < 0:
                states.first[j] = following
            else:
                states.later[last] = following
        else:
            last = y
        y = following
    n = states.number[0]
    if n >= len(states.used):
        states.number[1] += 1
        return
    states.number[0] = n + 1
    states.used[n] = used
    states.ideal[n], states.before[n] = j, x
    for i in range(width):
        states.times[n, i] = times[i]
    states.later[n] = states.first[j]
    states.first[j] = n


@kernel(no_cpython_wrapper=True)
def _hopeless(lattice, j, used, times, width, value):  # type: ignore[no-untyped-def]
    """Whether no continuation of a state improves on ``value``, by the calls allowed."""
    base = lattice.open_start[j]
    for calls in range(used, lattice.calls + 1):
        least = times[width - 1]
        for i in range(width - 1):
            least = max(least, times[i] + lattice.ahead[j, calls - used])
            least = max(least, times[i] + lattice.tail[base + i, calls - used])
        if least < value[calls]:
            return False
    return True


@kernel(no_cpython_wrapper=True)
def _settle(states, j, x, rest, used, finish, value):  # type: ignore[no-untyped-def]
    """An ideal was reached from state ``x`` at ``finish``; the least time from it is known by the calls left."""
    for calls in range(used, len(value)):
        total = finish + rest[calls - used]
        if total < value[calls]:
            value[calls] = total
            states.found[calls, 0], states.found[calls, 1], states.found[calls, 2] = x, j, used


# More than ten arguments: called for every state and step, too often to pack them.
@kernel()
def _reached(lattice, states, j, i, where, x, used, finish, ends, times, rest, value):  # type: ignore[no-untyped-def]
    """The state of ideal ``j`` after a step from state ``x`` of ideal ``i`` that ended at ``finish``."""
    if lattice.narrow[j] >= 0:
        # Everything in it comes before its one open node, which has just run: there is nothing else to remember.
        _settle(states, j, x, rest[lattice.narrow[j]], used, finish, value)
        return
    width = lattice.open_start[j + 1] - lattice.open_start[j] + 1
    for k in range(width - 1):
        v = lattice.open_node[lattice.open_start[j] + k]
        times[k] = states.times[x, where[v]] if lattice.inside[i, v] else finish
    # The latest end of nodes that nobody reads.
    end = states.times[x, lattice.open_start[i + 1] - lattice.open_start[i]]
    times[width - 1] = max(end, finish) if ends else end
    if j == len(lattice.narrow) - 1:
        _settle(states, j, x, rest[-1], used, times[0], value)
    elif not _hopeless(lattice, j, used, times, width, value):
        _insert(states, j, x, used, times, width)


@kernel(no_cpython_wrapper=True)
def _on_host(lattice, states, i, where, times, rest, value):  # type: ignore[no-untyped-def]
    """Steps with one more node on the host."""
    for e in range(lattice.next_start[i], lattice.next_start[i + 1]):
        j, v = lattice.next_ideal[e], lattice.next_node[e]
        if not np.isfinite(lattice.slow[v]):
            continue
        ends = lattice.made_start[v] == lattice.made_start[v + 1]
        x = states.first[i]
        while x >= 0:
            start = 0.0
            for k in range(lattice.maker_start[v], lattice.maker_start[v + 1]):
                start = max(start, states.times[x, where[lattice.maker[k]]])
            finish = start + lattice.slow[v]
            _reached(lattice, states, j, i, where, x, states.used[x], finish, ends, times, rest, value)
            x = states.later[x]


@kernel(no_cpython_wrapper=True)
def _fetched(lattice, i, j, needed):  # type: ignore[no-untyped-def]
    """The time that a call from ideal ``i`` to ``j`` pays to transfer in, and which open nodes of ``i`` it waits
    for.
    """
    total = 0.0
    for k in range(lattice.open_start[i], lattice.open_start[i + 1]):
        v = lattice.open_node[k]
        reads = False
        for m in range(lattice.made_start[v], lattice.made_start[v + 1]):
            t = lattice.made[m]
            for n in range(lattice.read_start[t], lattice.read_start[t + 1]):
                r = lattice.reader[n]
                if lattice.inside[j, r] and not lattice.inside[i, r]:
                    total += lattice.into[t]
                    reads = True
                    break
        needed[k - lattice.open_start[i]] = reads
    return total


@kernel(no_cpython_wrapper=True)
def _sent(lattice, i, j):  # type: ignore[no-untyped-def]
    """The time that a call from ideal ``i`` to ``j`` pays to transfer out."""
    total = 0.0
    for k in range(lattice.open_start[j], lattice.open_start[j + 1]):
        v = lattice.open_node[k]
        if lattice.inside[i, v]:
            continue
        for m in range(lattice.made_start[v], lattice.made_start[v + 1]):
            t = lattice.made[m]
            for n in range(lattice.read_start[t], lattice.read_start[t + 1]):
                if not lattice.inside[j, lattice.reader[n]]:
                    total += lattice.out[t]
                    break
    return total


@kernel()
def _ends(lattice, i, j):  # type: ignore[no-untyped-def]
    """Whether some node between two ideals has no reader."""
    for v in range(len(lattice.fast)):
        if lattice.made_start[v] == lattice.made_start[v + 1] and lattice.inside[j, v] and not lattice.inside[i, v]:
            return True
    return False


@kernel(no_cpython_wrapper=True)
def _earliest(lattice, states, i, opened):  # type: ignore[no-untyped-def]
    """When a call after any state of ideal ``i`` can start (inf: there is no such state)."""
    earliest = np.inf
    for v in range(len(lattice.fast)):
        if lattice.maker_start[v] == lattice.maker_start[v + 1] and not lattice.inside[i, v]:
            opened = 0  # one that waits for nothing
    x = states.first[i]
    while x >= 0:
        if states.used[x] < lattice.calls:
            least = np.inf
            for k in range(opened):
                least = min(least, states.times[x, k])
            earliest = min(earliest, least if opened else 0.0)
        x = states.later[x]
    return earliest


@kernel(no_cpython_wrapper=True)
def _no_better(lattice, i, j, finish, value):  # type: ignore[no-untyped-def]
    """Whether a call from ideal ``i`` to ``j`` that ends no earlier than ``finish`` improves nothing."""
    for k in range(lattice.open_start[j], lattice.open_start[j + 1]):
        if not lattice.inside[i, lattice.open_node[k]]:
            better = 0
            for c in range(len(value) - 1):
                better += finish + lattice.ahead[j, c] < value[c + 1]
            return better == 0
    return False


@kernel(no_cpython_wrapper=True)
def _by_call(lattice, states, i, where, rest, value, free, scratch):  # type: ignore[no-untyped-def]
    """Steps with one more call, breadth first over the ideals that it can end at; ``free``: its inputs cost nothing."""
    opened = lattice.open_start[i + 1] - lattice.open_start[i]
    earliest, upper = _earliest(lattice, states, i, opened), value[0]
    for k in range(1, len(value)):
        upper = max(upper, value[k])
    if not np.isfinite(earliest):
        return
    head, tail = 0, 1
    scratch.queue[0] = i
    scratch.stamp[i] = i
    scratch.held[i] = scratch.length[i] = 0.0
    while head < tail:
        from_here = scratch.queue[head]
        head += 1
        for e in range(lattice.next_start[from_here], lattice.next_start[from_here + 1]):
            j, v = lattice.next_ideal[e], lattice.next_node[e]
            if scratch.stamp[j] == i:
                continue
            memory = scratch.held[from_here] + lattice.memory[v]
            length = scratch.length[from_here] + lattice.fast[v]
            if memory > lattice.capacity or earliest + length > upper:
                continue
            scratch.stamp[j] = i
            scratch.held[j], scratch.length[j] = memory, length
            scratch.queue[tail] = j
            tail += 1
    # Integers32 ones first: what they settle rules others out.
    for narrow in (True, False):
        for at in range(1, tail):
            j = scratch.queue[at]
            if (lattice.narrow[j] >= 0) != narrow:
                continue
            if not narrow and _no_better(lattice, i, j, earliest + scratch.length[j], value):
                continue
            length = scratch.length[j] + _sent(lattice, i, j)
            if not narrow and _no_better(lattice, i, j, earliest + length, value):
                continue
            fetched = _fetched(lattice, i, j, scratch.needed)
            if not free:
                length += fetched
            if earliest + length > upper:
                continue
            ends = _ends(lattice, i, j)
            x = states.first[i]
            while x >= 0:
                if states.used[x] < lattice.calls:
                    start = 0.0
                    for k in range(opened):
                        if scratch.needed[k]:
                            start = max(start, states.times[x, k])
                    _reached(
                        lattice, states, j, i, where, x, states.used[x] + 1, start + length, ends, scratch.times, rest,
                        value,
                    )  # fmt: skip
                x = states.later[x]


@kernel(allocates=True)
def begin(lattice, states, start, scratch):  # type: ignore[no-untyped-def]
    """Reset the table to the single ideal ``start``, all of it ready at time 0."""
    states.first[:] = -1
    states.number[:] = 0
    states.found[:] = -1
    scratch.stamp[:] = -1
    width = lattice.open_start[start + 1] - lattice.open_start[start] + 1
    _insert(states, start, -1, 0, np.zeros(width), width)


@kernel()
def explore(lattice, states, start, stop, free, rest, value, scratch):  # type: ignore[no-untyped-def]
    """Extend the states of the ideals from ``start`` up to ``stop``; lowers ``value``, the least time by the calls
    allowed.

    ``rest``: that of narrow ideals, known for all beyond the first, then of the last ideal.  ``free``: calls from
    ``start`` pay nothing for their inputs.  Returns whether there was space for all states: otherwise ``value`` is no
    bound.
    """
    for i in range(start, stop):
        if states.first[i] < 0:
            continue
        for k in range(lattice.open_start[i], lattice.open_start[i + 1]):
            scratch.where[lattice.open_node[k]] = k - lattice.open_start[i]
        _on_host(lattice, states, i, scratch.where, scratch.times, rest, value)
        _by_call(lattice, states, i, scratch.where, rest, value, free and i == start, scratch)
        if states.number[1]:
            return False
    return True
