"""Sets of units as paths through a small layered graph: one layer per unit, one state per distinguishable boundary.

Units are taken in a fixed order.  A hyperedge is open from its first unit to its last; all that matters of an open
hyperedge is whether its units so far are all in the set, all out of it, or cut (then it is paid already).  The state is
that status for every open hyperedge.  Computation graphs are narrow, so few states per layer suffice: the published
graphs have from 4 to 288.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.partitions.bounds.relaxation import DeviceClass
from placedsl.algorithms.partitions.bounds.state_graph_kernel import StateGraph, least_loads
from placedsl.algorithms.units import Hyperedges
from placedsl.arrays import Booleans, Floats
from placedsl.tolerances import LIMIT_SLACK

OUT, IN, CUT = 0, 1, 2
#: No graph is built with more states than this; other bounds do without it.
MOST_STATES = 120_000
#: How many units are tried as the first of the order.
ORDER_STARTS = 24
#: How many other states each label is compared with, and up to which additional cost as a share of the largest load.
DOMINATORS, NEAR = 4, 0.3


def state_graph(device: DeviceClass, largest: float, negligible: float = 0.0) -> StateGraph | None:
    """The layered graph of sets with a load of at most ``largest`` seconds; None if it would be too large.

    Hyperedges that cost no more than ``negligible`` seconds in total are left out if that halves the states: loads
    are then underestimated, and bounds remain bounds.
    """
    largest *= 1 + LIMIT_SLACK
    every = device.edges
    order = narrow_order(len(device.work), every)
    full = _build(device, every, order, largest)
    by_cost = np.argsort(every.cost, kind="stable")
    dropped = by_cost[np.cumsum(every.cost[by_cost]) <= negligible]
    if not len(dropped):
        return full
    kept = np.setdiff1d(np.arange(len(every.pins)), dropped)
    fewer = Hyperedges(tuple(every.pins[i] for i in kept), every.cost[kept])
    reduced = _build(device, fewer, narrow_order(len(device.work), fewer), largest)
    if full is None or (reduced is not None and 2 * len(reduced.before) <= len(full.before)):
        return reduced
    return full


def narrow_order(units: int, edges: Hyperedges) -> list[int]:
    """An order of the units with few open hyperedges at a time: the best of several greedy ones."""
    touching: list[list[int]] = [[] for _ in range(units)]
    for edge, pins in enumerate(edges.pins):
        for unit in pins:
            touching[unit].append(edge)
    starts = range(0, units, max(1, units // ORDER_STARTS))
    return min((_grow_order(units, edges, touching, start) for start in starts), default=(0.0, []))[1]


def _grow_order(units: int, edges: Hyperedges, touching: list[list[int]], start: int) -> tuple[float, list[int]]:
    """Grow an order from one unit, always by the unit that opens the fewest hyperedges; returns an estimate of its
    states, and it.
    """
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


def _build(device: DeviceClass, edges: Hyperedges, order: list[int], largest: float) -> StateGraph | None:
    """Enumerate the states layer by layer, then prune to those on the path of a set with a small enough load."""
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
    return _pruned(device, edges, order, largest, layers, opens, moves)


def _pruned(
    device: DeviceClass, edges: Hyperedges, order: list[int], largest: float,
    layers: list[dict[tuple[int, ...], int]], opens: list[list[int]], moves: list[tuple[int, int, int, int, float]],
) -> StateGraph:  # fmt: skip
    """The arrays, without the states and moves that no set with a small enough load uses."""
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
    dominating = [
        row
        for states, edges_open, offset in zip(layers, opens, start[:-1].tolist(), strict=True)
        for row in _dominating_states(
            states, edges.cost[edges_open], alive[offset : offset + len(states)], offset, largest
        )
    ]
    kept_dominating = [dominating[state] for state in np.flatnonzero(alive).tolist()]
    of_layer = np.repeat(np.arange(units + 1), sizes)
    kept_start = np.searchsorted(of_layer[alive], np.arange(units + 2))
    source, target, taken, cost, layer = (x[through] for x in (source, target, taken, cost, layer))
    return StateGraph(
        order=np.array(order, dtype=np.int64), work=work, state_start=kept_start,
        move_start=np.searchsorted(layer, np.arange(units + 1)), source=number[source], target=number[target],
        taken=taken == IN, cost=cost, by_source=np.lexsort((taken, target, source, layer)), before=before[alive],
        after=after[alive],
        dominating_start=np.concatenate(([0], np.cumsum([len(r) for r in kept_dominating]))).astype(np.int64),
        dominating_state=np.array([number[state] for r in kept_dominating for state, _ in r], dtype=np.int64),
        dominating_cost=np.array([price for r in kept_dominating for _, price in r]),
    )  # fmt: skip


def _dominating_states(
    states: dict[tuple[int, ...], int], cost: Floats, alive: Booleans, offset: int, largest: float
) -> list[list[tuple[int, float]]]:
    """For each state of a layer the nearest others, each with the most that its completions can cost in addition."""
    out: list[list[tuple[int, float]]] = [[] for _ in states]
    if len(states) < 2 or not len(cost):
        return out
    status = np.array(list(states), dtype=np.int8)
    # Row r, column s: the hyperedges that r has not paid for and whose status differs from that in s.
    price = ((status != CUT) * cost).sum(axis=1)[:, None]
    price = price - sum(((status == way) * cost) @ (status == way).T for way in (OUT, IN))
    price = np.maximum(price, 0.0)
    price[~alive] = np.inf
    np.fill_diagonal(price, np.inf)
    for state in np.flatnonzero(alive).tolist():
        nearest = np.argsort(price[:, state], kind="stable")[:DOMINATORS].tolist()
        out[state] = [(offset + r, float(price[r, state])) for r in nearest if price[r, state] < NEAR * largest]
    return out
