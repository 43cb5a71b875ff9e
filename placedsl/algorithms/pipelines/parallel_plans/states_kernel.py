"""Compiled: the states of ideals, their fewest devices by copies: where a question begins, what a stage improves."""

from __future__ import annotations

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.pipelines.parallel_plans.plan_terms import COPIES_BITS, DEGREE_BITS, NEVER

#: So many states are looked at together.
_TOGETHER = 16


@kernel(nogil=True, no_cpython_wrapper=True)
def begin_states(reached, bounds):  # type: ignore[no-untyped-def]
    """Nothing is reached but the loss."""
    reached.devices[:] = NEVER
    if bounds.every:
        reached.devices[0, 0] = 0
    else:
        reached.devices[0, :] = 0


@kernel(nogil=True, no_cpython_wrapper=True)
def collect_states(reached, base, scratch, bounds):  # type: ignore[no-untyped-def]
    """Collect the states in which an ideal can be gone on from; the fewest devices of any (NEVER: there is none)."""
    states, least = 0, NEVER
    for layer in range(bounds.layers):
        scratch.begins[layer] = states
        row, fewest = base * bounds.layers + layer, NEVER
        for s in range(reached.devices.shape[1]):
            devices = reached.devices[row, s]
            if devices < fewest or (bounds.every and devices < NEVER):
                fewest = devices
                scratch.copies[states], scratch.devices[states] = s, devices
                states += 1
                least = min(least, devices)
    scratch.begins[bounds.layers] = states
    return least


@kernel(nogil=True, no_cpython_wrapper=True)
def next_new(scratch, i, last, reached, target, first, degree, devices, terms):  # type: ignore[no-untyped-def]
    """The next state from ``i`` on that becomes better than what is known by ``first`` copies more, within so many
    devices; ``last`` if there is none.

    States come by copies, with ever fewer devices: of some in a row, the last has the fewest, and the first is compared
    with the most that are known.
    """
    own, row = first * degree, reached.devices[target]
    every, room = terms.bounds.every, terms.most_copies - first
    while i < last and scratch.copies[i] <= room:
        end = min(i + _TOGETHER, last)
        k = scratch.devices[end - 1] + own
        if every or (k <= devices and row[scratch.copies[i] + first] > k):
            for j in range(i, end):
                k = scratch.devices[j] + own
                if scratch.copies[j] <= room and k <= devices and (every or row[scratch.copies[j] + first] > k):
                    return j
        i = end
    return last


@kernel(nogil=True, no_cpython_wrapper=True)
def next_held(scratch, i, last, reached, target, first, degree, devices, terms, fits):  # type: ignore[no-untyped-def]
    """The same, of the states from which a stage, with as many copies as there are devices for, holds no more in flight
    than ``fits``."""
    own, row, room = first * degree, reached.devices[target], terms.most_copies - first
    every, fixed = terms.bounds.every, terms.bounds.held
    samples = fits - (not fixed)
    # No state has fewer copies than the first; none fewer devices than the last, unless every state is kept.
    least, most = fixed if fixed else scratch.copies[i], devices if every else devices - scratch.devices[last - 1]
    if samples < 0 or least > samples * (most // degree):
        return last
    for j in range(i, last):
        if scratch.copies[j] > room:
            return last
        k, held = scratch.devices[j], fixed if fixed else scratch.copies[j]
        better = k + own <= devices and (every or row[scratch.copies[j] + first] > k + own)
        if better and held <= samples * ((devices - k) // degree):
            return j
    return last


@kernel(nogil=True, no_cpython_wrapper=True)
def note_reached(reached, stage, s, k, copies, alone):  # type: ignore[no-untyped-def]
    """Note a state, and that what is reached with so many copies is reached with more (not if it stands ``alone``)."""
    goal = stage.target
    reached.how[goal, s] = (((stage.source << DEGREE_BITS) + stage.g) << COPIES_BITS) + copies
    row, last = reached.devices[goal], s
    if not alone:
        # More copies never take more devices: the last state that takes more than k is looked for in steps that double.
        step = 1
        while last + step < len(row) and row[last + step] > k:
            last += step
            step *= 2
        while step:
            if last + step < len(row) and row[last + step] > k:
                last += step
            step //= 2
    row[s : last + 1] = k
