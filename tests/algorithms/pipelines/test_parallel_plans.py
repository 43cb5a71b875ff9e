"""Data x tensor x pipeline plans with recomputation, against enumeration by the formulas of the paper, in fractions."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from support.parallel_plans import Data, drawn, load, occupied, stages_before

from placedsl.algorithms.pipelines.parallel_plans import cheap_cuts, plan_terms, search
from placedsl.algorithms.pipelines.parallel_plans.instance import (
    ANY_NUMBER,
    Plan,
    PlanLimits,
)
from placedsl.algorithms.pipelines.parallel_plans.like_stages import LikeStages, like_stages
from placedsl.algorithms.pipelines.parallel_plans.search import best_plan
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.arrays import Integers32


def optimum(data: Data) -> Fraction | None:
    """The least largest load of all plans; None where none is feasible."""
    known: dict[tuple[frozenset[int], int, int, int], Fraction | None] = {}
    best_stage: dict[tuple[frozenset[int], int, int, int], Fraction | None] = {}

    def of_stage(stage: frozenset[int], degree: int, copies: int, in_flight: int) -> Fraction | None:
        key = (stage, degree, copies, in_flight)
        if key not in best_stage:
            units = sorted(stage)
            ways = product(*([o for o in data.options[data.kind[u]] if o.degree == degree] for u in units))
            fitting = [
                load(data, stage, degree, copies, dict(zip(units, way, strict=True)))
                for way in ways
                if occupied(way, in_flight, copies) <= data.capacity
            ]
            best_stage[key] = min(fitting, default=None)
        return best_stage[key]

    limits = data.limits or PlanLimits.none(len(data.options))

    def allowed(stage: frozenset[int], copies: int, in_flight: int) -> bool:
        kinds = [data.kind[u] for u in stage]
        return all(limits.fewest[k] <= copies <= limits.most[k] and in_flight <= limits.in_flight[k] for k in kinds)

    def rest(behind: frozenset[int], devices: int, copies_behind: int, stages: int = 0) -> Fraction | None:
        if len(behind) == len(data.kind):
            (low, high), (fewest, most) = limits.stages, limits.copies
            fine = low <= stages <= (high or stages) and fewest <= copies_behind <= (most or copies_behind)
            return Fraction(0) if fine else None
        key = (behind, devices, copies_behind, stages)
        if key in known:
            return known[key]
        best = None
        for stage in stages_before(data, behind):
            for degree, copies in product(data.degrees, data.copies):
                together = copies_behind + copies
                if degree * copies > devices or (together > data.microbatches and not data.held):
                    continue
                in_flight = data.in_flight(copies, together)
                if not allowed(stage, copies, in_flight):
                    continue
                own = of_stage(stage, degree, copies, in_flight)
                if own is None or (best is not None and own >= best):
                    continue
                before = rest(behind | stage, devices - degree * copies, together, stages + 1)
                if before is not None and (best is None or max(own, before) < best):
                    best = max(own, before)
        known[key] = best
        return best

    return rest(frozenset(), data.devices, 0)


def check(data: Data, plan: Plan, value: Fraction) -> None:
    """That a plan is one, by the data: order, devices, copies, options, memory and loads."""
    seen: set[int] = set()
    largest = Fraction(0)
    options = [(k, option) for k, own in enumerate(data.options) for option in own]
    for position, stage in enumerate(plan.stages):
        units = frozenset(stage.nodes.tolist())
        assert not units & seen
        assert all(u in seen or u in units for u, v in data.edges if v in units)
        seen |= units
        assert stage.copies in data.copies
        together = sum(later.copies for later in plan.stages[position:])
        assert together <= data.microbatches or data.held
        assert stage.in_flight == data.in_flight(stage.copies, together)
        chosen = {}
        for unit, row in stage.option.items():
            kind, chosen[unit] = options[row]
            assert kind == data.kind[unit]
            assert chosen[unit].degree == stage.degree
        assert chosen.keys() == units
        taken = occupied(chosen.values(), stage.in_flight, stage.copies)
        assert taken <= data.capacity
        assert stage.memory == pytest.approx(float(taken), rel=1e-12)
        own = load(data, units, stage.degree, stage.copies, chosen)
        assert stage.load == pytest.approx(float(own), rel=1e-12, abs=1e-12)
        largest = max(largest, own)
    assert len(seen) == len(data.kind)
    assert plan.devices <= data.devices
    assert float(largest) == pytest.approx(float(value), rel=1e-9, abs=1e-12)


def settled(data: Data) -> Plan | None:
    """The plan of the search, which enumeration agrees with; None where neither has one."""
    exact, found = optimum(data), best_plan(data.instance())
    assert found.complete
    assert (found.plan is None) == (exact is None)
    if found.plan is not None and exact is not None:
        check(data, found.plan, exact)
        assert found.bound == pytest.approx(float(exact), rel=1e-9, abs=1e-12)
    return found.plan


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(2000))
def test_plans_are_optimal(seed: int) -> None:
    settled(drawn(seed))


def drawn_for_many_devices(seed: int) -> Data:
    """The same on a machine so large that states come in ranges, and that the work of a plan tells the best load."""
    rng = random.Random(f"many devices {seed}")
    data = drawn(seed)
    microbatches = rng.choice((60, 96, 120, 210, 240))
    able = [r for r in range(1, 200) if data.exchange != "batch" or microbatches % r == 0]
    copies = tuple(sorted({1, *rng.sample(able, min(len(able), rng.randint(4, 14)))}))
    options = [
        [replace(option, time=100 * option.time + rng.randint(0, 99), sharded=10 * option.sharded) for option in own]
        for own in data.options
    ]
    limit = rng.randint(5, 300)
    return replace(
        data, options=options, copies=copies, microbatches=microbatches, devices=rng.randint(20, 400), capacity=limit
    )  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(60_000, 60_400))
def test_plans_for_many_devices_are_optimal(seed: int) -> None:
    settled(drawn_for_many_devices(seed))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(30_000, 30_400))
def test_plans_that_start_from_groups_of_units_are_optimal(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As large instances do."""
    for name, number in (("_MANY_IDEALS", 1), ("_COARSER", 2), ("_GROUPS", 1)):
        monkeypatch.setattr(search, name, number)
    settled(drawn(seed))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(40_000, 40_400))
def test_plans_where_nothing_tells_stages_apart_at_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All stages have one mark, so that their units are compared, and stages share few places; no pair is kept."""

    def colliding(of_kind: Integers32) -> LikeStages:
        like = like_stages(of_kind)
        places = 1 + seed % 3
        return like._replace(
            mark=np.zeros_like(like.mark), tells=False, stage=like.stage[:places], seconds=like.seconds[:places]
        )

    monkeypatch.setattr(search, "like_stages", colliding)
    monkeypatch.setattr(plan_terms, "_MOST_KEPT_STAGES", 0)
    settled(drawn(seed) if seed % 2 else limited(seed))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(80_000, 81_200))
def test_plans_on_wide_graphs_are_optimal(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair is kept, those that matter are listed where there is room, loads grow slowly, and on the way there is a
    plan over some of the ideals."""
    monkeypatch.setattr(plan_terms, "_MOST_KEPT_STAGES", 0)
    monkeypatch.setattr(plan_terms, "_MOST_LISTED", (3, 40, 10_000)[seed % 3])
    for name, number in (("_WIDE", 0), ("_MANY_TO_CUT", 1), ("_MANY_LISTED", seed % 2)):
        monkeypatch.setattr(search, name, number)
    for name, number in (("_TAKEN", 4), ("_ALIKE", 1 + seed % 2)):
        monkeypatch.setattr(cheap_cuts, name, number)
    settled((drawn, limited, drawn_for_many_devices)[seed // 3 % 3](seed))


def limited(seed: int) -> Data:
    """A random problem with random requirements."""
    data, rng = drawn(20_000 + seed), random.Random(seed)
    kinds = len(data.options)

    def each(low: int, high: int, none: int) -> np.ndarray:
        return np.array([rng.randint(low, high) if rng.random() < 0.4 else none for _ in range(kinds)])

    low = rng.randint(1, 3)
    stages = rng.choice(((0, None), (0, rng.randint(1, 4)), (low, None), (low, low + rng.randint(0, 2))))
    least = rng.choice((0, 0, rng.randint(1, 6), data.microbatches))
    copies = (least, rng.choice((None, None, least + rng.randint(1, 2))))
    most = each(1, 4, ANY_NUMBER)
    held = rng.choice((0, 0, 1, data.microbatches))
    return replace(data, limits=PlanLimits(each(1, 3, 0), most, each(1, 4, ANY_NUMBER), stages, copies), held=held)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(2000))
def test_plans_with_requirements_are_optimal(seed: int) -> None:
    """Copies and samples in flight by kind of node, numbers of stages, copies altogether."""
    data = limited(seed)
    plan, limits = settled(data), data.limits
    if plan is None:
        return
    assert limits is not None
    low, high = limits.stages
    assert low <= len(plan.stages) <= (high or len(data.kind))
    assert sum(stage.copies for stage in plan.stages) >= limits.copies[0]


@pytest.mark.parametrize("asked", [0, 1, 2, 3, 5, 8])
def test_a_search_that_is_stopped_encloses_the_optimum(asked: int) -> None:
    """A limit may be reached at any moment: what was found is a plan, and what was refuted a bound."""
    for seed in range(40):
        data = drawn(seed)
        exact = optimum(data)
        calls = iter(range(asked))
        found = best_plan(data.instance(), SearchLimits(stop=lambda calls=calls: next(calls, None) is None))  # type: ignore[misc]
        value = float("inf") if exact is None else float(exact)
        assert found.bound <= value * (1.0 + 1e-9)
        assert found.plan is None or found.plan.value >= value * (1.0 - 1e-9)
        if found.complete:
            assert (found.plan is None) == (exact is None)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(200))
def test_memory_to_the_byte(seed: int) -> None:
    """With just the bytes that the best plan occupies it stays; with one less, what enumeration finds."""
    data = drawn(5_000 + seed)
    found = best_plan(data.instance())
    if found.plan is None:
        pytest.skip("no plan at all")
    taken = math.ceil(max(stage.memory for stage in found.plan.stages) - 1e-9)
    for capacity in (taken, taken - 1):
        less = replace(data, capacity=capacity)
        exact, again = optimum(less), best_plan(less.instance())
        assert again.complete
        if exact is None:
            assert again.plan is None
        else:
            assert again.plan is not None
            check(less, again.plan, exact)
