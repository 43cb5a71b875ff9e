"""Sets of units as paths through a small layered graph: one layer a unit, one state for each way that a set may look
to the units still to come.

Units are taken in a fixed order.  A hyperedge is open from its first unit to its last; of an open one all that
matters is whether its units so far are all in the set, all out of it, or cut (then it is paid already).  The state
is that, for every open hyperedge.  Computation graphs are narrow, so a few states a layer suffice: the published
graphs have from 4 to 288.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.bounds.relaxation import DeviceClass, Hyperedges
from placedsl.algorithms.bounds.set_kernel import least_loads
from placedsl.graph.graph import Booleans, Floats, Integers

OUT, IN, CUT = 0, 1, 2
#: Loads are sums of a few thousand floating-point numbers; what exceeds the limit by no more than this is within it.
SLACK = 1e-9
#: States beyond which a class is left to the bounds that need none.
MOST_STATES = 120_000
#: How many units are tried as the first of the order.
STARTS = 24
#: Of how many states each label may be compared with, and up to what share of the largest load.
DOMINATORS, NEAR = 4, 0.3


@dataclass(frozen=True, eq=False)
class Frontier:
    """The layered graph of one device class.  n layers of transitions between n + 1 layers of states.

    ``order``          unit of each layer
    ``work``           by layer
    ``state_start``    n + 2 offsets: the states of layer i are ``state_start[i]:state_start[i+1]``
    ``move_start``     n + 1 offsets into the moves, which are sorted by layer and target state
    ``source``, ``target``, ``taken``, ``cost``  of each move: the unit is taken or not, hyperedges newly cut are paid
    ``by_source``      the moves of each layer by source state
    ``before``, ``after``  by state: the least load of getting there, and from there to the end
    ``rival_start``, ``rival``, ``rival_cost``  by state: other states of its layer from which any completion costs at
                       most ``rival_cost`` more
    """

    order: Integers
    work: Floats
    state_start: Integers
    move_start: Integers
    source: Integers
    target: Integers
    taken: Booleans
    cost: Floats
    by_source: Integers
    before: Floats
    after: Floats
    rival_start: Integers
    rival: Integers
    rival_cost: Floats


def frontier(device: DeviceClass, largest: float, cheap: float = 0.0) -> Frontier | None:
    """The layered graph for sets with a load of at most ``largest``; None where it would be too large.

    Hyperedges that cost no more than ``cheap`` in all are left out where that halves the states: loads are then a
    little smaller than they are, and bounds still bounds.
    """
    largest *= 1 + SLACK
    every = device.edges
    order = arrange(len(device.work), every)
    full = _build(device, every, order, largest)
    by_cost = np.argsort(every.cost, kind="stable")
    dropped = by_cost[np.cumsum(every.cost[by_cost]) <= cheap]
    if not len(dropped):
        return full
    kept = np.setdiff1d(np.arange(len(every.pins)), dropped)
    fewer = Hyperedges(tuple(every.pins[i] for i in kept), every.cost[kept])
    reduced = _build(device, fewer, arrange(len(device.work), fewer), largest)
    if full is None or (reduced is not None and 2 * len(reduced.before) <= len(full.before)):
        return reduced
    return full


def arrange(units: int, edges: Hyperedges) -> list[int]:
    """An order of the units in which few hyperedges are open at a time: the best of several greedy ones."""
    touching: list[list[int]] = [[] for _ in range(units)]
    for edge, pins in enumerate(edges.pins):
        for unit in pins:
            touching[unit].append(edge)
    starts = range(0, units, max(1, units // STARTS))
    return min((_grown(units, edges, touching, start) for start in starts), default=(0.0, []))[1]


def _grown(units: int, edges: Hyperedges, touching: list[list[int]], start: int) -> tuple[float, list[int]]:
    """Grow an order from one unit, always by the unit that opens the fewest hyperedges; and a measure of its states."""
    size = [len(pins) for pins in edges.pins]
    left = list(size)
    placed = [False] * units
    order: list[int] = []
    since: dict[int, int] = {}
    unit, opened, measure = start, 0, 0.0
    unseen = 0
    while True:
        placed[unit] = True
        order.append(unit)
        since.pop(unit, None)
        for edge in touching[unit]:
            opened += left[edge] == size[edge]
            left[edge] -= 1
            opened -= left[edge] == 0
            for other in edges.pins[edge]:
                if not placed[other]:
                    since.setdefault(other, len(order))
        measure += 3.0 ** min(opened, 40)
        if len(order) == units:
            return measure, order
        if not since:
            while placed[unseen]:
                unseen += 1
            unit = unseen
            continue
        unit = min(
            since,
            key=lambda u: (sum((left[e] == size[e]) - (left[e] == 1) for e in touching[u]), since[u], u),
        )


def _build(device: DeviceClass, edges: Hyperedges, order: list[int], largest: float) -> Frontier | None:
    """Enumerate states layer by layer, then keep what some set with a small enough load passes through."""
    units = len(order)
    place = np.empty(units, dtype=np.int64)
    place[order] = np.arange(units)
    first = [int(place[list(pins)].min()) for pins in edges.pins]
    last = [int(place[list(pins)].max()) for pins in edges.pins]
    touching: list[list[int]] = [[] for _ in range(units)]
    for edge, pins in enumerate(edges.pins):
        for unit in pins:
            touching[unit].append(edge)
    layers: list[dict[tuple[int, ...], int]] = [{(): 0}]
    opens: list[list[int]] = [[]]
    moves: list[tuple[int, int, int, int, float]] = []
    total = 1
    for layer, unit in enumerate(order):
        touched = touching[unit]
        following = [e for e in opens[-1] if last[e] > layer]
        following += [e for e in touched if first[e] == layer]
        states: dict[tuple[int, ...], int] = {}
        choices = (OUT, IN) if device.work[unit] <= largest else (OUT,)
        for state, source in layers[-1].items():
            known = dict(zip(opens[-1], state, strict=True))
            for choice in choices:
                status, cost = dict(known), 0.0
                for edge in touched:
                    if edge not in status:
                        status[edge] = choice
                    elif status[edge] not in (CUT, choice):
                        status[edge] = CUT
                        cost += float(edges.cost[edge])
                if cost <= largest:
                    target = states.setdefault(tuple(status[e] for e in following), len(states))
                    moves.append((layer, target, source, choice, cost))
        layers.append(states)
        opens.append(following)
        total += len(states)
        if total > MOST_STATES:
            return None
    return _kept(device, edges, order, largest, layers, opens, moves)


def _kept(
    device: DeviceClass, edges: Hyperedges, order: list[int], largest: float,
    layers: list[dict[tuple[int, ...], int]], opens: list[list[int]], moves: list[tuple[int, int, int, int, float]],
) -> Frontier:  # fmt: skip
    """The arrays, without the states and moves that every small enough set avoids."""
    units = len(order)
    sizes = np.array([len(states) for states in layers])
    start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
    work = np.where(np.isfinite(device.work), device.work, 0.0)[order]
    layer, target, source, taken = (np.array([m[i] for m in moves], dtype=np.int64) for i in range(4))
    cost = np.array([m[4] for m in moves])
    source, target = source + start[layer], target + start[layer + 1]
    sorting = np.lexsort((taken, source, target, layer))
    layer, source, target, taken, cost = (x[sorting] for x in (layer, source, target, taken, cost))
    move_start = np.searchsorted(layer, np.arange(units + 1))
    before, after = least_loads(units, int(start[-1]), move_start, source, target, taken == IN, cost, work)
    alive = before + after <= largest
    alive[0] = True
    through = before[source] + cost + np.where(taken == IN, work[layer], 0.0) + after[target] <= largest
    through &= alive[source] & alive[target]
    number = np.cumsum(alive) - 1
    rivals = [
        rival
        for states, edges_open, offset in zip(layers, opens, start[:-1].tolist(), strict=True)
        for rival in _rivals(states, edges.cost[edges_open], alive[offset : offset + len(states)], offset, largest)
    ]
    kept_rivals = [rivals[state] for state in np.flatnonzero(alive).tolist()]
    of_layer = np.repeat(np.arange(units + 1), sizes)
    kept_start = np.searchsorted(of_layer[alive], np.arange(units + 2))
    source, target, taken, cost, layer = (x[through] for x in (source, target, taken, cost, layer))
    return Frontier(
        order=np.array(order, dtype=np.int64), work=work, state_start=kept_start,
        move_start=np.searchsorted(layer, np.arange(units + 1)), source=number[source], target=number[target],
        taken=taken == IN, cost=cost, by_source=np.lexsort((taken, target, source, layer)), before=before[alive],
        after=after[alive],
        rival_start=np.concatenate(([0], np.cumsum([len(r) for r in kept_rivals]))).astype(np.int64),
        rival=np.array([number[state] for r in kept_rivals for state, _ in r], dtype=np.int64),
        rival_cost=np.array([price for r in kept_rivals for _, price in r]),
    )  # fmt: skip


def _rivals(
    states: dict[tuple[int, ...], int], cost: Floats, alive: Booleans, offset: int, largest: float
) -> list[list[tuple[int, float]]]:
    """For each state of a layer the nearest others, with what their completions may cost more."""
    out: list[list[tuple[int, float]]] = [[] for _ in states]
    if len(states) < 2 or not len(cost):
        return out
    status = np.array(list(states), dtype=np.int8)
    # Row r, column s: hyperedges that r has not paid and in which it differs from s.
    price = ((status != CUT) * cost).sum(axis=1)[:, None]
    price = price - sum(((status == way) * cost) @ (status == way).T for way in (OUT, IN))
    price = np.maximum(price, 0.0)
    price[~alive] = np.inf
    np.fill_diagonal(price, np.inf)
    for state in np.flatnonzero(alive).tolist():
        nearest = np.argsort(price[:, state], kind="stable")[:DOMINATORS].tolist()
        out[state] = [(offset + r, float(price[r, state])) for r in nearest if price[r, state] < NEAR * largest]
    return out
