"""The search for schedules of dataflow and its lower bounds, against all placements and all orders."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from support.operator_schedules import READINGS, optimum, sample, valid

from placedsl.algorithms.annealing import CoolingSchedule
from placedsl.algorithms.operator_scheduling.bounds.domain_reduction import destructive_bound, reduce_domains
from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import reachable
from placedsl.algorithms.operator_scheduling.bounds.relaxation import relaxed_latency
from placedsl.algorithms.operator_scheduling.bounds.streams import bounds_and_sequences
from placedsl.algorithms.operator_scheduling.decomposition.block_solving import BlockImprover
from placedsl.algorithms.operator_scheduling.decomposition.blocks import chain_of, refine
from placedsl.algorithms.operator_scheduling.exact_cp_sat import solve_exactly
from placedsl.algorithms.operator_scheduling.instance import no_longer_than, supported
from placedsl.algorithms.operator_scheduling.schedule_kernel import OperatorSequence, schedule_of
from placedsl.algorithms.operator_scheduling.search.annealing import run_annealing
from placedsl.algorithms.operator_scheduling.search.incremental_kernel import incremental_schedule
from placedsl.algorithms.operator_scheduling.search.initial_orders import initial_orders
from placedsl.algorithms.operator_scheduling.search.search import annealed_parts, run, search_from

pytestmark = pytest.mark.rotates(3)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("sequential", [True, False])
@pytest.mark.parametrize("reading", range(4))
@pytest.mark.parametrize("seed", range(12))
def test_the_search_proves_the_optimum(seed: int, reading: int, sequential: bool) -> None:
    case = sample(seed, nodes=5, devices=2 + seed % 2, congestion=READINGS[reading], sequential=sequential)
    best = optimum(case)
    search = search_from(case.instance, None, seed)
    for _ in run(search):
        pass
    assert search.value == pytest.approx(best)
    if np.isfinite(best):
        assert search.best is not None
        assert valid(case, search.best) == search.value
        assert search.proven or best == 0.0


@pytest.mark.sampled(16)
@pytest.mark.parametrize("seed", range(60))
def test_annealing_alone_comes_to_the_optimum_of_small_problems(seed: int) -> None:
    case = sample(seed, nodes=5)
    case.room[:] = np.inf
    best = optimum(case)
    found = np.inf
    for sequence in initial_orders(case.instance):
        schedule, latency = incremental_schedule(case.instance, sequence)
        assert latency == schedule_of(case.instance, sequence)[0]
        found = min(found, latency)
        for step in range(3):
            latency, better = run_annealing(
                case.instance, schedule, latency, found, CoolingSchedule(2000, 3.0, 0.05, 7 * seed + step)
            )
            now = OperatorSequence(
                schedule.device,
                schedule.order,
                schedule.transfer_trigger,
                schedule.first_transfer,
                schedule.next_transfer,
            )
            assert valid(case, now) == pytest.approx(latency)
            if better is not None:
                found = valid(case, better)
    assert found == pytest.approx(best)


def test_annealing_of_a_part_moves_nodes_there() -> None:
    """Single steps: where devices change, that of a node drawn does."""
    moved = 0
    for seed in range(60):
        case = sample(seed, nodes=12, devices=3)
        case.room[:], case.groups = np.inf, []
        schedule, latency = incremental_schedule(case.instance, next(iter(initial_orders(case.instance))))
        before, drawn = schedule.device.copy(), schedule.order[3:5].copy()
        run_annealing(case.instance, schedule, latency, latency, CoolingSchedule(1, 99.0, 99.0, seed), 0.0, range(3, 5))
        changed = schedule.device != before
        assert changed[drawn].any() == changed.any(), seed
        moved += int(changed.any())
    assert moved > 10


@pytest.mark.parametrize("seed", range(4))
def test_parts_of_the_order_are_annealed_in_the_whole(seed: int) -> None:
    """From one device for all nodes, where congested transfers pay."""
    case = sample(seed, nodes=60, devices=3, congestion={"port"})
    case.room[:] = np.inf
    search = search_from(case.instance, None, seed)
    assert search.best is not None
    first = search.value
    for better in itertools.islice(annealed_parts(search, 16), 12):
        assert search.best is not None
        assert valid(case, search.best) == search.value <= first
        assert better == (search.value < first)
        first = search.value


@pytest.mark.sampled(16)
@pytest.mark.parametrize("seed", range(100))
def test_no_lower_bound_lies_above_the_optimum(seed: int) -> None:
    case = sample(seed, nodes=6, devices=2)
    best = optimum(case)
    instance = case.instance
    assert relaxed_latency(instance, 10.0, pairs=False) <= relaxed_latency(instance, 10.0) * (1.0 + 1e-5) + 1e-9
    assert relaxed_latency(instance, 10.0) <= best + 1e-9
    assert no_longer_than(instance) >= best * (1.0 - 1e-12)
    for unit in (1e-10, 1e7):  # in other units of time
        times = {name: unit * getattr(instance, name) for name in ("time", "fixed", "per_size", "given")}
        found = relaxed_latency(instance._replace(**times), 10.0)
        assert found == pytest.approx(unit * relaxed_latency(instance, 10.0), rel=1e-5, abs=0.0)
    for bound, sequence in bounds_and_sequences(instance):
        assert bound <= best + 1e-9
        if sequence is not None and not np.isfinite(case.room).any():
            assert schedule_of(instance, sequence)[0] >= best - 1e-9
    chain = chain_of(instance, 2)
    for bound, _ in refine(chain, BlockImprover(instance, seed), lambda: np.inf, 3):
        assert bound <= best + 1e-9


@pytest.mark.sampled(16)
@pytest.mark.parametrize("seed", range(120))
def test_domain_reduction_keeps_every_schedule_within_the_limit(seed: int) -> None:
    case = sample(seed, nodes=6, devices=2 + seed % 2)
    instance = case.instance
    solved = solve_exactly(instance, None, 1000.0, effort=20.0, seed=1)
    if not solved.final or solved.sequence is None:
        pytest.skip("nothing is feasible")
    best, device = valid(case, solved.sequence), solved.sequence.device
    assert destructive_bound(instance, 0.0, best + 1.0) <= best + 1e-9
    assert reduce_domains(instance, best * 0.999 - 1e-6) is None or best > 0.0
    left = reduce_domains(instance, best)
    assert left is not None
    assert np.isfinite(left.instance.time[np.arange(instance.nodes), device]).all()
    assert (device == device[left.instance.member[left.instance.member_start[left.instance.unit]]]).all()
    _, times = schedule_of(instance, solved.sequence)
    for v, d in enumerate(device.tolist()):
        assert left.heads[v, d] <= times.begun[v] + 1e-9
        assert left.tails[v, d] <= best - times.ended[v] + 1e-9
    for t, d in np.argwhere(np.isfinite(times.sent)).tolist():
        assert np.isfinite(left.instance.given[t, device[case.producer[t]], d])


def test_domain_reduction_alone_refutes_limits_below_one_device_s_work_if_transfers_are_expensive() -> None:
    """One node feeds four that feed one: moving a tensor there and another back takes longer than all on one device."""
    case = sample(0, nodes=6, devices=2, congestion=set(), sequential=True)
    case.time, case.memory, case.room = np.full((6, 2), 2.0), np.zeros(6), np.full(2, np.inf)
    case.producer = [0, 0, 0, 0, 1, 2, 3, 4]
    case.reads = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 5), (6, 5), (7, 5)]
    case.groups = []
    for moving, least in ((8.0, 12.0), (0.5, 8.5)):
        given = np.full((8, 2, 2), moving) * (1.0 - np.eye(2))
        case.moves = dataclasses.replace(case.moves, explicit=given)
        bound = destructive_bound(case.instance, 0.0, 12.0, rounds=30)
        assert bound <= optimum(case) + 1e-9
        assert optimum(case) == least
        if moving == 8.0:
            assert bound == pytest.approx(12.0)
            left = reduce_domains(case.instance, 12.0)
            assert left is not None
            assert len(left.instance.member_start) == 2


@pytest.mark.parametrize("seed", range(20))
def test_cuts_are_a_path_and_blocks_are_small_where_that_is_possible(seed: int) -> None:
    instance = sample(seed, nodes=14, devices=2).instance
    chain = chain_of(instance, 5)
    for u, v in itertools.pairwise(chain.nodes.tolist()):
        assert reachable(instance, u, True)[v]
    work = np.where(np.isfinite(instance.time), instance.time, np.inf).min(axis=1)
    inside = {int(v) for block in chain.blocks for v in block.nodes if v not in (block.before, block.after)}
    assert len(inside) + len(chain.nodes) <= instance.nodes
    assert work[[*inside, *chain.nodes.tolist()]].sum() > 0.0


@pytest.mark.sampled(16)
@pytest.mark.parametrize("seed", range(40))
def test_a_schedule_of_blocks_is_as_long_as_the_bound_where_nothing_lies_beside(seed: int) -> None:
    """Two random graphs one after the other, with a node between them that reads and is read by all."""
    case = sample(seed, nodes=7, devices=2)
    case.room[:] = np.inf
    case.groups = []
    case.time[np.isinf(case.time)] = 3.0
    tensors = len(case.producer)
    middle = 3
    commit = [(t, v) for t, v in case.reads if (case.producer[t] < middle) == (v <= middle)]
    case.reads = sorted({*commit})
    more = [(u, middle) for u in range(middle)] + [(middle, v) for v in range(middle + 1, 7)]
    case.producer = case.producer + [u for u, _ in more]
    case.reads += [(tensors + k, v) for k, (_, v) in enumerate(more)]
    size = np.concatenate([case.moves.size, np.ones(len(more))])
    case.moves = type(case.moves)(
        case.moves.latency, case.moves.inverse_bandwidth, size, np.zeros((0, 2, 2)),
        case.moves.hop_start, case.moves.hop, case.moves.hop_ends,
    )  # fmt: skip
    instance = case.instance
    chain = chain_of(instance)
    assert chain.whole
    assert middle in chain.nodes
    last: tuple[float, float] = (0.0, np.inf)
    for bound, sequence in refine(chain, BlockImprover(instance, seed), lambda: np.inf, 6):
        last = (bound, last[1] if sequence is None else min(last[1], valid(case, sequence)))
    whole = solve_exactly(
        instance,
        next(initial_orders(instance)),
        schedule_of(instance, next(initial_orders(instance)))[0],
        effort=20.0,
        seed=1,
    )
    assert whole.final
    assert whole.sequence is not None
    best = valid(case, whole.sequence)
    assert last[0] <= best + 1e-9
    assert last[1] >= best - 1e-9
    if not any(case.producer[t] < c < v for t, v in case.reads for c in chain.nodes.tolist()):
        assert last == pytest.approx((best, best))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", range(20))
def test_cp_sat_gives_the_schedule_that_it_promises(seed: int) -> None:
    case = sample(seed, nodes=7, devices=3)
    instance = case.instance
    if not supported(instance).any(axis=1).all():
        pytest.skip("no device supports a group")
    solved = solve_exactly(instance, None, 1000.0, effort=20.0, seed=1)
    if solved.sequence is not None:
        assert valid(case, solved.sequence) <= solved.bound + 1e-9 or not solved.final


def test_one_seed_gives_one_sequence_of_schedules() -> None:
    case = sample(5, nodes=60, devices=3, sequential=True, congestion={"port"})  # too large for CP-SAT at once
    case.room[:] = np.inf

    def values(seed: int) -> list[float]:
        search, out = search_from(case.instance, None, seed), []
        for k, _ in enumerate(run(search)):
            out.append(search.value)
            if k == 1:
                break
        return out

    assert values(1) == values(1)
