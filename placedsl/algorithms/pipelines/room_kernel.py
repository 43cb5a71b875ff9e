"""Compiled: the least memory that pipelines have left to hold, where devices pay for what they send elsewhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.pipelines.state_dp_kernel import DeviceStates
from placedsl.algorithms.stages.cut_edges_kernel import (
    StagePairs,
    contained,
    edge_costs,
    largest_load,
    least_load,
    mark_cuts,
)
from placedsl.arrays import Booleans, Floats, Integers

#: So many choices are looked at for the least cost; then what fractions of groups would cost is taken.
_MOST_CHOICES = 2_000


class AtHome(NamedTuple):
    """What is at home in K ideals: g groups of units; c device classes.

    ``memory``   K: what an ideal occupies, all that is at home in it included;  ``limit``  c
    ``inside``   K x g: the home of the group is in the ideal;  ``paid``  K x g: leaving the ideal costs nothing
    ``group``    g: memory;  ``cost``  c x g: of leaving;  ``order``  c x g: groups by rising cost per memory
    ``advance``  K: how much may be held before its home is reached
    """

    memory: Floats
    limit: Floats
    inside: Booleans
    paid: Booleans
    group: Floats
    cost: Floats
    order: Integers
    advance: Floats


@kernel(allocates=True)
def least_cost(cost: Floats, memory: Floats, need: float, most: float, taken: Booleans) -> float:
    """The least cost of groups that occupy ``need`` together; inf where it is above ``most``, or all are not enough.

    The groups come by rising cost per memory.  ``taken`` says which they are: none where they would take too long to
    be found, and the cost is that of fractions.
    """
    count = len(cost)
    best, best_above = np.inf, most
    chosen = np.zeros(count, dtype=np.bool_)
    taken[:count] = False
    spent, held, k, first = 0.0, 0.0, 0, np.inf
    for choices in range(_MOST_CHOICES):
        # What fractions of the groups that are left would cost at least.
        least, missing = spent, need - held
        for i in range(k, count):
            if missing <= 0.0:
                break
            least += min(1.0, missing / memory[i]) * cost[i]
            missing -= memory[i]
        if choices == 0:
            first = least if missing <= 0.0 else np.inf
        if held >= need and spent <= best_above:
            best, best_above = spent, spent * (1.0 - 1e-9)
            taken[:count] = chosen
        elif missing <= 0.0 and least <= best_above and k < count:
            chosen[k] = True
            spent += cost[k]
            held += memory[k]
            k += 1
            continue
        # Back to the last one that was taken, and without it.
        while k > 0 and not chosen[k - 1]:
            k -= 1
        if k == 0:
            return best
        chosen[k - 1] = False
        spent -= cost[k - 1]
        held -= memory[k - 1]
    if best < np.inf:
        return best
    return first if first <= most else np.inf


@kernel(allocates=True)
def leaving(
    homes: AtHome, base: int, goal: int, c: int, most: float, tolerance: float, leaves: Booleans
) -> bool:  # fmt: skip
    """Whether a stage can have room for what it holds by itself, and which groups ``leave`` it then for the least cost.

    ``most``: what the device may pay for them.
    """
    groups = len(homes.group)
    leaves[:] = False
    need = homes.memory[goal] - homes.memory[base] - homes.limit[c] - tolerance
    if need <= 0.0:
        return True
    which = np.empty(groups, dtype=np.int64)
    count = 0
    for k in range(groups):
        g = homes.order[c, k]
        if homes.inside[goal, g] and not homes.inside[base, g]:
            if homes.paid[goal, g]:
                need -= homes.group[g]
                leaves[g] = True
            else:
                which[count] = g
                count += 1
    if need <= 0.0:
        return True
    own = which[:count]
    taken = np.zeros(count, dtype=np.bool_)
    if least_cost(homes.cost[c][own], homes.group[own], need, most, taken) == np.inf:
        return False
    for k in range(count):
        leaves[own[k]] = taken[k]
    return True


@kernel(allocates=True)
def least_away(
    pairs: StagePairs, homes: AtHome, states: DeviceStates, allowed: Booleans, bound: float, tolerance: float
) -> tuple[Floats, Integers, Floats]:
    """The least memory that is away from home at an ideal by the devices of a state (inf: none gets there), K x s.

    And K x s x 2: the ideal and the class of the stage by which it got there (-1: none; the same ideal: a device that
    has nothing of it), and K x s the load of that stage.
    """
    ideals, numbers = allowed.shape
    away, load = np.full((ideals, numbers), np.inf), np.zeros((ideals, numbers))
    by = np.full((ideals, numbers, 2), -1, dtype=np.int64)
    away[0, 0] = 0.0
    leaves = np.empty(len(homes.group), dtype=np.bool_)
    mark = np.zeros(pairs.input_cost.shape[2], dtype=np.int32)
    paid = np.zeros((pairs.limit.shape[0], len(states.stride)))
    for s in states.turn:
        for c in range(len(states.stride)):
            if states.digits[s, c] == 0:
                continue
            p = s - states.stride[c]
            bases = np.flatnonzero(away[:, p] < np.inf)
            for base in bases:
                there = max(away[base, p] - homes.limit[c], -homes.advance[base])
                if allowed[base, s] and there < away[base, s]:
                    away[base, s] = there
                    by[base, s, 0], by[base, s, 1], load[base, s] = base, c, 0.0
            for goal in range(1, ideals if len(bases) else 0):
                if not allowed[goal, s]:
                    continue
                ready = False
                for base in bases:
                    if base >= goal:
                        break
                    over = homes.memory[goal] - homes.memory[base] - homes.limit[c]
                    there = max(away[base, p] + over, -homes.advance[goal])
                    if there >= away[goal, s] or pairs.weight[goal] - pairs.weight[base] > states.widest:
                        continue
                    if pairs.unsupported[c, goal] != pairs.unsupported[c, base] or not contained(pairs, base, goal):
                        continue
                    if not least_load(pairs, base, goal, c, bound) < np.inf:
                        continue
                    if not ready:
                        mark_cuts(pairs, goal, mark, True)
                        ready = True
                    edge_costs(pairs, base, goal, mark, True, paid)
                    own = largest_load(pairs, base, goal, c, paid, bound)
                    if own < np.inf and leaving(homes, base, goal, c, bound - own, tolerance, leaves):
                        away[goal, s] = there
                        by[goal, s, 0], by[goal, s, 1], load[goal, s] = base, c, own
                if ready:
                    mark_cuts(pairs, goal, mark, False)
    return away, by, load
