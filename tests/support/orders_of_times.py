"""The least value of a combination of times by enumeration: placements, orders, and a linear program for each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.optimize import linprog

from placedsl.problem.problem import Problem
from support.one_sample import placements

#: What is added up: a factor with ("start" | "finish", node) or ("latency", 0).
Terms = Sequence[tuple[float, tuple[str, int]]]
Gaps = Sequence[tuple[float, tuple[int, int]]]


def least_of_times(problem: Problem, terms: Terms, later: Gaps = (), most: float = math.inf) -> float:
    """The least sum of terms; ``later``: (gap, (node, node)) for ``start(second) >= start(first) + gap``;
    ``most``: the latency's limit.  Devices and ports are shared where the problem says so."""
    best = math.inf
    seen = set()
    for place in placements(problem):
        for length, pairs in _orders(problem, place):
            key = (tuple(place), pairs)
            if key not in seen:
                seen.add(key)
                best = min(best, _by_program(length, pairs, problem.graph.nodes, terms, later, most))
    return best


def _orders(problem: Problem, place: list[int]) -> Iterator[tuple[list[float], tuple[tuple[int, int], ...]]]:
    """The length of each task, and which one ends before which begins, for every order of what may not overlap."""
    graph, moves = problem.graph, problem.device_to_device
    assert moves is not None
    length = [float(problem.time[v, d]) for v, d in enumerate(place)]
    shares: list[set[str]] = [{f"device {d}"} if problem.constraint("sequential") else set() for d in place]
    before: list[tuple[int, int]] = []
    task_of: dict[tuple[int, int], int] = {}
    for tensor, reader in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
        maker, to = int(graph.tensor_producer[tensor]), place[reader]
        if place[maker] == to:
            before.append((maker, reader))
            continue
        if (tensor, to) not in task_of:
            task_of[tensor, to] = len(length)
            before.append((maker, len(length)))
            length.append(float(moves.time(tensor, place[maker], to)))
            shares.append({f"from {place[maker]}", f"to {to}"} if problem.constraint("congestion") else set())
        before.append((task_of[tensor, to], reader))
    if not all(map(math.isfinite, length)):
        return
    apart = [
        (i, j)
        for i, j in itertools.combinations(range(len(length)), 2)
        if shares[i] & shares[j] and length[i] > 0 and length[j] > 0
    ]
    for turned in itertools.product((False, True), repeat=len(apart)):
        chosen = [(j, i) if turn else (i, j) for turn, (i, j) in zip(turned, apart, strict=True)]
        yield length, tuple(sorted({*before, *chosen}))


def _by_program(
    length: list[float], pairs: tuple[tuple[int, int], ...], nodes: int, terms: Terms, later: Gaps, most: float
) -> float:
    """Columns are the starts and the latency."""
    count = len(length)
    cost, constant = np.zeros(count + 1), 0.0
    for factor, (what, v) in terms:
        cost[count if what == "latency" else v] += factor
        constant += factor * length[v] if what == "finish" else 0.0
    rows, side = [], []

    def after(one: int, other: int, gap: float) -> None:
        row = np.zeros(count + 1)
        row[one] += 1.0
        row[other] -= 1.0
        rows.append(row)
        side.append(-gap)

    for one, other in pairs:
        after(one, other, length[one])
    for v in range(nodes):
        after(v, count, length[v])
    for gap, (one, other) in later:
        after(int(one), int(other), gap)
    # The latency is no more than its last node: where it is rewarded some node has to be that.
    best = math.inf
    ends = range(nodes) if cost[count] < 0 else (None,)
    for end in ends:
        same = None if end is None else np.eye(count + 1)[[count]] - np.eye(count + 1)[[end]]
        value = None if end is None else [length[end]]
        limits = [(0.0, None)] * count + [(0.0, None if math.isinf(most) else most)]
        found = linprog(cost, np.array(rows), side, same, value, limits)
        if found.status == 3:
            return -math.inf
        if found.status == 0:
            best = min(best, float(found.fun) + constant)
    return best
