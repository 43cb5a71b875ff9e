"""The dynamic program over ideals against recursion over the sets themselves."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

from placedsl.algorithms.ideals.chain_cover import chain_cover
from placedsl.algorithms.ideals.enumeration import ideals
from placedsl.algorithms.pipelines.load_pruning import LoadPruning
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.pipelines.state_dp import best_pipeline, sliced
from placedsl.algorithms.pipelines.state_table import StateDPResult
from placedsl.algorithms.stages.stage_costs import DeviceClasses, StageCostModel, after_computation
from placedsl.graph.contraction import Quotient, contract

pytestmark = pytest.mark.rotates(2)


def problem(seed: int, *, unlike: bool = False) -> tuple[Quotient, DeviceClasses]:
    """A random graph of up to eight nodes on one or two classes of devices, with groups, memory, unsupported nodes.

    ``unlike``: some nodes take 10^10 times as long on one of the classes.
    """
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 9))
    pairs = [(u, v) for u, v in itertools.combinations(range(nodes), 2) if rng.random() < rng.choice([0.2, 0.5])]
    classes = int(rng.integers(1, 3))
    work = rng.integers(0 if rng.random() < 0.2 else 1, 9, size=(classes, nodes)).astype(float)
    work[rng.random(work.shape) < 0.08] = np.inf
    if unlike:
        work[int(rng.integers(0, classes)), rng.random(nodes) < 0.3] *= 1e10
    memory = rng.integers(0, 4, nodes).astype(float)
    producers = sorted({u for u, _ in pairs})
    transfer = rng.integers(0, 6, size=(classes, len(producers))).astype(float)
    if classes == 2:
        transfer[1] = 0.0 if rng.random() < 0.6 else transfer[1]
    groups = [rng.integers(0, nodes, nodes)] if rng.random() < 0.2 else []
    counts = tuple(int(c) for c in rng.integers(1, 4, classes))
    limits = tuple(float(rng.integers(2, 8)) if rng.random() < 0.5 else math.inf for _ in counts)
    starts = np.concatenate(([0], np.cumsum(counts)))
    devices = tuple(np.arange(a, b) for a, b in itertools.pairwise(starts))
    edge = np.array([[producers.index(u), v] for u, v in pairs], dtype=np.int64).reshape(-1, 2)
    pair = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    quotient = contract(
        memory=memory, work=work, groups=groups, before=pair[:, 0], after=pair[:, 1],
        tensor_producer=np.array(producers, dtype=np.int64), read_tensor=edge[:, 0], read_node=edge[:, 1],
        transfer=transfer,
    )  # fmt: skip
    return quotient, DeviceClasses(counts, limits, devices)


def load(quotient: Quotient, own: frozenset[int], kind: int) -> float:
    """Section 3: the units' times, and the transfer of each tensor that the set has some of and not all."""
    tensors = [set(map(int, p)) for p in np.split(quotient.pin_unit, quotient.pin_start[1:-1])]
    moved = (quotient.transfer[kind, t] for t, pins in enumerate(tensors) if pins & own and pins - own)
    return float(sum(quotient.work[kind, u] for u in own) + sum(moved))


def by_recursion(quotient: Quotient, classes: DeviceClasses) -> tuple[float, int]:
    """The least largest load, and the fewest devices that reach it."""
    pairs = list(zip(quotient.before.tolist(), quotient.after.tolist(), strict=True))
    units = range(quotient.units)
    sets = [
        frozenset(s) for k in range(quotient.units + 1) for s in itertools.combinations(units, k)
        if all(u in s for u, v in pairs if v in s)
    ]  # fmt: skip
    costs: dict[tuple[frozenset[int], int], float] = {}

    def cost(own: frozenset[int], kind: int) -> float:
        if (own, kind) not in costs:
            held = sum(quotient.memory[u] for u in own)
            costs[own, kind] = math.inf if held > classes.memory[kind] else load(quotient, own, kind)
        return costs[own, kind]

    @functools.cache
    def best(inside: frozenset[int], left: tuple[int, ...]) -> tuple[tuple[float, int], ...]:
        """Pairs of value and devices used, better in one where worse in the other."""
        if not inside:
            return ((0.0, 0),)
        found: dict[int, float] = {}
        for smaller in sets:
            if not smaller < inside:
                continue
            for kind, count in enumerate(left):
                if not count:
                    continue
                here = cost(inside - smaller, kind)
                fewer = tuple(c - (k == kind) for k, c in enumerate(left))
                for value, used in best(smaller, fewer):
                    found[used + 1] = min(found.get(used + 1, math.inf), max(value, here))
        return tuple((v, n) for n, v in found.items() if v < math.inf)

    options = best(frozenset(units), classes.counts)
    return min(options, default=(math.inf, 0))


def check(stages: StageCostModel, quotient: Quotient, classes: DeviceClasses, found: StateDPResult) -> None:
    """The placement is a pipeline that fits and costs what is said."""
    assert found.device is not None
    family = {int(d): c for c, members in enumerate(classes.devices) for d in members}
    sets = {d: frozenset(np.flatnonzero(found.device == d).tolist()) for d in set(found.device.tolist())}
    loads = [load(quotient, own, family[d]) for d, own in sets.items()]
    assert max(loads) == pytest.approx(found.value)
    for d, own in sets.items():
        assert sum(quotient.memory[u] for u in own) <= classes.memory[family[d]]
        assert stages.load(np.array(sorted(own)), family[d]) == pytest.approx(load(quotient, own, family[d]))
    after = {(int(found.device[u]), int(found.device[v])) for u, v in zip(quotient.before, quotient.after, strict=True)}
    for order in itertools.permutations(sets):
        place = {d: i for i, d in enumerate(order)}
        if all(place[a] <= place[b] for a, b in after):
            return
    raise AssertionError("the devices form no pipeline")


@pytest.mark.parametrize("seed", range(40))
def test_random_problems(seed: int) -> None:
    """Fifty each: the value, whether there is one, the fewest devices, and the pipeline itself."""
    for case in range(50):
        quotient, classes = problem(1000 * seed + case, unlike=seed % 4 == 3)
        stages = after_computation(quotient, classes)
        value, devices = by_recursion(quotient, classes)
        found = best_pipeline(stages)
        assert found.complete
        assert found.value == pytest.approx(value)
        if math.isfinite(value):
            check(stages, quotient, classes, found)
            assert found.fewest
            assert found.device is not None
            assert len(set(found.device.tolist())) == devices or value > 1e8
            start = sliced(stages)
            assert start.value >= value * (1 - 1e-9)
            if start.device is not None:
                check(stages, quotient, classes, start)


@pytest.mark.parametrize("seed", range(40, 50))
def test_nothing_hangs_on_room_and_patience(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly any ideals fit at once, so that loads are closed in on, and the join pauses after every pair."""
    numbers = (("dp._FEW", 1), ("dp._MANY", 2), ("table._PATIENCE", 1), ("dp._APPROACH_GAP", 1e-6))
    for name, number in numbers:
        monkeypatch.setattr(f"placedsl.algorithms.pipelines.state_{name}", number)
    for case in range(50):
        quotient, classes = problem(1000 * seed + case)
        value, devices = by_recursion(quotient, classes)
        found = best_pipeline(after_computation(quotient, classes))
        assert found.complete
        assert found.value == pytest.approx(value)
        if math.isfinite(value):
            check(after_computation(quotient, classes), quotient, classes, found)
            assert found.device is not None
            assert len(set(found.device.tolist())) == devices


@pytest.mark.parametrize("seed", range(50, 60))
def test_transfer_pruning_keeps_what_can_be_paid(seed: int) -> None:
    """What the walk stores are the ideals that are paid for on both sides, and what it learns are their least cuts."""
    for case in range(30):
        quotient, classes = problem(1000 * seed + case)
        stages = after_computation(quotient, classes)
        best = best_pipeline(stages).value
        cover = chain_cover(stages.units, stages.before, stages.after)
        if cover is None or math.isinf(best):
            continue
        pruning = LoadPruning(stages, best)
        transfers = pruning.transfer_pruning(cover)
        if transfers is None:
            continue
        a = pruning.paying
        assert a is not None
        short = pruning.short(cover, a)
        everything = ideals(cover, pruning.weight, most=1000)
        expected, least = set(), np.full((2, classes.counts[a] + 1), np.inf)
        for row in everything.positions:
            inside = np.concatenate([cover.unit[b : b + n] for b, n in zip(cover.start, row.tolist(), strict=False)])
            own = edges(stages, inside.astype(np.int64), a)
            rest = edges(stages, np.setdiff1d(np.arange(stages.units), inside), a)
            weight = int(pruning.weight[inside.astype(np.int64)].sum())
            for used, left in zip(pruning.digits, pruning.left, strict=True):
                alone = [used.sum() == used[a], left.sum() == left[a]]
                takes = pruning.takes(used, own.sum() * alone[0]), pruning.takes(left, rest.sum() * alone[1])
                if weight <= takes[0] and pruning.total - weight <= takes[1]:
                    expected.add(tuple(row.tolist()))
                    least[:, used[a]] = np.minimum(least[:, used[a]], [own[short].sum(), rest[short].sum()])
        found = ideals(cover, pruning.weight, pruning.weight_ranges(), most=1000, pruning=transfers)
        assert found.complete
        assert {tuple(row) for row in found.positions.tolist()} == expected
        assert found.fit == len(expected) == len(found.positions)
        parts = pruning.total / stages.least.sum()
        known = transfers.least < 2**62
        assert (known == np.isfinite(least)).all()
        assert np.allclose(transfers.least[known] / parts, least[known])
        few = ideals(cover, pruning.weight, pruning.weight_ranges(), most=1, pruning=pruning.transfer_pruning(cover))
        assert (few.fit, few.complete) == (found.fit, len(expected) <= 1)


def edges(stages: StageCostModel, own: np.ndarray, kind: int) -> np.ndarray:
    """What a set of units pays for each edge."""
    chosen = np.isin(np.arange(stages.units), own)
    touching = np.repeat(chosen, np.diff(stages.touch_start))
    code = np.bincount(stages.touched[touching], stages.role[touching], len(stages.readers)).astype(np.int64)
    cut = (code > 0) & (code <= 2 * stages.readers)
    return np.where(cut, np.where(code & 1, stages.output_cost[0, kind], stages.input_cost[0, kind]), 0.0)


def test_a_proven_bound_ends_the_search_where_ideals_are_too_many() -> None:
    """Unrelated units: 2^40 ideals, but two devices with half of the work each cannot be improved on."""
    none = np.zeros(0, dtype=np.int64)
    quotient = contract(
        memory=np.zeros(40), work=np.ones((1, 40)), groups=[], before=none, after=none, tensor_producer=none,
        read_tensor=none, read_node=none, transfer=np.zeros((1, 0)),
    )  # fmt: skip
    stages = after_computation(quotient, DeviceClasses((2,), (math.inf,), (np.arange(2),)))
    found = best_pipeline(stages, SearchLimits(most=1000), at_least=20.0)
    assert (found.value, found.complete, found.fewest, found.too_many) == (20.0, True, False, True)
    unproven = best_pipeline(stages, SearchLimits(most=1000), at_least=19.0)
    assert (unproven.value, unproven.complete, unproven.too_many) == (20.0, False, True)


def test_limits() -> None:
    """What has been found by then is returned, as unproven."""
    quotient, classes = problem(3)
    stopped = best_pipeline(after_computation(quotient, classes), SearchLimits(stop=lambda: True))
    assert not stopped.complete
    late = best_pipeline(after_computation(quotient, classes), SearchLimits(deadline=0.0))
    assert not late.complete


def test_a_long_path_in_stages() -> None:
    """20,000 units in a row, four devices: the even cut."""
    units = 20_000
    steps = np.arange(units)
    quotient = contract(
        memory=np.zeros(units), work=np.ones((1, units)), groups=[], before=steps[:-1], after=steps[1:],
        tensor_producer=steps[:-1], read_tensor=steps[:-1], read_node=steps[1:], transfer=np.full((1, units - 1), 7.0),
    )  # fmt: skip
    found = best_pipeline(after_computation(quotient, DeviceClasses((4,), (math.inf,), (np.arange(4),))))
    assert found.complete
    # The inner stages pay two transfers, the outer ones one.
    assert found.value == math.ceil((units + 6 * 7) / 4)
