"""Compiled: what a state of :mod:`.ideal_dp_kernel` knows of pairs that its ideal parts.

A pair are two nodes of one class, the second of which reads the first, and neither anything else.  An ideal that holds
the first alone *parts* them, and the call that runs the second later is one of the same accelerator as that of the
first: it shares its memory.  If an accelerator makes two calls at most, these two are all, and all that the first of
them parted, the second joins.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel


@kernel(no_cpython_wrapper=True)
def second(lattice, i, v):  # type: ignore[no-untyped-def]
    """Whether a node is the second of a pair that ideal ``i`` parts."""
    for k in range(lattice.parted_start[i], lattice.parted_start[i + 1]):
        if lattice.partner[lattice.parted[k]] == v:
            return True
    return False


@kernel(no_cpython_wrapper=True)
def _parted_by(lattice, states, x, u):  # type: ignore[no-untyped-def]
    """Which of the calls that state ``x`` knows has parted the pair of ``u``; their number: another."""
    calls = states.since.shape[1]
    for g in range(calls):
        if states.since[x, g] >= 0 and not lattice.inside[states.since[x, g], u]:
            return g
    return calls


@kernel(no_cpython_wrapper=True)
def joined(lattice, states, x, i, j):  # type: ignore[no-untyped-def]
    """Which call's pairs a call from ideal ``i`` to ``j`` joins (-1: none, -2: that cannot be)."""
    which = -1
    for k in range(lattice.parted_start[i], lattice.parted_start[i + 1]):
        u = lattice.parted[k]
        if lattice.inside[j, lattice.partner[u]]:
            g = _parted_by(lattice, states, x, u)
            if which >= 0 and g != which:
                return -2
            which = g
    if 0 <= which < states.since.shape[1]:
        for k in range(lattice.parted_start[i], lattice.parted_start[i + 1]):
            u = lattice.parted[k]
            if not lattice.inside[j, lattice.partner[u]] and _parted_by(lattice, states, x, u) == which:
                return -2
    return which


@kernel(no_cpython_wrapper=True)
def remembered(lattice, states, x, i, j, which, fresh, group, scratch):  # type: ignore[no-untyped-def]
    """What a state of ideal ``j`` knows of parted pairs after a call of ``group`` bytes from state ``x`` of ideal
    ``i``, which joined those of call ``which`` and parted ``fresh`` pairs.
    """
    calls, known, others = states.since.shape[1], 0, np.inf
    for k in range(lattice.parted_start[j], lattice.parted_start[j + 1]):
        u = lattice.parted[k]
        if lattice.inside[i, u] and _parted_by(lattice, states, x, u) == calls:
            others = states.held[x, calls]
    scratch.since[:] = -1
    scratch.room[:] = 0.0
    if fresh and lattice.shared:
        others = min(others, group)
    elif fresh:
        scratch.since[0], scratch.room[0], known = i, group, 1
    for g in range(calls):
        if states.since[x, g] < 0 or g == which:
            continue
        if known < calls:
            scratch.since[known], scratch.room[known] = states.since[x, g], states.held[x, g]
            known += 1
        else:
            others = min(others, states.held[x, g])
    scratch.room[calls] = others if others < np.inf else 0.0


@kernel(no_cpython_wrapper=True)
def counted(lattice, i, j):  # type: ignore[no-untyped-def]
    """How many pairs that ideal ``i`` parts ideal ``j`` holds, and how many ``j`` parts that ``i`` does not."""
    joins = fresh = 0
    for k in range(lattice.parted_start[i], lattice.parted_start[i + 1]):
        joins += lattice.inside[j, lattice.partner[lattice.parted[k]]]
    for k in range(lattice.parted_start[j], lattice.parted_start[j + 1]):
        fresh += not lattice.inside[i, lattice.parted[k]]
    return joins, fresh
