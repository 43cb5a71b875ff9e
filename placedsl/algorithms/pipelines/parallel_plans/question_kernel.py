"""Compiled: whether a plan stays within a load, by dynamic programming from the loss towards the input.

What lies behind a stage matters to it by two numbers only: the copies of all stages behind (samples in flight), and the
devices that they take.  An ideal is therefore worth, for each number of copies, the fewest devices.  From a state, and
with a tensor-parallel degree, only the least number of copies counts that satisfies the load and the memory: more of
them leave more in flight and fewer devices to everything before.   Piper, section 4, in the form of a threshold.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.pipelines.parallel_plans.goals_kernel import goals_of, has_room
from placedsl.algorithms.pipelines.parallel_plans.knapsack_kernel import most_in_flight, screened, time_within
from placedsl.algorithms.pipelines.parallel_plans.least_transfers import all_paid, edges_past, least_paid
from placedsl.algorithms.pipelines.parallel_plans.like_stages import known, learn, place_of, remember, remembered
from placedsl.algorithms.pipelines.parallel_plans.options import GIVEN_UP, TOO_SLOW, UNKNOWN, YES, Demand
from placedsl.algorithms.pipelines.parallel_plans.plan_terms import (
    NEVER,
    ROUND,
    SAMPLE,
    Asked,
    Stage,
)
from placedsl.algorithms.pipelines.parallel_plans.states_kernel import (
    begin_states,
    collect_states,
    next_held,
    next_new,
    note_reached,
)
from placedsl.algorithms.stages.cut_edges_kernel import edge_costs, mark_cuts

#: What the rounding of sums over ideals may make of a comparison; closer ones are decided by the options themselves.
_ROUNDING = 1e-12
#: By this share a load is taken to be more where stages are passed over that need more devices than there are.
_WIDER = 1e-8


@kernel(nogil=True)
def times_sent(exchange, copies):  # type: ignore[no-untyped-def]
    """How often all copies of a stage together send their weights, per sample."""
    if exchange.period == SAMPLE:
        return exchange.traffic * (copies - 1)
    if exchange.period == ROUND:
        return exchange.traffic * (copies - 1) / copies
    return exchange.traffic * (copies - 1) / exchange.microbatches


# Longer than 80 lines: functions that take the tuples apart in the inner loops make it twice as slow.
@kernel(nogil=True)
def within(pairs, terms, bound, reached, knapsacks, scratch, listed, begin, end):  # type: ignore[no-untyped-def]
    """Go on with ``reached`` for a load, from ideals ``begin`` to ``end`` (excluded; 0 begins anew).

    ``listed``: two lists of stages: those that matter for a greater load, if they are known, and room for those that do
    for this one.
    """
    everything, stages = len(pairs.weight) - 1, knapsacks.stages
    kept = len(stages.inside) > 0
    classes, bounds, transfers = len(terms.degree), terms.bounds, terms.transfers
    paid, mark, past, always = scratch.paid, scratch.mark, scratch.past, 0.0
    begin_anew(scratch)
    (those, these), summed = listed, past.shape[1] > 1
    known_before = those.number[0] >= 0
    if begin == 0:
        these.number[0] = -1 if kept else 0
        begin_states(reached, bounds)
        for ideal in range(everything + 1):
            work = terms.weight[everything] - terms.weight[ideal]
            scratch.rest[ideal] = devices_for(work + transfers.ahead[ideal], bound)
    reach, rate = bound * (1.0 + _WIDER), (1.0 - 1e-9) / bound
    for base in range(begin, min(end, everything)):
        if not kept:
            these.start[base] = these.start[base + 1] = these.number[0]
        fewest = collect_states(reached, base, scratch, bounds)
        if fewest == NEVER:
            continue
        if not kept:
            if not summed:
                mark_cuts(pairs, base, mark, True)
            always = edges_past(transfers, pairs.cuts, base, past)
        for j in range(goals_of(pairs, terms, stages, those, scratch, base, fewest, reach)):
            goal = scratch.goals[j]
            left = terms.devices - scratch.rest[goal] - fewest
            if not kept and summed:
                all_paid(pairs, transfers, past, base, goal, paid)
            elif not kept:
                if not known_before:
                    work = terms.weight[goal] - terms.weight[base]
                    if work + least_paid(transfers, past, always, base, goal) > left * reach:
                        continue
                edge_costs(pairs, base, goal, mark, False, paid)
            scratch.units[0], matters = -1, False  # not counted yet
            low, high, together = 1, terms.most_copies, bounds.most_held
            if bounds.of_kinds:
                low, high, together = bounded(terms, base, goal, scratch)
            for g in range(classes):
                if pairs.unsupported[g, goal] != pairs.unsupported[g, base] or not has_room(terms, base, goal, g):
                    continue
                time = pairs.unit_sum[0, g, goal] - pairs.unit_sum[0, g, base]
                edges = stages.edges[base, goal, g] if kept else max(paid[0, g], 0.0)
                if (time + edges) * terms.degree[g] > left * reach:
                    continue
                sent = terms.weights[g, goal] - terms.weights[g, base]
                first = least_copies(
                    terms.exchange, terms.next_copies, terms.most_copies, time + edges, sent, rate
                )  # fmt: skip
                if first < low:
                    first = terms.next_copies[low] if first else 0
                if first == 0 or first > high:
                    continue
                degree, devices, fits = terms.degree[g], terms.devices - scratch.rest[goal], -1
                matters = matters or first * degree <= left
                for layer in range(bounds.layers):
                    target = layer + 1
                    if target == bounds.layers:
                        if not bounds.saturates:
                            break
                        target = layer
                    source, target = base * bounds.layers + layer, goal * bounds.layers + target
                    last = scratch.begins[layer + 1]
                    if first * degree > devices:
                        continue
                    i = next_new(scratch, scratch.begins[layer], last, reached, target, first, degree, devices, terms)
                    if i == last:
                        continue
                    if fits < 0 and kept:
                        fits = stages.together[base, goal, g]
                    if fits < 0:
                        place = place_of(knapsacks.like, terms.of_kind, base, goal, g, 0, 0)
                        fits = remembered(knapsacks.like, place)
                        if fits < 0:
                            fits = min(most_together(terms, base, goal, g, scratch), together)
                            remember(knapsacks.like, place, fits)
                        if kept:
                            stages.together[base, goal, g] = fits
                    i = next_held(scratch, i, last, reached, target, first, degree, devices, terms, fits)
                    if i < last:
                        stage = Stage(base, goal, g, time, edges, sent, first, high, fits, source, target)
                        scratch.seen[0] += 1
                        _extend(terms, stage, i, last, devices, bound, reached, scratch, knapsacks)
            if matters and not kept:
                list_stage(these, base, goal)
        if not kept and not summed:
            mark_cuts(pairs, base, mark, False)


@kernel(nogil=True, no_cpython_wrapper=True)
def begin_anew(scratch):  # type: ignore[no-untyped-def]
    """Nothing is known, and nothing was looked at yet."""
    scratch.stage[:] = 0
    scratch.seen[:] = 0


@kernel(nogil=True, no_cpython_wrapper=True)
def list_stage(these, base, goal):  # type: ignore[no-untyped-def]
    """Add a stage to a list; one that has no room for it is none."""
    number = these.number[0]
    if 0 <= number < len(these.goal):
        these.goal[number] = goal
        these.number[0] = these.start[base + 1] = number + 1
    else:
        these.number[0] = -1


@kernel(nogil=True, no_cpython_wrapper=True)
def devices_for(weight, bound):  # type: ignore[no-untyped-def]
    """How many devices some time of devices needs at least, within a load."""
    return np.int64(np.ceil(weight / bound * (1.0 - 1e-9)))


@kernel(nogil=True, no_cpython_wrapper=True)
def bounded(terms, base, goal, scratch):  # type: ignore[no-untyped-def]
    """The fewest and the most copies of a stage, and the most samples in flight, by the nodes that it has."""
    _count(terms, base, goal, scratch)
    bounds, low, high, together = terms.bounds, 1, terms.most_copies, terms.bounds.most_held
    for c in range(len(scratch.units)):
        if scratch.units[c]:
            low, high = max(low, bounds.fewest[c]), min(high, bounds.most[c])
            together = min(together, bounds.in_flight[c])
    return min(low, terms.most_copies + 1), high, together


@kernel(nogil=True, no_cpython_wrapper=True)
def _extend(terms, stage, state, states, devices, bound, reached, scratch, knapsacks):  # type: ignore[no-untyped-def]
    """Extend the states of a row, from one on, by a stage of one degree, with the fewest copies that do (with each
    number of them that does, where every state is kept).

    ``devices``: how many may be used with the stage.
    """
    base, goal, g, target, together = stage.base, stage.goal, stage.g, stage.target, stage.in_flight
    degree, like = terms.degree[g], knapsacks.like
    every, held = terms.bounds.every, terms.bounds.held
    start = stage.first  # with fewer copies there are too many samples in flight, for the states to come as well
    i = state
    while start and i < states:
        behind, used = scratch.copies[i], scratch.devices[i]
        if together == 1 and behind > 0 and not held:
            return  # states come by copies
        if held:
            if start * together < held:
                start = terms.next_copies[min(-(-held // together), terms.most_copies + 1)]
        elif together > 1 and start * (together - 1) < behind:
            start = terms.next_copies[min(-(-behind // (together - 1)), terms.most_copies + 1)]
        copies, refused = start, True
        while copies:
            s, k = behind + copies, used + copies * degree
            if s > terms.most_copies or k > devices or copies > stage.most:
                break
            if reached.devices[target, s] <= k:
                if not every:
                    break
                copies, refused = terms.next_copies[copies + 1], False
                continue
            in_flight = -(-(held if held else s) // copies)
            if scratch.stage[copies] != scratch.seen[0]:
                scratch.stage[copies] = scratch.seen[0]
                scratch.fits[copies], scratch.exceeds[copies] = 0, NEVER
            if scratch.fits[copies] < in_flight < scratch.exceeds[copies]:
                exchange, room = times_sent(terms.exchange, copies), bound * copies - stage.edges
                time, need, answer = stage.time + exchange * stage.sent, 0.0, UNKNOWN
                capacity = terms.capacity - (terms.sharded[g, goal] - terms.sharded[g, base]) / copies
                if terms.alike:
                    need = (terms.stash[g, goal] - terms.stash[g, base]) * in_flight - capacity
                    need += terms.memory[g, goal] - terms.memory[g, base]
                    if need <= -terms.capacity * _ROUNDING and time <= room * (1.0 - _ROUNDING):
                        answer = YES
                scratch.seen[1] += 1
                if answer == UNKNOWN:
                    place = place_of(like, terms.of_kind, base, goal, g, copies, in_flight)
                    answer = known(like, place, room)
                    if answer == UNKNOWN:
                        asked = Asked(in_flight, exchange, room, capacity, time, need)
                        answer = answered(terms, stage, asked, scratch, knapsacks)
                        learn(like, place, room, answer)
                if answer == YES:
                    scratch.fits[copies] = in_flight
                else:
                    scratch.exceeds[copies] = 0 if answer == TOO_SLOW else in_flight
            if in_flight <= scratch.fits[copies]:
                note_reached(reached, stage, s, k, copies, every)
                if not every:
                    break
                refused = False
            elif refused:
                start = terms.next_copies[copies + 1]
            copies = terms.next_copies[copies + 1]
        i = next_new(scratch, i + 1, states, reached, target, start, degree, devices, terms)


@kernel(nogil=True, no_cpython_wrapper=True)
def answered(terms, stage, asked, scratch, knapsacks):  # type: ignore[no-untyped-def]
    """Whether options of a stage fit, by the relaxation, or by the knapsack itself."""
    _count(terms, stage.base, stage.goal, scratch)
    if asked.need > terms.capacity * _ROUNDING and len(knapsacks.kept.swaps):
        answer = screened(
            terms.table, knapsacks.kept, scratch.units, scratch.every, stage.g, asked.in_flight, asked.time, asked.need,
            asked.room,
        )  # fmt: skip
        if answer != GIVEN_UP:
            return answer
    active = scratch.kinds[: _present(scratch.units, scratch.kinds)]
    demand = Demand(active, scratch.units, stage.g, asked.in_flight, asked.exchange, asked.room, asked.capacity)
    answer, _ = time_within(terms.table, demand, knapsacks.space)
    scratch.seen[2] += answer == GIVEN_UP
    return answer


@kernel(nogil=True, no_cpython_wrapper=True, inline="always")
def _count(terms, base, goal, scratch):  # type: ignore[no-untyped-def]
    """Count the units of a stage by kind, once."""
    if scratch.units[0] < 0:
        for c in range(len(scratch.units)):
            scratch.units[c] = terms.of_kind[goal, c] - terms.of_kind[base, c]


@kernel(nogil=True, no_cpython_wrapper=True)
def most_together(terms, base, goal, g, scratch):  # type: ignore[no-untyped-def]
    """How many samples may be in flight at most for the smallest options of a stage to fit; 0: none."""
    if len(terms.smallest) == 0:
        _count(terms, base, goal, scratch)
        active = scratch.kinds[: _present(scratch.units, scratch.kinds)]
        return most_in_flight(terms.table, active, scratch.units, g, terms.capacity, terms.bounds.most_held + 1)
    most, low, step = terms.smallest.shape[1], 0, 1
    # Seldom many: from few on, in steps that double, then by halves.
    while low + step <= most and _smallest_fit(terms, base, goal, g, low + step):
        low += step
        step *= 2
    high = min(low + step, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if _smallest_fit(terms, base, goal, g, middle):
            low = middle
        else:
            high = middle
    return low


@kernel(nogil=True, no_cpython_wrapper=True, inline="always")
def _smallest_fit(terms, base, goal, g, in_flight):  # type: ignore[no-untyped-def]
    """Whether the smallest options of a stage fit with so many samples in flight."""
    sums = terms.smallest[g, in_flight - 1]
    return sums[goal] - sums[base] <= terms.capacity * (1.0 + _ROUNDING)


@kernel(nogil=True, no_cpython_wrapper=True, inline="always")
def _present(count, kinds):  # type: ignore[no-untyped-def]
    """Write the kinds of which there are units into ``kinds``; how many there are."""
    there = 0
    for c in range(len(count)):
        if count[c]:
            kinds[there] = c
            there += 1
    return there


@kernel(nogil=True, no_cpython_wrapper=True)
def least_copies(exchange, next_copies, most, alone, sent, rate):  # type: ignore[no-untyped-def]
    """The fewest copies that stay within a load under the quickest options (0: none): what copies send only grows with
    their number, so that each bound on it gives the next one.  ``alone``: the load of one copy;  ``sent``: seconds to
    send the weights once;  ``rate``: one over the load, and a little less for rounding."""
    copies = next_copies[1]
    while copies:
        needed = np.ceil((alone + times_sent(exchange, copies) * sent) * rate)
        if needed <= copies:
            return copies
        if needed > most:
            return 0
        copies = next_copies[np.int64(needed)]
    return 0
