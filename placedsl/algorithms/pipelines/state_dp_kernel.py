"""Compiled: the dynamic program over ideals and numbers of devices used."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.stages.cut_edges_kernel import (
    StagePairs,
    contained,
    edge_costs,
    largest_load,
    least_load,
    mark_cuts,
)
from placedsl.arrays import Floats, Integers


class IdealLattice(NamedTuple):
    """K ideals with the stages between them, the empty one first and everything last.

    ``pairs``       the ideals and the stages between them
    ``memory``      K sums of memory
    ``key``, ``near``   c x K: the first load component of a stage J \\ I is at least ``key[J] - near[I]``
    """

    pairs: StagePairs
    memory: Floats
    key: Floats
    near: Floats


class DeviceStates(NamedTuple):
    """How many devices of each class have been used, s states.

    ``digits``  s x c;  ``stride``  c: one more device of class c is ``state + stride[c]``;  ``total``  c
    ``takes``   s: the weight that the devices that are left can take;  ``free_memory``  s: their memory
    ``widest``  the weight that one device can take at most;  ``share``  c: the weight that it takes at least
    ``turn``    the states by the number of devices used;  ``whole``  the weight of everything
    """

    digits: Integers
    stride: Integers
    total: Integers
    takes: Integers
    free_memory: Floats
    widest: int
    share: Integers
    turn: Integers
    whole: int


class Progress(NamedTuple):
    """Where the search stands; all of it is written to.

    ``limit``   1: the largest load of interest; falls where the search is exact
    ``cursor``  3: turn, class and ideal to go on from
    ``seen``    3: pairs of ideals looked at, of these subsets, of these evaluated
    ``left``    1: pairs until the next look at the clock
    """

    limit: Floats
    cursor: Integers
    seen: Integers
    left: Integers


@kernel(allocates=True)
def join(exact: bool, lattice: IdealLattice, states: DeviceStates, value: Floats, progress: Progress) -> bool:
    """State after state, for every ideal a stage that ends there: the best, or where not ``exact`` any.

    ``value[i, s]``: the least largest load of a chain from nothing to ideal i by the devices of state s, nan where that
    is of no interest; where not ``exact``, 0 for whatever stays within the limit.  True when done; otherwise it is to
    be called again.
    """
    everything, classes = len(lattice.memory) - 1, len(states.stride)
    cursor = progress.cursor
    bases = np.empty(len(lattice.memory), dtype=np.int64)
    while cursor[0] < len(states.turn):
        s, c = states.turn[cursor[0]], cursor[1]
        if c == classes:
            if not exact and value[everything, s] == 0.0:
                return True
            cursor[0] += 1
            cursor[1] = 0
            continue
        count = _bases(lattice, states, value, progress.limit[0], s, c, bases) if states.digits[s, c] > 0 else 0
        if count and not _join_class(exact, lattice, states, value, progress, bases[:count], s, c):
            return False
        cursor[1] += 1
        cursor[2] = 0
    return True


@kernel(no_cpython_wrapper=True)
def _bases(
    lattice: IdealLattice, states: DeviceStates, value: Floats, limit: float, s: int, c: int, bases: Integers
) -> int:
    """Collect the ideals from which one more device of class c, into state s, can be of use; how many there are."""
    p = s - states.stride[c]
    memory, everything = lattice.memory, len(lattice.memory) - 1
    count = 0
    for i in range(everything):
        if not value[i, p] <= limit or value[i, p] == np.inf or memory[everything] - memory[i] > states.free_memory[p]:
            continue
        useful = True
        for d in range(len(states.stride)):
            if states.digits[p, d] and value[i, p - states.stride[d]] <= value[i, p]:
                useful = False  # as good with a device less
                break
        if useful:
            bases[count] = i
            count += 1
    return count


# Longer than 80 lines: a call per ideal, with all these arrays, would cost more than what it does.
@kernel(no_cpython_wrapper=True, allocates=True)
def _join_class(
    exact: bool, lattice: IdealLattice, states: DeviceStates, value: Floats, progress: Progress, bases: Integers,
    s: int, c: int,
) -> bool:  # fmt: skip
    """For every ideal a stage from one of the ``bases`` on a device of class c; False when it is to be called again.

    The stages that end at an ideal are looked at by rising bounds of their loads, so that the first ones do and the
    rest can be left.
    """
    pairs, memory, near, key = lattice.pairs, lattice.memory, lattice.near[c], lattice.key[c]
    weight, words, top = pairs.weight, pairs.words, pairs.top
    limit, cursor, seen, left = progress.limit, progress.cursor, progress.seen, progress.left
    everything, lanes, count = len(weight) - 1, words.shape[0], len(bases)
    paid = np.zeros((pairs.limit.shape[0], len(states.stride)))
    mark = np.zeros(pairs.input_cost.shape[2], dtype=np.int32)
    chosen = bases[np.argsort(-near[bases])]
    here = near[chosen]
    before = value[:, s - states.stride[c]][chosen]
    packed = np.empty((count, lanes), dtype=np.uint64)
    for w in range(lanes):
        packed[:, w] = words[w][chosen]
    lightest = weight[chosen].min() + states.share[c]
    hint = 0
    for goal in range(cursor[2], everything + 1):
        best = value[goal, s]
        if np.isnan(best) or weight[goal] < lightest or memory[everything] - memory[goal] > states.free_memory[s]:
            continue
        for d in range(len(states.stride)):
            if states.digits[s, d] and value[goal, s - states.stride[d]] < best:
                best = value[goal, s - states.stride[d]]
        if not exact and best == 0.0:
            continue
        if left[0] <= 0:
            cursor[2] = goal
            return False
        highest = min(best, limit[0]) * (1.0 + 1e-9)
        ready = False
        for turned in range(-1, count):
            # First the one that was best for the goal before.
            k = hint if turned < 0 else turned
            if key[goal] - here[k] > highest:
                if turned < 0:
                    continue
                break
            left[0] -= 1
            seen[0] += 1
            if before[k] >= best:
                continue
            base = chosen[k]
            stage = weight[goal] - weight[base]
            if stage < states.share[c] or stage > states.widest:
                continue
            inside = True
            for w in range(lanes):
                if ((words[w, goal] | top) - packed[k, w]) & top != top:
                    inside = False
                    break
            if not inside or base >= goal:
                continue
            seen[1] += 1
            if pairs.unsupported[c, goal] != pairs.unsupported[c, base]:
                continue
            least = least_load(pairs, base, goal, c, limit[0])
            if not (max(before[k], least) if exact else least) < best:
                continue
            left[0] -= 8
            seen[2] += 1
            if not ready:
                ready = True
                mark_cuts(pairs, goal, mark, True)
            edge_costs(pairs, base, goal, mark, True, paid)
            load = largest_load(pairs, base, goal, c, paid, limit[0])
            reached = max(before[k], load) if exact else 0.0
            if load == np.inf or not reached < best:
                continue
            best = reached
            hint = k
            value[goal, s] = reached
            if not exact:
                break
            if goal == everything:
                limit[0] = min(limit[0], reached)
            highest = min(best, limit[0]) * (1.0 + 1e-9)
        if ready:
            mark_cuts(pairs, goal, mark, False)
    return True


@kernel(allocates=True)
def previous(
    goal: int, state: int, exact: bool, lattice: IdealLattice, states: DeviceStates, value: Floats, limit: float
) -> tuple[int, int]:
    """A stage that ends at ideal ``goal`` in ``state`` with the value there: where it begins, and its class.

    (-1, -1) where there is none.
    """
    pairs, digits, stride = lattice.pairs, states.digits, states.stride
    bound = value[goal, state] if exact else limit
    paid = np.zeros((pairs.limit.shape[0], len(stride)))
    mark = np.zeros(pairs.input_cost.shape[2], dtype=np.int32)
    mark_cuts(pairs, goal, mark, True)
    for base in range(goal - 1, -1, -1):
        if pairs.weight[goal] - pairs.weight[base] > states.widest:
            break
        for c in range(len(stride)):
            if digits[state, c] == 0 or not value[base, state - stride[c]] <= value[goal, state]:
                continue
            if pairs.unsupported[c, goal] != pairs.unsupported[c, base]:
                continue
            if not contained(pairs, base, goal):
                continue
            edge_costs(pairs, base, goal, mark, True, paid)
            if largest_load(pairs, base, goal, c, paid, bound) < np.inf:
                return base, c
    return -1, -1
