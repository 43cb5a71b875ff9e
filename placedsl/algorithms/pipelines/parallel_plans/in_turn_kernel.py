"""Compiled: whether stages that hold chunks of the model in turn stay within a load.

From the loss towards the input, the states after some stages are tuples of ideals, one a chunk: how far each chunk has
been divided.  Where one chunk ends and the next begins is given.  A tuple is worth the devices of the stages so far.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.kernels import kernel
from placedsl.algorithms.pipelines.parallel_plans.options import GIVEN_UP, NO, YES

#: Options that are tried for one stage; and options, and chunks of stages, for all with the same ends of chunks.
_TRIES, _ALL_TRIES, _STEPS = 3_000_000, 30_000_000, 30_000_000


@kernel(nogil=True)
def reach_in_turn(terms, question, ends, states, scratch):  # type: ignore[no-untyped-def]
    """All states of the stages one after another, the last stage first; whether all fit, and whether that is sure.

    ``ends``: of each chunk the ideal at which it begins, the last chunk first, and the whole graph.
    """
    chunks, stages = len(ends) - 1, question.stages
    states.number[:] = 0
    states.number[0] = 1
    states.used[0, 0] = 0
    sure = True
    scratch.tries[:] = 0
    for c in range(chunks):
        states.at[0, 0, c] = ends[c]
    for depth in range(stages):
        scratch.table[:] = -1
        for i in range(states.number[depth]):
            sure &= _extend(terms, question, ends, states, scratch, depth, i)
        if states.number[depth + 1] == 0:
            return False, sure
    return True, sure


@kernel(nogil=True)
def least_rest(block, rest):  # type: ignore[no-untyped-def]
    """Fill in the least sums of the blocks of the first r stages between two ideals.

    ``block``: chunks x stages x K x K;  ``rest``: chunks x (stages + 1) x K x K
    """
    count = block.shape[2]
    rest[:] = np.inf
    for c in range(len(block)):
        for i in range(count):
            rest[c, 0, i, i] = 0.0
        for r in range(1, rest.shape[1]):
            for i in range(count):
                for k in range(i + 1, count):
                    first = block[c, r - 1, i, k]
                    if first < np.inf:
                        for j in range(k, count):
                            rest[c, r, i, j] = min(rest[c, r, i, j], first + rest[c, r - 1, k, j])


@kernel(nogil=True)
def _extend(terms, question, ends, states, scratch, depth, i):  # type: ignore[no-untyped-def]
    """Every next stage of a state; whether none was left out."""
    chunks, left = len(ends) - 1, question.devices - states.used[depth, i]
    after = question.stages - 1 - depth
    low, high, least = states.at[depth, i], scratch.high, terms.degree[0]
    widest = left - after * least
    if widest < least:
        return True
    most = question.load * question.copies * widest * (1.0 + 1e-9)
    prices, needed, blocks = len(question.rest), scratch.needed, scratch.blocks
    # What all that is left takes at least, block by block, against what the devices that are left can do.
    rounding = 0.0
    for z in range(prices):
        needed[z, 0] = 0.0
        for c in range(chunks):
            needed[z, 0] += question.rest[z, c, after + 1, low[c], ends[c + 1]]
        if needed[z, 0] > question.capacity[z, after + 1, left]:
            return True
        rounding = max(rounding, 1e-9 * needed[z, 0])  # of sums that others are taken from
    sure, c, taken = True, 0, scratch.taken
    high[0], taken[0] = low[0], 0.0
    while c >= 0:
        scratch.tries[1] += 1
        if scratch.tries[1] > _STEPS:
            return False
        high[c] += 1
        goal = ends[c + 1]
        if after == 0 and high[c] < goal:
            high[c] = goal
        own = taken[c] + terms.weight[high[c]] - terms.weight[low[c]] if high[c] <= goal else np.inf
        if own > most:  # ideals come by weight
            c -= 1
            continue
        if not (terms.inside[low[c], high[c]] and terms.inside[high[c], goal]):
            continue
        if terms.size[goal] - terms.size[high[c]] < after:
            continue
        passed = True
        for z in range(prices):
            block = question.block[z, c, after, low[c], high[c]]
            mine = block + (blocks[z, c - 1] if c else 0.0)
            rest = needed[z, c] - question.rest[z, c, after + 1, low[c], goal]
            rest += block + question.rest[z, c, after, high[c], goal]
            blocks[z, c] = mine
            if c + 1 < chunks:
                needed[z, c + 1] = rest
            elif rest - mine > question.capacity[z, after, left - least] + rounding:
                passed = False
            if rest > question.capacity[z, after + 1, left] + rounding or mine > question.own[z, after, widest]:
                passed = False
        if not passed:
            continue
        if c + 1 < chunks:
            c += 1
            high[c], taken[c] = low[c], own
            continue
        answer, g = _stage(terms, question, low, high, scratch, question.stages - 1 - depth, widest)
        if answer == YES:
            sure &= _keep(terms, states, scratch, depth, i, g)
        elif answer == GIVEN_UP:
            sure = False
    return sure


@kernel(nogil=True)
def _keep(terms, states, scratch, depth, i, g):  # type: ignore[no-untyped-def]
    """Note the state that a stage leads to; of equal ones that with fewest devices; False where there is no room."""
    high, used = scratch.high, states.used[depth, i] + terms.degree[g]
    chunks, size = states.at.shape[2], len(scratch.table)
    place = 0
    for c in range(chunks):
        place = (place * 1_000_003 + high[c]) % size
    while True:
        slot = scratch.table[place]
        if slot < 0:
            break
        same = True
        for c in range(chunks):
            if states.at[depth + 1, slot, c] != high[c]:
                same = False
        if same:
            if used >= states.used[depth + 1, slot]:
                return True
            break
        place = (place + 1) % size
    if slot < 0:
        slot = states.number[depth + 1]
        if slot >= states.at.shape[1]:
            return False
        states.number[depth + 1] += 1
        scratch.table[place] = slot
        for c in range(chunks):
            states.at[depth + 1, slot, c] = high[c]
    states.used[depth + 1, slot], states.before[depth + 1, slot] = used, i
    states.degree[depth + 1, slot] = g
    return True


@kernel(nogil=True)
def _stage(terms, question, low, high, scratch, place, widest):  # type: ignore[no-untyped-def]
    """The least degree with which a stage fits, and whether one does."""
    answer = NO
    for g in range(len(terms.degree)):
        if terms.degree[g] > widest:
            break
        if scratch.radix > 0:
            key = place * len(terms.degree) + g
            for c in range(len(low)):
                key = (key * scratch.radix + np.int64(low[c])) * scratch.radix + np.int64(high[c])
            row = key % len(scratch.keys)
            if scratch.keys[row] == key:
                found = scratch.answers[row]
            else:
                found = fits(terms, question, low, high, scratch, place, g)
                scratch.keys[row], scratch.answers[row] = key, found
        else:
            found = fits(terms, question, low, high, scratch, place, g)
        if found == YES:
            return YES, g
        if found == GIVEN_UP:
            answer = GIVEN_UP
    return answer, 0


@kernel(nogil=True)
def edges_of(terms, low, high, g, alone):  # type: ignore[no-untyped-def]
    """Seconds of what the chunks of a stage read and send: a tensor that several read comes in once, and what one makes
    for another stays.  ``alone``: there is no other stage."""
    if alone:
        return 0.0
    total = 0.0
    for c in range(len(low)):
        total += terms.edges[low[c], high[c], g]
    for e in range(len(terms.readers)):
        paid, made, read = 0.0, False, 0
        for c in range(len(low)):
            here = terms.made[high[c], e] and not terms.made[low[c], e]
            reads = terms.read[high[c], e] - terms.read[low[c], e]
            if here and reads < terms.readers[e]:
                paid += terms.output[g, e]
            elif not here and reads > 0:
                paid += terms.input[g, e]
            made, read = made or here, read + reads
        if made and read < terms.readers[e]:
            paid -= terms.output[g, e]
        elif not made and read > 0:
            paid -= terms.input[g, e]
        total -= paid
    return max(total, 0.0)


@kernel(nogil=True)
def fits(terms, question, low, high, scratch, place, g):  # type: ignore[no-untyped-def]
    """Whether the nodes of a stage have options within the load and the memory; ``scratch.row`` has them, node by node
    in the order of chunks and kinds."""
    copies, chunks = question.copies, len(low)
    least = 0.0
    for c in range(chunks):
        if terms.unsupported[g, high[c]] > terms.unsupported[g, low[c]]:
            return NO
        least += terms.time[g, high[c]] - terms.time[g, low[c]]
    least *= 1.0 - 1e-12
    if least > question.load * copies:
        return NO
    room = question.load * copies * (1.0 + 1e-13) - edges_of(terms, low, high, g, question.stages == 1)
    if least > room or not _allowed(terms, question, low, high, place):
        return NO
    capacity = terms.capacity
    for c in range(chunks):
        capacity -= (terms.sharded[g, high[c]] - terms.sharded[g, low[c]]) / copies
    return _choose(terms, question, low, high, scratch, place, g, room, capacity)


@kernel(nogil=True)
def _allowed(terms, question, low, high, place):  # type: ignore[no-untyped-def]
    """Whether the spec lets nodes of these kinds have so many copies, and samples in flight."""
    if not terms.of_kinds:
        return True
    for c in range(len(low)):
        held = 0
        for m in range(question.moments[place]):
            held = max(held, question.held[place, m, c])
        for k in range(terms.table.kinds):
            if terms.of_kind[high[c], k] > terms.of_kind[low[c], k] and not (
                terms.fewest[k] <= question.copies <= terms.most[k] and held <= terms.in_flight[k]
            ):
                return False
    return True


# Longer than 80 lines: a search over arrays without recursion.
@kernel(nogil=True)
def _choose(terms, question, low, high, scratch, place, g, room, capacity):  # type: ignore[no-untyped-def]
    """Depth first over the nodes of a stage; of like nodes of a chunk the later one takes no earlier option.

    What is left of time and of bytes bounds it, and both together, with a price for bytes.
    """
    table, moments, price = terms.table, question.moments[place], question.price[place, g]
    room, capacity = room * (1.0 + 1e-13), capacity * (1.0 + 1e-15)
    together = (room + price * capacity) * (1.0 + 1e-12) if price > 0.0 else np.inf
    nodes = 0
    for c in range(len(low)):
        for k in range(table.kinds):
            for _ in range(terms.of_kind[high[c], k] - terms.of_kind[low[c], k]):
                scratch.chunk[nodes], scratch.kind[nodes] = c, k
                nodes += 1
    # What the nodes from one on take at least.
    scratch.rest_time[nodes] = 0.0
    for m in range(moments):
        scratch.rest_bytes[nodes, m] = scratch.rest_both[nodes, m] = 0.0
    for n in range(nodes - 1, -1, -1):
        key, c = g * table.kinds + scratch.kind[n], scratch.chunk[n]
        time = np.inf
        for o in range(table.start[key], table.start[key + 1]):
            time = min(time, table.time[o] + question.often * table.weights[o])
        scratch.rest_time[n] = scratch.rest_time[n + 1] + time
        for m in range(moments):
            least, both = np.inf, np.inf
            for o in range(table.start[key], table.start[key + 1]):
                held = table.stash[o] * question.held[place, m, c] + table.memory[o]
                least = min(least, held)
                both = min(both, table.time[o] + question.often * table.weights[o] + price * held)
            scratch.rest_bytes[n, m] = scratch.rest_bytes[n + 1, m] + least
            scratch.rest_both[n, m] = scratch.rest_both[n + 1, m] + both
    scratch.spent_time[0] = 0.0
    for m in range(moments):
        scratch.spent_bytes[0, m] = 0.0
    n, tries = 0, 0
    scratch.row[0] = -1
    while True:
        if n == nodes:
            scratch.tries[0] += tries
            return YES
        key, c = g * table.kinds + scratch.kind[n], scratch.chunk[n]
        first = table.start[key]
        if n and scratch.kind[n - 1] == scratch.kind[n] and scratch.chunk[n - 1] == c:
            first = scratch.row[n - 1]
        step = scratch.row[n] + 1 if scratch.row[n] >= 0 else first
        found = False
        while step < table.start[key + 1]:
            tries += 1
            if tries > _TRIES or scratch.tries[0] + tries > _ALL_TRIES:
                scratch.tries[0] += tries
                return GIVEN_UP
            o = scratch.by_time[step]
            spent = scratch.spent_time[n] + table.time[o] + question.often * table.weights[o]
            found = spent + scratch.rest_time[n + 1] <= room
            for m in range(moments):
                held = scratch.spent_bytes[n, m] + table.stash[o] * question.held[place, m, c] + table.memory[o]
                scratch.spent_bytes[n + 1, m] = held
                found &= held + scratch.rest_bytes[n + 1, m] <= capacity
                found &= spent + price * held + scratch.rest_both[n + 1, m] <= together
            if found:
                scratch.row[n], scratch.spent_time[n + 1] = step, spent
                break
            step += 1
        if found:
            n += 1
            scratch.row[n] = -1
        else:
            scratch.row[n] = -1
            n -= 1
            if n < 0:
                scratch.tries[0] += tries
                return NO
