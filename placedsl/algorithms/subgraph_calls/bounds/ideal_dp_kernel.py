"""Compiled: the dynamic program over ideals for the least latency of subgraph calls.

A state is an ideal (the nodes that have run), how much of the *budget* its calls have taken, and when the tensors that
are still read were made.  The budget is a number of calls, or of grains of memory for all of them.  From a state one
more node runs on the host, or one more call runs the nodes between the ideal and a larger one.  A state that another
one of its ideal equals or beats in every respect is dropped.

Where an accelerator makes several calls, a state knows which *pairs* (:mod:`.parted_pairs_kernel`) the last two calls
parted that parted any, and what these held.  On the host the nodes of a pair run one after the other.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.subgraph_calls.bounds.parted_pairs_kernel import counted, joined, remembered, second


@kernel(no_cpython_wrapper=True)
def _insert(states, j, x, called, used, since, held, times, width):  # type: ignore[no-untyped-def]
    """Add a state unless another of its ideal dominates it; drop those that it dominates."""
    y, last = states.first[j], -1
    while y >= 0:
        following = states.later[y]
        no_worse, no_better = states.used[y] <= used, states.used[y] >= used
        for g in range(len(held)):
            if g < len(since) and states.since[y, g] != since[g]:
                no_worse = no_better = False
            if states.held[y, g] > held[g]:
                no_worse = False
            elif states.held[y, g] < held[g]:
                no_better = False
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
    for g in range(len(held)):
        states.held[n, g] = held[g]
        if g < len(since):
            states.since[n, g] = since[g]
    states.ideal[n], states.before[n], states.called[n] = j, x, called
    for i in range(width):
        states.times[n, i] = times[i]
    states.later[n] = states.first[j]
    states.first[j] = n


@kernel(no_cpython_wrapper=True)
def _hopeless(lattice, j, used, times, width, value):  # type: ignore[no-untyped-def]
    """Whether no continuation of a state improves on ``value``, by the budget allowed."""
    base = lattice.open_start[j]
    for allowed in range(lattice.budget, used - 1, -1):
        least = times[width - 1]
        for i in range(width - 1):
            least = max(least, times[i] + lattice.ahead[j, allowed - used])
            least = max(least, times[i] + lattice.tail[base + i, allowed - used])
        if least < value[allowed]:
            return False
    return True


@kernel(no_cpython_wrapper=True)
def _settle(states, j, x, called, rest, used, finish, value):  # type: ignore[no-untyped-def]
    """An ideal was reached from state ``x`` at ``finish``; the least time from it is known by the budget left."""
    for allowed in range(used, len(value)):
        total = finish + rest[allowed - used]
        if total < value[allowed]:
            value[allowed] = total
            found = states.found[allowed]
            found[0], found[1], found[2], found[3] = x, j, used, called


# More than ten arguments: called for every state and step, too often to pack them.
@kernel()
def _reached(lattice, states, j, i, where, x, called, used, since, held, finish, ends, times, rest, value):  # type: ignore[no-untyped-def]
    """The state of ideal ``j`` after a step from state ``x`` of ideal ``i`` that ended at ``finish``."""
    if lattice.narrow[j] >= 0:
        # Everything in it comes before its one open node, which has just run: there is nothing else to remember.
        _settle(states, j, x, called, rest[lattice.narrow[j]], used, finish, value)
        return
    width = lattice.open_start[j + 1] - lattice.open_start[j] + 1
    for k in range(width - 1):
        v = lattice.open_node[lattice.open_start[j] + k]
        times[k] = states.times[x, where[v]] if lattice.inside[i, v] else finish
    # The latest end of nodes that nobody reads.
    end = states.times[x, lattice.open_start[i + 1] - lattice.open_start[i]]
    times[width - 1] = max(end, finish) if ends else end
    if j == len(lattice.narrow) - 1:
        _settle(states, j, x, called, rest[-1], used, times[0], value)
    elif not _hopeless(lattice, j, used, times, width, value):
        _insert(states, j, x, called, used, since, held, times, width)


@kernel(no_cpython_wrapper=True)
def _with(lattice, j, v):  # type: ignore[no-untyped-def]
    """The ideal with one node more than ``j``, which is ``v``."""
    for e in range(lattice.next_start[j], lattice.next_start[j + 1]):
        if lattice.next_node[e] == v:
            return lattice.next_ideal[e]
    return j


@kernel(no_cpython_wrapper=True)
def _on_host(lattice, states, i, where, times, rest, value, begun):  # type: ignore[no-untyped-def]
    """Steps with one more node, or one more chain of pairs, on the host; ``begun``: ``i`` is where the exploration
    began.
    """
    for e in range(lattice.next_start[i], lattice.next_start[i + 1]):
        j, v = lattice.next_ideal[e], lattice.next_node[e]
        if not np.isfinite(lattice.slow[v]) or (not begun and second(lattice, i, v)):
            continue
        takes, last = lattice.slow[v], v
        while lattice.partner[last] >= 0:
            last = lattice.partner[last]
            j, takes = _with(lattice, j, last), takes + lattice.slow[last]
        ends = lattice.made_start[last] == lattice.made_start[last + 1]
        x = states.first[i]
        while x >= 0:
            start = 0.0
            for k in range(lattice.maker_start[v], lattice.maker_start[v + 1]):
                start = max(start, states.times[x, where[lattice.maker[k]]])
            _reached(
                lattice, states, j, i, where, x, False, states.used[x], states.since[x], states.held[x], start + takes,
                ends, times, rest, value,
            )  # fmt: skip
            x = states.later[x]


@kernel(no_cpython_wrapper=True)
def _takes(lattice, held):  # type: ignore[no-untyped-def]
    """What a call that holds so many bytes takes of the budget, at least."""
    if lattice.grain == 0.0:
        return 1
    return int(max(0.0, held / lattice.grain - 1e-9))


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
        if not lattice.inside[i, lattice.open_node[k]]:
            total += lattice.open_out[k]
    return total


@kernel(no_cpython_wrapper=True)
def _earliest(lattice, states, i, opened):  # type: ignore[no-untyped-def]
    """When a call after any state of ideal ``i`` can start (inf: there is no such state)."""
    earliest = np.inf
    for v in range(len(lattice.fast)):
        if lattice.maker_start[v] == lattice.maker_start[v + 1] and not lattice.inside[i, v]:
            opened = 0  # one that waits for nothing
    x = states.first[i]
    while x >= 0:
        if states.used[x] + _takes(lattice, 0.0) <= lattice.budget:
            least = np.inf
            for k in range(opened):
                least = min(least, states.times[x, k])
            earliest = min(earliest, least if opened else 0.0)
        x = states.later[x]
    return earliest


@kernel(no_cpython_wrapper=True)
def _no_better(lattice, i, j, takes, finish, value):  # type: ignore[no-untyped-def]
    """Whether a call from ideal ``i`` to ``j`` that ends no earlier than ``finish`` improves nothing; ``takes``: of the
    budget.
    """
    for k in range(lattice.open_start[j], lattice.open_start[j + 1]):
        if not lattice.inside[i, lattice.open_node[k]]:
            better = 0
            for left in range(len(value) - takes):
                better += finish + lattice.ahead[j, left] < value[left + takes]
            return better == 0
    return False


@kernel(no_cpython_wrapper=True)
def _by_call(lattice, states, i, where, rest, value, free, begun, scratch):  # type: ignore[no-untyped-def]
    """Steps with one more call, breadth first over the ideals that it can end at; ``free``: its inputs cost nothing;
    ``begun``: ``i`` is where the exploration began, so that the call may have begun before it.
    """
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
            if lattice.part[v] > 0.0:
                maker = lattice.maker_start[v]
                if maker == lattice.maker_start[v + 1] or lattice.inside[i, lattice.maker[maker]]:
                    memory -= lattice.part[v]
            length = scratch.length[from_here] + lattice.fast[v]
            if memory > lattice.capacity or earliest + length > upper:
                continue
            scratch.stamp[j] = i
            scratch.held[j], scratch.length[j] = memory, length
            scratch.queue[tail] = j
            tail += 1
    room = lattice.capacity * (1.0 + 1e-12)
    # Narrow ones first: what they settle rules others out.
    for narrow in (True, False):
        for at in range(1, tail):
            j = scratch.queue[at]
            if (lattice.narrow[j] >= 0) != narrow:
                continue
            joins, fresh = counted(lattice, i, j)
            if begun:
                joins = 0
            if joins and fresh and not lattice.shared:
                continue
            takes = _takes(lattice, scratch.held[j])
            if not narrow and _no_better(lattice, i, j, takes, earliest + scratch.length[j], value):
                continue
            length = scratch.length[j] + _sent(lattice, i, j)
            if not narrow and _no_better(lattice, i, j, takes, earliest + length, value):
                continue
            fetched = _fetched(lattice, i, j, scratch.needed)
            if not free:
                length += fetched
            if earliest + length > upper:
                continue
            ends = lattice.ends[j] > lattice.ends[i]
            x = states.first[i]
            while x >= 0:
                which = joined(lattice, states, x, i, j) if joins else -1
                group = scratch.held[j] + (states.held[x, which] if which >= 0 else 0.0)
                if which >= -1 and states.used[x] + takes <= lattice.budget and group <= room:
                    if len(scratch.room):
                        remembered(lattice, states, x, i, j, which, fresh, group, scratch)
                    start = 0.0
                    for k in range(opened):
                        if scratch.needed[k]:
                            start = max(start, states.times[x, k])
                    _reached(
                        lattice, states, j, i, where, x, True, states.used[x] + takes, scratch.since,
                        scratch.room, start + length, ends, scratch.times, rest, value,
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
    scratch.since[:] = -1
    scratch.room[:] = 0.0
    _insert(states, start, -1, False, 0, scratch.since, scratch.room, np.zeros(width), width)


@kernel()
def explore(lattice, states, start, stop, free, rest, value, scratch):  # type: ignore[no-untyped-def]
    """Extend the states of the ideals from ``start`` up to ``stop``; lowers ``value``, the least time by the
    budget allowed.

    ``rest``: that of narrow ideals, known for all beyond the first, then of the last ideal.  ``free``: calls from
    ``start`` pay nothing for their inputs.  Returns whether there was space for all states: otherwise ``value`` is no
    bound.
    """
    for i in range(start, stop):
        if states.first[i] < 0:
            continue
        for k in range(lattice.open_start[i], lattice.open_start[i + 1]):
            scratch.where[lattice.open_node[k]] = k - lattice.open_start[i]
        begun = states.before[states.first[i]] < 0
        _on_host(lattice, states, i, scratch.where, scratch.times, rest, value, begun)
        _by_call(lattice, states, i, scratch.where, rest, value, free and begun, begun, scratch)
        if states.number[1]:
            return False
    return True
