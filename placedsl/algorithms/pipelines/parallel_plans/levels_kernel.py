"""Compiled: whether a plan over clusters within clusters stays within a load, level by level.

What a cluster holds may run in several clusters of its level, which share the samples.  Within a cluster its devices
(or the clusters in it) divide what it holds once more.  From the loss towards the input, an ideal is worth triples: the
copies behind it, the devices or clusters that they take, and the weights that one copy of them has.  What lies inside
one cluster is such a search of its own, for every state in which it may begin and every number of its copies.

Tarnawski et al. 2021, Appendix E, with the samples in flight counted exactly.
"""

from __future__ import annotations

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.pipelines.parallel_plans.knapsack_kernel import time_within
from placedsl.algorithms.pipelines.parallel_plans.options import GIVEN_UP, TOO_SLOW, YES, Demand
from placedsl.algorithms.pipelines.parallel_plans.plan_terms import BATCH, NEVER, SAMPLE
from placedsl.algorithms.pipelines.parallel_plans.question_kernel import times_sent


@kernel(nogil=True)
def sent_within(exchange, copies, around):  # type: ignore[no-untyped-def]
    """How often the copies in one cluster together send their weights, per sample of all clusters that hold the same.

    ``around``: in how many clusters the same runs.
    """
    often = times_sent(exchange, copies)
    return often * around if exchange.period == BATCH else often


@kernel(nogil=True)
def load_around(exchange, copies, around, edges, weights):  # type: ignore[no-untyped-def]
    """Seconds per sample over the link around a cluster.

    ``copies``: clusters that share the samples of what is around them, which runs ``around`` times itself.
    """
    out = edges / (copies * around)
    if copies > 1:
        often = exchange.traffic * (copies - 1) / copies * weights
        if exchange.period == BATCH:
            out += often / exchange.microbatches
        elif exchange.period == SAMPLE:
            out += often / around
        else:
            out += often / (copies * around)
    return out


# More than ten arguments: numba compiles tuples within tuples for long, and these are all that there is to pass on.
@kernel(nogil=True)
def reach(terms, states, known, inner, bound, level, first, behind, around, weighed, begin, end):  # type: ignore[no-untyped-def]
    """All triples of a level from an ideal on, for a load; of the ideals ``begin`` to ``end`` (excluded) those that can
    be gone on from (with ``begin`` at the first, anew).

    ``behind``: copies behind that ideal, a multiple of ``around``, which is how often what is planned runs;
    ``weighed``: whether weights matter to what is around.
    """
    ideals = len(terms.weight)
    if begin == first:
        for goal in range(first, ideals):
            states.number[level, goal] = 0
        states.number[level, first] = 1
        states.copies[level, first, 0] = states.used[level, first, 0] = 0
        states.weights[level, first, 0] = 0.0
    for base in range(begin, min(end, ideals - 1)):
        if states.number[level, base] == 0:
            continue
        if level == 0:
            _stages(terms, states, known, bound, base, behind, around, weighed)
            continue
        top = level == len(terms.size) - 1
        for i in range(states.number[level, base]):
            copies, used = states.copies[level, base, i], states.used[level, base, i]
            left = terms.size[level] - used
            if top:
                rest = terms.weight[ideals - 1] - terms.weight[base]
                if rest > bound * left * terms.devices[level] * (1.0 + 1e-9):
                    continue
            for number in range(1, left + 1):
                every = around * number
                if every >= len(terms.multiple) or not terms.multiple[every]:
                    continue
                # Samples in flight are rounded up on every copy, so that only so many copies behind matter.
                ahead = 0 if terms.held else -(-(behind + around * copies) // every)
                weigh = weighed or (number > 1 and weights_matter(terms, bound, level, base, number, around))
                key = _key(terms, level - 1, base, ahead, every, weigh)
                row = _place(inner, key)
                if inner.key[row] != key:
                    reach(
                        terms, states, known, inner, bound, level - 1, base, ahead * every, every, weigh, base, ideals
                    )
                    row = _keep(states, known, inner, level - 1, base, key)
                _clusters(
                    terms, states, known, inner, row, bound, level, base, i, behind, around, number, weighed, weigh
                )


@kernel(nogil=True)
def weights_matter(terms, bound, level, base, number, around):  # type: ignore[no-untyped-def]
    """Whether some clusters can exchange their weights within a load and others, with the same nodes, cannot."""
    degrees = len(terms.degree)
    most = bound * number * around * terms.devices[level] * (1.0 + 1e-9)
    for goal in range(base + 1, len(terms.weight)):
        if not terms.inside[base, goal] or terms.weight[goal] - terms.weight[base] > most:
            continue
        edges, slower = terms.edges[base, goal, degrees + level - 1], terms.slower[level]
        light = (terms.lightest[goal] - terms.lightest[base]) * slower * (1.0 - 1e-9)
        heavy = (terms.heaviest[goal] - terms.heaviest[base]) * slower * (1.0 + 1e-9)
        if (
            load_around(terms.exchange, number, around, edges, heavy) > bound
            and load_around(terms.exchange, number, around, edges, light) <= bound
        ):  # fmt: skip
            return True
    return False


@kernel(nogil=True, no_cpython_wrapper=True)
def _key(terms, level, base, ahead, every, weigh):  # type: ignore[no-untyped-def]
    """One number for what is asked about the inside of clusters."""
    return (((level * len(terms.weight) + base) * (terms.most + 2) + ahead) * (terms.most + 2) + every) * 2 + weigh


@kernel(nogil=True, no_cpython_wrapper=True)
def _place(inner, key):  # type: ignore[no-untyped-def]
    """The row of a key, or a free one for it."""
    row = (key * 0x9E3779B1) % len(inner.key)
    while inner.key[row] != -1 and inner.key[row] != key:
        row = (row + 1) % len(inner.key)
    return row


@kernel(nogil=True, no_cpython_wrapper=True)
def _keep(states, known, inner, level, base, key):  # type: ignore[no-untyped-def]
    """Keep what a cluster can hold: of each ideal the pairs of copies and weights of which none is better in both."""
    if inner.used[0] * 2 > len(inner.key) or inner.used[1] * 2 > len(inner.goal):
        inner.key[:] = -1
        inner.used[:] = 0
    row, at = _place(inner, key), inner.used[1]
    inner.key[row], inner.begin[row] = key, at
    inner.used[0] += 1
    for goal in range(base + 1, states.number.shape[1]):
        for i in range(states.number[level, goal]):
            copies, weights, beaten = states.copies[level, goal, i], states.weights[level, goal, i], False
            for j in range(states.number[level, goal]):
                if j != i:
                    less, lighter = states.copies[level, goal, j] - copies, states.weights[level, goal, j] - weights
                    if less <= 0 and lighter <= 0.0 and (less < 0 or lighter < 0.0 or j < i):
                        beaten = True
                        break
            if beaten:
                continue
            if at == len(inner.goal):
                known.seen[1] += 1
                continue
            inner.goal[at], inner.copies[at], inner.weights[at] = goal, copies, weights
            at += 1
    inner.end[row] = inner.used[1] = at
    return row


# More than ten arguments: numba compiles tuples within tuples for long, and these are all that there is to pass on.
@kernel(nogil=True, no_cpython_wrapper=True)
def _clusters(  # type: ignore[no-untyped-def]
    terms, states, known, inner, row, bound, level, base, i, behind, around, number, weighed, weigh
):
    """Extend a triple by clusters, with what can be inside of them."""
    ideals, degrees = len(terms.weight), len(terms.degree)
    copies, used = states.copies[level, base, i], states.used[level, base, i] + number
    room = bound * (terms.size[level] - used) * terms.devices[level] * (1.0 + 1e-9)
    top = level == len(terms.size) - 1
    for at in range(inner.begin[row], inner.end[row]):
        goal, part, weights = inner.goal[at], inner.copies[at], inner.weights[at]
        if top and terms.weight[ideals - 1] - terms.weight[goal] > room:
            continue
        together = copies + number * part
        if behind + around * (together - 1) >= terms.most:
            continue
        edges = terms.edges[base, goal, degrees + level - 1]
        sent = weights if weigh else terms.lightest[goal] - terms.lightest[base]
        if load_around(terms.exchange, number, around, edges, sent * terms.slower[level]) > bound:
            continue
        heavy = states.weights[level, base, i] + weights if weighed else 0.0
        _add(states, known, level, goal, together, used, heavy, base, i, number, part, weights)


@kernel(nogil=True, no_cpython_wrapper=True)
def _stages(terms, states, known, bound, base, behind, around, weighed):  # type: ignore[no-untyped-def]
    """Extend all triples of an ideal by a stage, on devices of one cluster."""
    ideals, devices = len(terms.weight), terms.size[0]
    fewest = NEVER
    for i in range(states.number[0, base]):
        fewest = min(fewest, states.used[0, base, i])
    for goal in range(base + 1, ideals):
        work = (terms.weight[goal] - terms.weight[base]) / (bound * around) * (1.0 - 1e-9)
        if fewest + work > devices or not terms.inside[base, goal]:
            continue
        known.units[0] = -1
        low, high, held = 1, NEVER, NEVER
        if terms.limits.of_kinds:
            low, high, held = _bounded(terms, known, base, goal)
        for g in range(len(terms.degree)):
            degree = terms.degree[g]
            if terms.unsupported[g, goal] != terms.unsupported[g, base]:
                continue
            alone = terms.time[g, goal] - terms.time[g, base] + terms.edges[base, goal, g]
            sent = terms.weights[g, goal] - terms.weights[g, base]
            for i in range(states.number[0, base]):
                copies, used = states.copies[0, base, i], states.used[0, base, i]
                for own in range(1, (devices - used) // degree + 1):
                    every = own * around
                    together = behind + around * (copies + own)
                    if every >= len(terms.allowed) or together - around >= terms.most or every > high:
                        break
                    if not terms.allowed[every] or every < low:
                        continue
                    spent = alone + sent_within(terms.exchange, own, around) * sent
                    if spent > bound * every * (1.0 + 1e-9):
                        continue
                    in_flight = -(-(terms.held if terms.held else together) // every)
                    if in_flight > held:
                        continue
                    if _fits(terms, known, bound, base, goal, g, own, around, in_flight):
                        heavy = states.weights[0, base, i] + degree * sent if weighed else 0.0
                        _add(states, known, 0, goal, copies + own, used + own * degree, heavy, base, i, g, own, 0.0)
                        break


@kernel(nogil=True, no_cpython_wrapper=True)
def _count(terms, known, base, goal):  # type: ignore[no-untyped-def]
    """Count the units of each kind of a stage, unless that is done."""
    if known.units[0] < 0:
        for c in range(len(known.units)):
            known.units[c] = terms.of_kind[goal, c] - terms.of_kind[base, c]


@kernel(nogil=True, no_cpython_wrapper=True)
def _bounded(terms, known, base, goal):  # type: ignore[no-untyped-def]
    """The fewest and the most copies of a stage, and the most samples in flight, by the nodes that it has."""
    _count(terms, known, base, goal)
    low, high, held = 1, NEVER, NEVER
    for c in range(len(known.units)):
        if known.units[c]:
            low, high = max(low, terms.limits.fewest[c]), min(high, terms.limits.most[c])
            held = min(held, terms.limits.in_flight[c])
    return low, high, held


@kernel(nogil=True, no_cpython_wrapper=True)
def _fits(terms, known, bound, base, goal, g, own, around, in_flight):  # type: ignore[no-untyped-def]
    """Whether the options of a stage fit with so many samples in flight: more of them never do where fewer do not."""
    degrees, ideals = len(terms.degree), len(terms.weight)
    key = (((base * ideals + goal) * degrees + g) * (terms.size[0] + 1) + own) * (terms.most + 1) + around
    slot = key % len(known.key)
    if known.key[slot] != key:
        known.key[slot], known.fits[slot], known.exceeds[slot] = key, 0, NEVER
    if in_flight <= known.fits[slot]:
        return True
    if in_flight >= known.exceeds[slot]:
        return False
    _count(terms, known, base, goal)
    there = 0
    for c in range(len(known.units)):
        if known.units[c]:
            known.kinds[there] = c
            there += 1
    every = own * around
    capacity = terms.capacity - (terms.sharded[g, goal] - terms.sharded[g, base]) / every
    room = bound * every - terms.edges[base, goal, g]
    exchange = sent_within(terms.exchange, own, around)
    demand = Demand(known.kinds[:there], known.units, g, in_flight, exchange, room, capacity)
    answer, _ = time_within(terms.table, demand, known.space)
    known.seen[0] += answer == GIVEN_UP
    if answer == YES:
        known.fits[slot] = in_flight
        return True
    known.exceeds[slot] = 0 if answer == TOO_SLOW else in_flight
    return False


# More than ten arguments: numba compiles tuples within tuples for long, and these are all that there is to pass on.
@kernel(nogil=True, no_cpython_wrapper=True)
def _add(states, known, level, goal, copies, used, weights, base, state, choice, part, part_weights):  # type: ignore[no-untyped-def]
    """Note a triple, unless one is as good in all; those that it is better than go.  Nothing leads on from them yet:
    all that leads to an ideal comes from smaller ones."""
    number = states.number[level, goal]
    for i in range(number):
        if (
            states.copies[level, goal, i] <= copies and states.used[level, goal, i] <= used
            and states.weights[level, goal, i] <= weights
        ):  # fmt: skip
            return
    i = 0
    while i < number:
        if (
            states.copies[level, goal, i] >= copies and states.used[level, goal, i] >= used
            and states.weights[level, goal, i] >= weights
        ):  # fmt: skip
            number -= 1
            _move(states, level, goal, number, i)
        else:
            i += 1
    if number == states.copies.shape[2]:
        known.seen[1] += 1
        states.number[level, goal] = number
        return
    states.number[level, goal] = number + 1
    states.copies[level, goal, number], states.used[level, goal, number] = copies, used
    states.weights[level, goal, number] = weights
    states.base[level, goal, number], states.state[level, goal, number] = base, state
    states.choice[level, goal, number], states.part[level, goal, number] = choice, part
    states.part_weights[level, goal, number] = part_weights


@kernel(nogil=True, no_cpython_wrapper=True)
def _move(states, level, goal, source, target):  # type: ignore[no-untyped-def]
    """Put a triple in the place of another one."""
    for of in (states.copies, states.used, states.base, states.state, states.choice, states.part):
        of[level, goal, target] = of[level, goal, source]
    states.weights[level, goal, target] = states.weights[level, goal, source]
    states.part_weights[level, goal, target] = states.part_weights[level, goal, source]
