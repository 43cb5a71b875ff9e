"""The dynamic program over ideals for the least latency of calls, compiled and cached.

A state is an ideal (what has run), how many calls there were, and when what others still read came to be.  From it one
more node runs on the host, or one more call runs what lies between the ideal and a larger one.  Of two states of one
ideal, one that is no better in any respect is forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from placedsl.graph.graph import Booleans, Floats, Integers


class Lattice(NamedTuple):
    """h nodes in topological order, t tensors, N ideals by size (the first is empty, the last is all).

    ``fast``, ``slow``, ``memory``    h each; ``room``: the memory of a call; ``calls``: how many there may be
    ``out``, ``into``  t each, what a call pays for a tensor; ``reader[read_start[t]:read_start[t + 1]]`` read tensor t
    ``made``        the tensors that node v makes, between ``made_start[v]`` and ``made_start[v + 1]``
    ``maker``       the nodes that node v reads from, between ``maker_start[v]`` and ``maker_start[v + 1]``
    ``inside``      N x h truths; ``next_ideal``, ``next_node``: what an ideal becomes with which node more, between
                    ``next_start[i]`` and ``next_start[i + 1]``
    ``open_node``   the nodes of ideal i that somebody outside reads, between ``open_start[i]``, ``open_start[i + 1]``
    ``tail``        for each entry of ``open_node``, by the calls left: how long it takes at least from the node's end
                    until all is done, the ideal being what has run
    ``ahead``       for each ideal, by the calls left: how long it takes at least from the end of the last of its open
                    nodes until all is done
    ``narrow``      for each ideal: which of the c narrow ones it is (-1: none)
    """

    fast: Floats
    slow: Floats
    memory: Floats
    room: float
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


class Labels(NamedTuple):
    """States: the calls so far, the times (of the ideal's open nodes, then of the latest end), the next of its ideal.

    ``first``: the first state of each ideal (-1: none); ``number``: how many there are in all, and how many were given
    up for want of room.  ``ideal``: that of each state; ``before``: the state it came from (-1: none).  ``found``: by
    the calls that there may be, the state before, the ideal and the calls so far with which the least time was met.
    """

    used: Integers
    times: Floats
    later: Integers
    first: Integers
    number: Integers
    ideal: Integers
    before: Integers
    found: Integers


class Room(NamedTuple):
    """Scratch: N each, then h, then one for each open node of an ideal."""

    stamp: Integers
    queue: Integers
    held: Floats
    length: Floats
    where: Integers
    times: Floats
    needed: Booleans


@njit(cache=True)
def _insert(labels, j, x, used, times, width):  # type: ignore[no-untyped-def]
    """Keep a state unless another of its ideal is as good; forget those that it is as good as."""
    y, last = labels.first[j], -1
    while y >= 0:
        following = labels.later[y]
        no_worse, no_better = labels.used[y] <= used, labels.used[y] >= used
        for i in range(width):
            a, b = labels.times[y, i], times[i]
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
                labels.first[j] = following
            else:
                labels.later[last] = following
        else:
            last = y
        y = following
    n = labels.number[0]
    if n >= len(labels.used):
        labels.number[1] += 1
        return
    labels.number[0] = n + 1
    labels.used[n] = used
    labels.ideal[n], labels.before[n] = j, x
    labels.times[n, :width] = times[:width]
    labels.later[n] = labels.first[j]
    labels.first[j] = n


@njit(cache=True)
def _hopeless(lattice, j, used, times, width, value):  # type: ignore[no-untyped-def]
    """Whether no schedule that goes on from a state is better than what is known, by the calls that there may be."""
    base = lattice.open_start[j]
    for calls in range(used, lattice.calls + 1):
        least = times[width - 1]
        for i in range(width - 1):
            least = max(least, times[i] + lattice.ahead[j, calls - used])
            least = max(least, times[i] + lattice.tail[base + i, calls - used])
        if least < value[calls]:
            return False
    return True


@njit(cache=True)
def _settle(labels, j, x, rest, used, finish, value):  # type: ignore[no-untyped-def]
    """An ideal was reached from state ``x``, from which the least time is known by the calls left."""
    for calls in range(used, len(value)):
        total = finish + rest[calls - used]
        if total < value[calls]:
            value[calls] = total
            labels.found[calls, 0], labels.found[calls, 1], labels.found[calls, 2] = x, j, used


@njit(cache=True)
def _reached(lattice, labels, j, i, where, x, used, finish, ends, times, rest, value):  # type: ignore[no-untyped-def]
    """The state of ideal ``j`` after what was just run from state ``x`` of ideal ``i``, finished at ``finish``."""
    if lattice.narrow[j] >= 0:
        # Everything in it comes before its one open node, which has just run: there is nothing else to remember.
        _settle(labels, j, x, rest[lattice.narrow[j]], used, finish, value)
        return
    width = lattice.open_start[j + 1] - lattice.open_start[j] + 1
    for k in range(width - 1):
        v = lattice.open_node[lattice.open_start[j] + k]
        times[k] = labels.times[x, where[v]] if lattice.inside[i, v] else finish
    # The latest end of nodes that nobody reads.
    end = labels.times[x, lattice.open_start[i + 1] - lattice.open_start[i]]
    times[width - 1] = max(end, finish) if ends else end
    if j == len(lattice.narrow) - 1:
        _settle(labels, j, x, rest[-1], used, times[0], value)
    elif not _hopeless(lattice, j, used, times, width, value):
        _insert(labels, j, x, used, times, width)


@njit(cache=True)
def _on_host(lattice, labels, i, where, times, rest, value):  # type: ignore[no-untyped-def]
    """One more node runs on the host."""
    for e in range(lattice.next_start[i], lattice.next_start[i + 1]):
        j, v = lattice.next_ideal[e], lattice.next_node[e]
        if not np.isfinite(lattice.slow[v]):
            continue
        ends = lattice.made_start[v] == lattice.made_start[v + 1]
        x = labels.first[i]
        while x >= 0:
            start = 0.0
            for k in range(lattice.maker_start[v], lattice.maker_start[v + 1]):
                start = max(start, labels.times[x, where[lattice.maker[k]]])
            finish = start + lattice.slow[v]
            _reached(lattice, labels, j, i, where, x, labels.used[x], finish, ends, times, rest, value)
            x = labels.later[x]


@njit(cache=True)
def _fetched(lattice, i, j, needed):  # type: ignore[no-untyped-def]
    """What a call from ideal ``i`` to ``j`` pays to transfer in, and which open nodes of ``i`` it waits for."""
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


@njit(cache=True)
def _sent(lattice, i, j):  # type: ignore[no-untyped-def]
    """What a call from ideal ``i`` to ``j`` pays to transfer out."""
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


@njit(cache=True)
def _ends(lattice, i, j):  # type: ignore[no-untyped-def]
    """Whether something between two ideals is read by nobody."""
    for v in range(len(lattice.fast)):
        if lattice.made_start[v] == lattice.made_start[v + 1] and lattice.inside[j, v] and not lattice.inside[i, v]:
            return True
    return False


@njit(cache=True)
def _earliest(lattice, labels, i, opened):  # type: ignore[no-untyped-def]
    """When a call after any state of ideal ``i`` can start (inf: there is no such state)."""
    earliest = np.inf
    for v in range(len(lattice.fast)):
        if lattice.maker_start[v] == lattice.maker_start[v + 1] and not lattice.inside[i, v]:
            opened = 0  # one that waits for nothing
    x = labels.first[i]
    while x >= 0:
        if labels.used[x] < lattice.calls:
            least = np.inf
            for k in range(opened):
                least = min(least, labels.times[x, k])
            earliest = min(earliest, least if opened else 0.0)
        x = labels.later[x]
    return earliest


@njit(cache=True)
def _no_better(lattice, i, j, finish, value):  # type: ignore[no-untyped-def]
    """Whether nothing better has a call from ideal ``i`` to ``j`` that ends no earlier than ``finish``."""
    for k in range(lattice.open_start[j], lattice.open_start[j + 1]):
        if not lattice.inside[i, lattice.open_node[k]]:
            return np.all(finish + lattice.ahead[j, :-1] >= value[1:])
    return False


@njit(cache=True)
def _by_call(lattice, labels, i, where, rest, value, free, room):  # type: ignore[no-untyped-def]
    """One more call: breadth first over the ideals that it can end at; ``free``: what it reads costs nothing."""
    opened = lattice.open_start[i + 1] - lattice.open_start[i]
    earliest, upper = _earliest(lattice, labels, i, opened), value.max()
    if not np.isfinite(earliest):
        return
    head, tail = 0, 1
    room.queue[0] = i
    room.stamp[i] = i
    room.held[i] = room.length[i] = 0.0
    while head < tail:
        from_here = room.queue[head]
        head += 1
        for e in range(lattice.next_start[from_here], lattice.next_start[from_here + 1]):
            j, v = lattice.next_ideal[e], lattice.next_node[e]
            if room.stamp[j] == i:
                continue
            memory = room.held[from_here] + lattice.memory[v]
            length = room.length[from_here] + lattice.fast[v]
            if memory > lattice.room or earliest + length > upper:
                continue
            room.stamp[j] = i
            room.held[j], room.length[j] = memory, length
            room.queue[tail] = j
            tail += 1
    # Narrow ones first: what they settle rules others out.
    for narrow in (True, False):
        for at in range(1, tail):
            j = room.queue[at]
            if (lattice.narrow[j] >= 0) != narrow:
                continue
            if not narrow and _no_better(lattice, i, j, earliest + room.length[j], value):
                continue
            length = room.length[j] + _sent(lattice, i, j)
            if not narrow and _no_better(lattice, i, j, earliest + length, value):
                continue
            fetched = _fetched(lattice, i, j, room.needed)
            if not free:
                length += fetched
            if earliest + length > upper:
                continue
            ends = _ends(lattice, i, j)
            x = labels.first[i]
            while x >= 0:
                if labels.used[x] < lattice.calls:
                    start = 0.0
                    for k in range(opened):
                        if room.needed[k]:
                            start = max(start, labels.times[x, k])
                    _reached(
                        lattice, labels, j, i, where, x, labels.used[x] + 1, start + length, ends, room.times, rest,
                        value,
                    )  # fmt: skip
                x = labels.later[x]


@njit(cache=True)
def begin(lattice, labels, start, room):  # type: ignore[no-untyped-def]
    """Nothing has been met but ideal ``start``, all of it ready at time 0."""
    labels.first[:] = -1
    labels.number[:] = 0
    labels.found[:] = -1
    room.stamp[:] = -1
    width = lattice.open_start[start + 1] - lattice.open_start[start] + 1
    _insert(labels, start, -1, 0, np.zeros(width), width)


@njit(cache=True)
def explore(lattice, labels, start, stop, free, rest, value, room):  # type: ignore[no-untyped-def]
    """Go on from the ideals ``start`` to ``stop`` (not included) that were met; lowers ``value``, the least time until
    all is done, by the calls that there may be.

    ``rest``: that of narrow ideals, known for all beyond the first, then of the last ideal.  ``free``: the calls from
    ``start`` pay nothing for what they read.  Returns whether there was room for all states: ``value`` is no bound
    otherwise.
    """
    for i in range(start, stop):
        if labels.first[i] < 0:
            continue
        for k in range(lattice.open_start[i], lattice.open_start[i + 1]):
            room.where[lattice.open_node[k]] = k - lattice.open_start[i]
        _on_host(lattice, labels, i, room.where, room.times, rest, value)
        _by_call(lattice, labels, i, room.where, rest, value, free and i == start, room)
        if labels.number[1]:
            return False
    return True
