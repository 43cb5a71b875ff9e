"""Compiled: plans over devices that are counted by class, from the loss towards the input, within a load.

What lies behind a stage matters to it by its copies (samples in flight) and by the devices of each class that it takes:
for each ideal, number of stages (a layer) and of copies, and for each number of devices of all classes but the last,
the fewest of the last.  Each stage is on devices of one class.  As with devices that are all alike, only the least
number of copies counts that satisfies the load and the memory; every number does where a plan has to have so many
devices or copies.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.pipelines.parallel_plans.like_stages import known, learn, place_of, remember, remembered
from placedsl.algorithms.pipelines.parallel_plans.options import UNKNOWN, YES
from placedsl.algorithms.pipelines.parallel_plans.plan_terms import NEVER, Asked, Stage
from placedsl.algorithms.pipelines.parallel_plans.question_kernel import (
    answered,
    begin_anew,
    bounded,
    devices_for,
    least_copies,
    most_together,
    times_sent,
)
from placedsl.algorithms.stages.cut_edges_kernel import contained, edge_costs, mark_cuts

#: What the rounding of sums over ideals may make of a comparison; closer ones are decided by the options themselves.
_ROUNDING = 1e-12


@kernel(nogil=True)
def extend(pairs, terms, knapsacks, scratch, loads, base, own, asked, fewest, used):  # type: ignore[no-untyped-def]
    """Go on from an ideal by stages on devices of one class; how many knapsacks were given up on.

    ``loads``   seconds within which all stages stay, and those on devices of the class
    ``own``     devices of the class, and what one more of them adds to a position in ``fewest`` (0: it is the last
                class)
    ``asked``   devices that all stages may have, whether every number of copies counts, and not only the least, and
                the devices of what is not reached
    ``fewest``  K l x (s + 1) x j devices of the last class, l the layers;  ``used``  j devices of all other classes
    """
    (whole, bound), (count, stride), (total, every, never) = loads, own, asked
    everything, classes, bounds = len(pairs.weight) - 1, len(terms.degree), terms.bounds
    paid, mark = scratch.paid, scratch.mark
    begin_anew(scratch)
    (position, last, begins), least = _states(fewest, base, bounds.layers, used, bounds.every, never)
    if least == NEVER:
        return 0
    mark_cuts(pairs, base, mark, True)
    rate = (1.0 - 1e-9) / bound
    for goal in range(base + 1, everything + 1):
        rest = devices_for(terms.weight[everything] - terms.weight[goal], whole)
        if least + 1 + rest > total or not contained(pairs, base, goal):
            continue
        edge_costs(pairs, base, goal, mark, False, paid)
        scratch.units[0] = -1  # not counted yet
        low, high, together = 1, terms.most_copies, bounds.most_held
        if bounds.of_kinds:
            low, high, together = bounded(terms, base, goal, scratch)
        for g in range(classes):
            if pairs.unsupported[g, goal] != pairs.unsupported[g, base]:
                continue
            time = pairs.unit_sum[0, g, goal] - pairs.unit_sum[0, g, base]
            edges, sent = max(paid[0, g], 0.0), terms.weights[g, goal] - terms.weights[g, base]
            first = least_copies(terms.exchange, terms.next_copies, terms.most_copies, time + edges, sent, rate)
            if 0 < first < low:
                first = terms.next_copies[low]
            most = min(high, count // terms.degree[g])
            if first == 0 or first > most:
                continue
            held = _held_at_most(terms, base, goal, g, together, scratch, knapsacks)
            if held == 0:
                continue
            scratch.seen[0] += 1
            for layer in range(bounds.layers):
                target = layer + 1
                if target == bounds.layers:
                    if not bounds.saturates:
                        break
                    target = layer
                source, target = base * bounds.layers + layer, goal * bounds.layers + target
                stage = Stage(base, goal, g, time, edges, sent, first, most, held, source, target)
                room = (count, stride, total - rest)
                of_layer = (position, last, begins[layer])
                _extend(terms, stage, knapsacks, bound, scratch, of_layer, room, every, fewest, used)
    mark_cuts(pairs, base, mark, False)
    return scratch.seen[2]


@kernel(nogil=True, no_cpython_wrapper=True, allocates=True)
def _states(fewest, base, layers, used, every, never):  # type: ignore[no-untyped-def]
    """The states of an ideal, by layers, that have fewer devices than any of the layer with fewer copies (``every``:
    all states): their positions, their devices of the last class, and where those of each layer and number of copies
    begin; and the fewest devices of any."""
    rows, width = fewest.shape[1], fewest.shape[2]
    begins = np.zeros((layers, rows + 1), dtype=np.int64)
    best = np.empty(width, dtype=np.int64)
    number, least = 0, NEVER
    for layer in range(layers):
        best[:] = never
        for s in range(rows):
            begins[layer, s] = number
            for j in range(width):
                k = fewest[base * layers + layer, s, j]
                if k < best[j] or (every and k < never):
                    best[j] = k
                    number += 1
        begins[layer, rows] = number
    position, last = np.empty(number, dtype=np.int64), np.empty(number, dtype=np.int64)
    at = 0
    for layer in range(layers):
        best[:] = never
        for s in range(rows):
            if begins[layer, s] == begins[layer, s + 1]:
                continue
            for j in range(width):
                k = fewest[base * layers + layer, s, j]
                if k < best[j] or (every and k < never):
                    best[j] = k
                    position[at], last[at] = j, k
                    least = min(least, k + used[j])
                    at += 1
    return (position, last, begins), least


@kernel(nogil=True, no_cpython_wrapper=True)
def _extend(terms, stage, knapsacks, bound, scratch, states, room, every, fewest, used):  # type: ignore[no-untyped-def]
    """Extend all states of a layer by a stage of one degree, with the fewest copies that do (``every``: with each
    number that does)."""
    position, last, begins = states
    held, start = terms.bounds.held, stage.first
    for behind in range(fewest.shape[1]):
        if begins[behind] == begins[behind + 1]:
            continue
        number, found = start, False
        while number and behind + number <= terms.most_copies and number <= stage.most:
            in_flight = -(-(held if held else behind + number) // number)
            if in_flight <= stage.in_flight:
                if scratch.stage[number] != scratch.seen[0]:
                    scratch.stage[number] = scratch.seen[0]
                    scratch.fits[number], scratch.exceeds[number] = 0, NEVER
                if scratch.fits[number] < in_flight < scratch.exceeds[number]:
                    answer = _fits(terms, stage, number, in_flight, bound, scratch, knapsacks)
                    if answer == YES:
                        scratch.fits[number] = in_flight
                    else:
                        scratch.exceeds[number] = in_flight
                if in_flight <= scratch.fits[number]:
                    begin, end = begins[behind], begins[behind + 1]
                    _reach(number, terms.degree[stage.g], room, position[begin:end], last[begin:end],
                           fewest[stage.target, behind + number], used)  # fmt: skip
                    if not found:
                        start, found = number, True
                    if not every:
                        break
            number = terms.next_copies[number + 1]
        if not found:
            return  # nor with more copies behind, and more samples in flight


@kernel(nogil=True, no_cpython_wrapper=True)
def _reach(copies, degree, room, position, last, row, used):  # type: ignore[no-untyped-def]
    """Note the states that some come to by a stage with so many copies."""
    (count, stride, devices), taken = room, copies * degree
    for i in range(len(position)):
        j, k = position[i], last[i]
        if used[j] + k + taken > devices:
            continue
        if stride:
            if (j // stride) % (count + 1) + taken > count:
                continue
            j += taken * stride
        else:
            k += taken
            if k > count:
                continue
        row[j] = min(row[j], k)


@kernel(nogil=True, no_cpython_wrapper=True)
def _fits(terms, stage, copies, in_flight, bound, scratch, knapsacks):  # type: ignore[no-untyped-def]
    """Whether options of a stage fit with so many copies and samples in flight (what the search over devices that are
    all alike has written out, as a call there takes as long as all else)."""
    base, goal, g = stage.base, stage.goal, stage.g
    exchange, room = times_sent(terms.exchange, copies), bound * copies - stage.edges
    time, need = stage.time + exchange * stage.sent, 0.0
    capacity = terms.capacity - (terms.sharded[g, goal] - terms.sharded[g, base]) / copies
    if terms.alike:
        need = (terms.stash[g, goal] - terms.stash[g, base]) * in_flight - capacity
        need += terms.memory[g, goal] - terms.memory[g, base]
        if need <= -terms.capacity * _ROUNDING and time <= room * (1.0 - _ROUNDING):
            return YES
    place = place_of(knapsacks.like, terms.of_kind, base, goal, g, copies, in_flight)
    answer = known(knapsacks.like, place, room)
    if answer == UNKNOWN:
        answer = answered(terms, stage, Asked(in_flight, exchange, room, capacity, time, need), scratch, knapsacks)
        learn(knapsacks.like, place, room, answer)
    return answer


@kernel(nogil=True, no_cpython_wrapper=True)
def _held_at_most(terms, base, goal, g, together, scratch, knapsacks):  # type: ignore[no-untyped-def]
    """How many samples a copy of a stage may hold for its smallest options to fit; 0: none."""
    place = place_of(knapsacks.like, terms.of_kind, base, goal, g, 0, 0)
    held = remembered(knapsacks.like, place)
    if held < 0:
        held = min(most_together(terms, base, goal, g, scratch), together)
        remember(knapsacks.like, place, held)
    return held
