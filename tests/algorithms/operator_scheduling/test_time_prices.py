"""Bounds with prices of the time of devices and ports, for work beside the blocks of a chain; and chains without cuts
that tensors bypass.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.operator_schedules import Sample, optimum, sample

from placedsl.algorithms.operator_scheduling.bounds import price_search
from placedsl.algorithms.operator_scheduling.bounds.beside import Beside
from placedsl.algorithms.operator_scheduling.bounds.heads_tails_kernel import all_predecessors
from placedsl.algorithms.operator_scheduling.bounds.price_search import priced_bounds
from placedsl.algorithms.operator_scheduling.bounds.streams import bounds_and_sequences
from placedsl.algorithms.operator_scheduling.bounds.time_prices import time_uses
from placedsl.algorithms.operator_scheduling.decomposition.blocks import Chain, chain_between
from placedsl.algorithms.operator_scheduling.decomposition.cuts import chosen_cuts, not_bypassed
from placedsl.algorithms.operator_scheduling.instance import integers


def along(seed: int, line: int, inside: int, beside: int, devices: int = 2) -> Sample:
    """A line of nodes with others between two that follow one another, and others beside several of the line."""
    rng = np.random.default_rng(seed)
    nodes = line + inside + beside
    case = sample(seed, nodes=nodes, devices=devices, sequential=True)
    ends = [(k, k + 1) for k in rng.integers(0, line - 1, inside).tolist()]
    for _ in range(beside):
        first, last = sorted(rng.choice(line, 2, replace=False).tolist())
        ends.append((first if rng.random() < 0.8 else -1, last if rng.random() < 0.8 else line))
    # In topological order: a node right after the last of the line that comes before it.
    place = np.argsort([*range(line), *(first + 0.5 for first, _ in ends)], kind="stable")
    number = np.empty(nodes, dtype=np.int64)
    number[place] = np.arange(nodes)
    reads = {(k, k + 1) for k in range(line - 1)}
    for v, (first, last) in enumerate(ends, line):
        reads |= {(first, v)} if first >= 0 else set()
        reads |= {(v, last)} if last < line else set()
    pairs = sorted((int(number[u]), int(number[w])) for u, w in reads)
    case.producer = [u for u, _ in pairs] if rng.random() < 0.5 else sorted({u for u, _ in pairs})
    alone = len(case.producer) == len(pairs)
    case.reads = [(t if alone else case.producer.index(u), w) for t, (u, w) in enumerate(pairs)]
    case.room[:] = np.inf
    sizes, given = rng.integers(0, 4, len(case.producer)).astype(float), np.zeros((0, devices, devices))
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": sizes})
    if rng.random() < 0.3:
        case.time[:] = case.time[:, :1]
    return case


def scaled(case: Sample, seconds: float) -> None:
    """Other units of time."""
    moves = vars(case.moves)
    case.time = case.time * seconds
    case.moves = type(case.moves)(
        **{**moves, **{name: seconds * moves[name] for name in ("latency", "inverse_bandwidth")}}
    )


def bounds(chain: Chain) -> list[float]:
    """Of all parts of the chain, until nothing more is to come."""
    steps = (itertools.takewhile(lambda step: not step[1], priced_bounds(chain, uses)) for uses in time_uses(chain))
    return [bound for bounds in steps for bound, _ in bounds]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(0, 240, 6))
def test_no_bound_is_above_the_optimum(first: int) -> None:
    for seed in range(first, first + 6):
        case = along(seed, 4, seed % 2, 2, devices=2 + seed % 2)
        scaled(case, (1.0, 1e-7, 1e5)[seed % 3])
        best = optimum(case)
        for cuts in chosen_cuts(case.instance, 2, 4):
            assert max(bounds(chain_between(case.instance, cuts)), default=0.0) <= best, seed


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(0, 80, 4))
def test_all_bounds_together(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With blocks so small that cuts have work beside them, and finer chains."""
    from placedsl.algorithms.operator_scheduling.bounds import streams

    monkeypatch.setattr(streams, "_LARGE", 4)
    monkeypatch.setattr(streams, "_SMALL", 2)
    for seed in range(first, first + 4):
        case = along(seed, 4, 1, 2)
        best = optimum(case)
        found = [bound for bound, _ in bounds_and_sequences(case.instance, upper=lambda best=best: best)]
        assert max(found) <= best * (1.0 + 1e-9), seed


def behind_one_another(count: int, beside: int, seconds: float) -> Sample:
    """So many nodes of a second each, one after the other, and others of a second between the first and the last; all
    transfers take as many ``seconds``.  Two devices that are alike, the first and the last node on the first of them.
    """
    case = along(0, count, 0, 0)
    nodes = count + beside
    case.time = np.ones((nodes, 2))
    case.time[[0, count - 1], 1] = np.inf
    case.memory, case.groups, case.congestion = np.zeros(nodes), [], {"port"}
    line = [(k, k + 1) for k in range(count - 1)]
    reads = [*line, *((u, w) for v in range(count, nodes) for u, w in ((0, v), (v, count - 1)))]
    case.producer, case.reads = [u for u, _ in reads], [(t, w) for t, (_, w) in enumerate(reads)]
    given = np.full((len(reads), 2, 2), seconds) * (1.0 - np.eye(2))
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": np.ones(len(reads))})
    return case


def line_of(case: Sample, count: int) -> Chain:
    return chain_between(case.instance, integers(np.arange(count)))


def test_work_beside_goes_where_there_is_time() -> None:
    """Ten nodes between two, eight others beside: 18 / 2 seconds of work in ten, if nothing has to be sent."""
    chain = line_of(behind_one_another(12, 8, 0.0), 12)
    assert chain.bound() == pytest.approx(12.0)
    assert max(bounds(chain)) == pytest.approx(12.0)
    chain = line_of(behind_one_another(12, 14, 0.0), 12)
    assert 13.9 < max(bounds(chain)) <= 14.0


def test_work_beside_stays_where_transfers_take_too_long() -> None:
    """Each of eight nodes takes its device a second, or a port twenty; the line itself takes 52 on the other device.  A
    mixture of both in fractions takes 17.77, and 19.07 where the line stays; the optimum is 20.
    """
    chain = line_of(behind_one_another(12, 8, 20.0), 12)
    assert 19.0 < max(bounds(chain)) <= 20.0


def test_transfers_within_blocks_take_time_of_ports_as_well() -> None:
    """Between two nodes of a line on the first device is one on the second, to which a transfer takes a second; 20
    others there, beside the line, need one of two seconds each.  All devices are fixed: the port sends for 51 seconds
    between the first node and the last, which begins after the last transfer, a second of work and one back of 2.
    """
    count, others = 12, 20
    case = behind_one_another(count, others, 2.0)
    inside = [count + others + k for k in range(count - 1)]
    case.time = np.ones((count + others + count - 1, 2))
    case.time[:count, 1] = case.time[count:, 0] = np.inf
    case.memory = np.zeros(len(case.time))
    between = [(u, w) for k, v in enumerate(inside) for u, w in ((k, v), (v, k + 1))]
    reads = [*zip(case.producer, (w for _, w in case.reads), strict=True), *between]
    case.producer, case.reads = [u for u, _ in reads], [(t, w) for t, (_, w) in enumerate(reads)]
    seconds = np.array([2.0] * (len(reads) - len(between)) + [1.0] * len(between))
    given = seconds[:, None, None] * (1.0 - np.eye(2))
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": np.ones(len(reads))})
    chain = line_of(case, count)
    assert chain.bound() == pytest.approx(12.0 + 11 * 3.0)
    assert 51.0 < max(bounds(chain)) <= 1.0 + 51.0 + 1.0 + 2.0 + 1.0


def test_a_tensor_that_is_read_in_a_block_and_beside_it_crosses_once() -> None:
    """What the first of a line of three makes is read on the other device by a node of the first block and by two
    beside; it takes ten seconds to cross, and all else next to nothing.
    """
    case = behind_one_another(3, 3, 0.1)
    case.time[:3, 1] = case.time[3:, 0] = np.inf
    case.producer = [0, 0, 1, 3, 4, 5]
    case.reads = [(0, 1), (1, 3), (1, 4), (1, 5), (2, 2), (3, 1), (4, 2), (5, 2)]
    given = np.array([0.1, 10.0, 0.1, 0.1, 0.1, 0.1])[:, None, None] * (1.0 - np.eye(2))
    case.moves = type(case.moves)(**{**vars(case.moves), "explicit": given, "size": np.ones(len(given))})
    best = optimum(case)
    assert best == pytest.approx(1.0 + 10.0 + 3.0 + 0.1 + 1.0)
    chain = line_of(case, 3)
    assert 12.0 < max(bounds(chain)) <= best


def test_branches_over_devices_of_the_chain_say_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never less than prices alone, and much more for some."""
    gains = []
    for seed in range(60):
        case = along(seed, 4, seed % 2, 2, devices=2 + seed % 2)
        chains = [[chain_between(case.instance, cuts) for cuts in chosen_cuts(case.instance, 2, 4)] for _ in range(2)]
        with_branches = max((bound for chain in chains[0] for bound in bounds(chain)), default=0.0)
        with monkeypatch.context() as patch:
            patch.setattr(price_search._Branch, "divided", lambda branch: [])
            alone = max((bound for chain in chains[1] for bound in bounds(chain)), default=0.0)
        assert with_branches >= alone * (1.0 - 1e-9), seed
        gains.append(with_branches > 1.01 * alone)
    assert any(gains)
    assert not all(gains)


@pytest.mark.parametrize("seed", range(100))
def test_nodes_beside_cost_no_more_than_any_placement_of_them(seed: int) -> None:
    """By enumeration; it is the least where their reads are a forest."""
    rng = np.random.default_rng(seed)
    instance = sample(seed, nodes=5, devices=2, sequential=True, congestion={"port"}).instance
    time = np.where(np.isfinite(instance.time), instance.time, 0.0)
    nodes = instance.topological[1:]
    price, ports = rng.random(2), rng.random(instance.resources)
    first = int(instance.topological[0])
    cost, used = Beside(instance, nodes, time[nodes], first).least(price, ports)
    from placedsl.algorithms.operator_scheduling.instance import moves

    move = moves(instance)
    for a in range(2):
        least = np.inf
        for chosen in itertools.product(range(2), repeat=4):
            device = np.empty(5, dtype=np.int64)
            device[first], device[nodes] = a, chosen
            if not np.isfinite(instance.time[np.arange(5), device]).all():
                continue
            total = float((time[nodes, device[nodes]] * price[device[nodes]]).sum())
            for t, u in enumerate(instance.producer.tolist()):
                readers = instance.reader[instance.reader_start[t] : instance.reader_start[t + 1]]
                for d in set(device[readers].tolist()) - {int(device[u])}:
                    pair = int(device[u]) * 2 + d
                    here = instance.resource[instance.resource_start[pair] : instance.resource_start[pair + 1]]
                    total += float(move[t, device[u], d] * ports[here].sum())
            least = min(least, total)
        assert cost[a] <= least * (1.0 + 1e-9) + 1e-12
        if np.isfinite(cost[a]):
            assert cost[a] == pytest.approx(float(price @ used[a][:2] + ports @ used[a][2:]))


@pytest.mark.parametrize("seed", range(60))
def test_cuts_that_no_tensor_bypasses(seed: int) -> None:
    case = along(seed, 5, 2, 1)
    instance = case.instance
    before = all_predecessors(instance)
    cuts = chosen_cuts(instance, 3)[0]
    kept = [c for c in cuts.tolist() if not any(before[c, case.producer[t]] and before[w, c] for t, w in case.reads)]
    assert not_bypassed(instance, cuts).tolist() == kept


@pytest.mark.parametrize("seed", range(40))
def test_a_chain_knows_what_a_finer_one_proves(seed: int) -> None:
    """The bounds of a block are at least those of the blocks of a finer chain one after the other, by enumeration."""
    instance = along(seed, 5, 2, 0, devices=2).instance
    finer = chain_between(instance, chosen_cuts(instance, 2)[0])
    rng = np.random.default_rng(seed)
    kept = np.sort(rng.permutation(len(finer.nodes))[: len(finer.nodes) // 2])
    chain = chain_between(instance, finer.nodes[kept])
    alone = [block.lower_bound.copy() for block in chain.blocks]
    chain.finer = finer
    chain.take_from_finer()
    ends = [-1, *kept.tolist(), len(finer.nodes)]
    for block, own, first, last in zip(chain.blocks, alone, ends, ends[1:], strict=False):
        for a, b in itertools.product(range(2), repeat=2):
            best = np.inf
            for inner in itertools.product(range(2), repeat=last - first - 1):
                way = [a, *inner, b]
                total = sum(float(instance.time[finer.nodes[first + 1 + i], d]) for i, d in enumerate(inner))
                total += sum(
                    float(finer.blocks[first + 1 + i].lower_bound[d, e])
                    for i, (d, e) in enumerate(itertools.pairwise(way))
                )
                best = min(best, total)
            assert block.lower_bound[a, b] == pytest.approx(max(own[a, b], best))
