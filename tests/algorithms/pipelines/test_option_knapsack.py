"""The multiple-choice knapsack of a stage against enumeration."""

from __future__ import annotations

import random
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from placedsl.algorithms.pipelines.parallel_plans.knapsack_kernel import most_in_flight, options_within, time_within
from placedsl.algorithms.pipelines.parallel_plans.options import NO, TOO_SLOW, YES, Demand, OptionTable
from placedsl.algorithms.pipelines.parallel_plans.plan_terms import workspace


def drawn(rng: random.Random) -> tuple[OptionTable, np.ndarray]:
    """Kinds with one to four options each, of like magnitude, so that ratios are close; units of each kind."""
    kinds = rng.randint(1, 4)
    lengths = [rng.randint(1, 4) for _ in range(kinds)]
    start = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    options = int(start[-1])
    largest = rng.choice((3, 10, 1000))
    columns = [np.array([rng.randint(0, largest) for _ in range(options)], dtype=float) for _ in range(4)]
    count = np.array([rng.randint(0, 3) for _ in range(kinds)], dtype=np.int64)
    return OptionTable(kinds, start, *columns), count


def choices(table: OptionTable, count: np.ndarray, in_flight: int, exchange: float) -> list[tuple[float, float]]:
    """(time, bytes) of every choice."""
    of_kind = [
        combinations_with_replacement(range(int(table.start[k]), int(table.start[k + 1])), int(count[k]))
        for k in range(table.kinds)
    ]
    out = []
    for way in product(*of_kind):
        rows = [row for own in way for row in own]
        time = sum(table.time[row] + exchange * table.weights[row] for row in rows)
        out.append((float(time), float(sum(table.stash[row] * in_flight + table.memory[row] for row in rows))))
    return out


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(800))
def test_knapsacks(seed: int) -> None:
    """Asked for just the least time, and for just less; with just the bytes of some choice."""
    rng = random.Random(seed)
    table, count = drawn(rng)
    in_flight, exchange = rng.randint(1, 4), rng.choice((0.0, 0.5, 2.0))
    known = choices(table, count, in_flight, exchange)
    capacity = rng.choice(known)[1] - rng.choice((0.0, 0.0, 1.0))
    least = min((time for time, size in known if size <= capacity), default=None)
    space = workspace(table)
    active = np.flatnonzero(count)
    demand = Demand(active, count, 0, in_flight, exchange, 1e9 if least is None else least, capacity)
    if least is None:
        assert time_within(table, demand, space)[0] == NO
        assert most_in_flight(table, active, count, 0, capacity, 10) < in_flight
        return
    assert most_in_flight(table, active, count, 0, capacity, 10) >= in_flight
    assert time_within(table, demand, space) == (YES, least)
    assert time_within(table, demand._replace(room=least - 0.25), space)[0] in (NO, TOO_SLOW)
    taken = options_within(table, demand, space)
    assert (taken >= 0).all()
    assert [int(taken[table.start[k] : table.start[k + 1]].sum()) for k in range(table.kinds)] == count.tolist()
    assert float((taken * (table.time + exchange * table.weights)).sum()) == least
    assert float((taken * (table.stash * in_flight + table.memory)).sum()) <= capacity
