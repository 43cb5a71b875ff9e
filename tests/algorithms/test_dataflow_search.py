"""The search for schedules of dataflow and its lower bounds, against all placements and all orders."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from flows import Sample, optimum, sample, wrong

from placedsl.algorithms.bounds.dataflow import bounds_and_orders
from placedsl.algorithms.dataflow.anneal_kernel import Cooling
from placedsl.algorithms.dataflow.annealing import annealed
from placedsl.algorithms.dataflow.arrays import supported
from placedsl.algorithms.dataflow.block_solving import improver
from placedsl.algorithms.dataflow.blocks import chain_of, refined
from placedsl.algorithms.dataflow.exact import solve_exactly
from placedsl.algorithms.dataflow.kernel import Order, schedule, values_of
from placedsl.algorithms.dataflow.narrowing import narrowed, refuted
from placedsl.algorithms.dataflow.relaxation import relaxed_latency
from placedsl.algorithms.dataflow.relaxed_kernel import reaches
from placedsl.algorithms.dataflow.search import from_flow, run
from placedsl.algorithms.dataflow.starts import starts
from placedsl.algorithms.dataflow.walk_kernel import walk_from

READINGS = [set(), {"port"}, {"link"}, {"port", "link"}]


def valid(case: Sample, order: Order) -> float:
    """The latency of an order that breaks no rule."""
    latency, times = schedule(case.flow, order)
    values = values_of(times)
    start = [values["start"][v,] for v in range(len(times.begun))]
    assert wrong(case, order.device.tolist(), start, values["sent"]) == []
    return latency


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sequential", [True, False])
@pytest.mark.parametrize("reading", range(4))
@pytest.mark.parametrize("seed", range(12))
def test_the_search_proves_the_optimum(seed: int, reading: int, sequential: bool) -> None:
    case = sample(seed, nodes=5, devices=2 + seed % 2, congestion=READINGS[reading], sequential=sequential)
    best = optimum(case)
    search = from_flow(case.flow, None, seed)
    for _ in run(search):
        pass
    assert search.value == pytest.approx(best)
    if np.isfinite(best):
        assert search.best is not None
        assert valid(case, search.best) == search.value
        assert search.proven or best == 0.0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(60))
def test_annealing_alone_comes_to_the_optimum_of_small_problems(seed: int) -> None:
    case = sample(seed, nodes=5)
    case.room[:] = np.inf
    best = optimum(case)
    found = np.inf
    for order in starts(case.flow):
        walk, latency = walk_from(case.flow, order)
        assert latency == schedule(case.flow, order)[0]
        found = min(found, latency)
        for step in range(3):
            latency, better = annealed(case.flow, walk, latency, found, Cooling(2000, 3.0, 0.05, 7 * seed + step))
            now = Order(walk.device, walk.sequence, walk.caller, walk.first, walk.following)
            assert valid(case, now) == pytest.approx(latency)
            if better is not None:
                found = valid(case, better)
    assert found == pytest.approx(best)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(100))
def test_no_lower_bound_lies_above_the_optimum(seed: int) -> None:
    case = sample(seed, nodes=6, devices=2)
    best = optimum(case)
    flow = case.flow
    assert relaxed_latency(flow, 10.0, pairs=False) <= relaxed_latency(flow, 10.0) * (1.0 + 1e-5) + 1e-9
    assert relaxed_latency(flow, 10.0) <= best + 1e-9
    for bound, order in bounds_and_orders(flow):
        assert bound <= best + 1e-9
        if order is not None and not np.isfinite(case.room).any():
            assert schedule(flow, order)[0] >= best - 1e-9
    chain = chain_of(flow, 2)
    for bound, _ in refined(chain, improver(flow, seed), lambda: np.inf, 3):
        assert bound <= best + 1e-9


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(120))
def test_narrowing_takes_away_no_schedule_within_its_limit(seed: int) -> None:
    case = sample(seed, nodes=6, devices=2 + seed % 2)
    flow = case.flow
    solved = solve_exactly(flow, None, 1000.0, effort=20.0, seed=1)
    if not solved.final or solved.order is None:
        pytest.skip("nothing is feasible")
    best, device = valid(case, solved.order), solved.order.device
    assert refuted(flow, 0.0, best + 1.0) <= best + 1e-9
    assert narrowed(flow, best * 0.999 - 1e-6) is None or best > 0.0
    left = narrowed(flow, best)
    assert left is not None
    assert np.isfinite(left.flow.time[np.arange(flow.nodes), device]).all()
    assert (device == device[left.flow.member[left.flow.member_start[left.flow.unit]]]).all()
    _, times = schedule(flow, solved.order)
    for v, d in enumerate(device.tolist()):
        assert left.early[v, d] <= times.begun[v] + 1e-9
        assert left.late[v, d] <= best - times.ended[v] + 1e-9
    for t, d in np.argwhere(np.isfinite(times.sent)).tolist():
        assert np.isfinite(left.flow.given[t, device[case.producer[t]], d])


def test_narrowing_alone_refutes_what_one_device_cannot_do_and_moves_are_too_dear_for() -> None:
    """One node feeds four that feed one: moving a tensor there and another back takes longer than all on one device."""
    case = sample(0, nodes=6, devices=2, congestion=set(), sequential=True)
    case.time, case.memory, case.room = np.full((6, 2), 2.0), np.zeros(6), np.full(2, np.inf)
    case.producer = [0, 0, 0, 0, 1, 2, 3, 4]
    case.reads = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 5), (6, 5), (7, 5)]
    case.groups = []
    for moving, least in ((8.0, 12.0), (0.5, 8.5)):
        given = np.full((8, 2, 2), moving) * (1.0 - np.eye(2))
        case.moves = dataclasses.replace(case.moves, given=given)
        bound = refuted(case.flow, 0.0, 12.0, rounds=30)
        assert bound <= optimum(case) + 1e-9
        assert optimum(case) == least
        if moving == 8.0:
            assert bound == pytest.approx(12.0)
            left = narrowed(case.flow, 12.0)
            assert left is not None
            assert len(left.flow.member_start) == 2


@pytest.mark.parametrize("seed", range(20))
def test_cuts_are_a_path_and_blocks_are_small_where_that_is_possible(seed: int) -> None:
    flow = sample(seed, nodes=14, devices=2).flow
    chain = chain_of(flow, 5)
    for u, v in itertools.pairwise(chain.nodes.tolist()):
        assert reaches(flow, u, True)[v]
    work = np.where(np.isfinite(flow.time), flow.time, np.inf).min(axis=1)
    inside = {int(v) for block in chain.blocks for v in block.nodes if v not in (block.before, block.after)}
    assert len(inside) + len(chain.nodes) <= flow.nodes
    assert work[[*inside, *chain.nodes.tolist()]].sum() > 0.0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(40))
def test_a_schedule_of_blocks_is_as_long_as_the_bound_where_nothing_lies_beside(seed: int) -> None:
    """Two random graphs one after the other, with a node between them that reads and is read by all."""
    case = sample(seed, nodes=7, devices=2)
    case.room[:] = np.inf
    case.groups = []
    case.time[np.isinf(case.time)] = 3.0
    tensors = len(case.producer)
    middle = 3
    keep = [(t, v) for t, v in case.reads if (case.producer[t] < middle) == (v <= middle)]
    case.reads = sorted({*keep})
    more = [(u, middle) for u in range(middle)] + [(middle, v) for v in range(middle + 1, 7)]
    case.producer = case.producer + [u for u, _ in more]
    case.reads += [(tensors + k, v) for k, (_, v) in enumerate(more)]
    size = np.concatenate([case.moves.size, np.ones(len(more))])
    case.moves = type(case.moves)(
        case.moves.fixed, case.moves.per_size, size, np.zeros((0, 2, 2)), case.moves.hop_start, case.moves.hop,
        case.moves.hop_ends,
    )  # fmt: skip
    flow = case.flow
    chain = chain_of(flow)
    assert chain.whole
    assert middle in chain.nodes
    last: tuple[float, float] = (0.0, np.inf)
    for bound, order in refined(chain, improver(flow, seed), lambda: np.inf, 6):
        last = (bound, last[1] if order is None else min(last[1], valid(case, order)))
    whole = solve_exactly(flow, next(starts(flow)), schedule(flow, next(starts(flow)))[0], effort=20.0, seed=1)
    assert whole.final
    assert whole.order is not None
    best = valid(case, whole.order)
    assert last[0] <= best + 1e-9
    assert last[1] >= best - 1e-9
    if not any(case.producer[t] < c < v for t, v in case.reads for c in chain.nodes.tolist()):
        assert last == pytest.approx((best, best))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(20))
def test_cp_sat_gives_the_schedule_that_it_promises(seed: int) -> None:
    case = sample(seed, nodes=7, devices=3)
    flow = case.flow
    if not supported(flow).any(axis=1).all():
        pytest.skip("no device supports a group")
    solved = solve_exactly(flow, None, 1000.0, effort=20.0, seed=1)
    if solved.order is not None:
        assert valid(case, solved.order) <= solved.bound + 1e-9 or not solved.final


def test_one_seed_gives_one_sequence_of_schedules() -> None:
    case = sample(5, nodes=60, devices=3, sequential=True, congestion={"port"})  # too large for CP-SAT at once
    case.room[:] = np.inf

    def values(seed: int) -> list[float]:
        search, out = from_flow(case.flow, None, seed), []
        for k, _ in enumerate(run(search)):
            out.append(search.value)
            if k == 3:
                break
        return out

    assert values(1) == values(1)
