"""Problems that differ in the number of devices share one search, and have the answers that each has by itself."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from support.parallel_plans import drawn

from placedsl.algorithms.pipelines.parallel_plans import plan_terms, search
from placedsl.algorithms.pipelines.parallel_plans.instance import PlanInstance
from placedsl.algorithms.pipelines.parallel_plans.kept_searches import MOST_KEPT, kept_searches, searches_kept
from placedsl.algorithms.pipelines.parallel_plans.load_thresholds import PlanResult
from placedsl.algorithms.pipelines.parallel_plans.search import PlanTable, best_plan


def drawn_instance(seed: int) -> tuple[PlanInstance, list[int]]:
    """A problem, and the numbers of devices that it is solved for; numbers of copies come with the devices."""
    rng = random.Random(f"kept {seed}")
    data = drawn(70_000 + seed)
    most = rng.choice((data.devices, data.devices + 3, rng.randint(10, 60)))
    copies = tuple(range(1, most + 1)) if data.exchange != "batch" else data.copies
    numbers = rng.sample(range(1, most + 1), min(most, 8))
    if rng.random() < 0.8:
        numbers.sort(reverse=True)
    return replace(data, devices=most, copies=copies).instance(), numbers


def of_devices(instance: PlanInstance, devices: int) -> PlanInstance:
    return replace(instance, devices=devices, copies=tuple(r for r in instance.copies if r <= devices))


def same(one: PlanResult, other: PlanResult) -> bool:
    """The same value and bound, but for the last digits: the plans need not be the same."""
    assert one.complete
    assert other.complete
    if one.plan is None or other.plan is None:
        return one.plan is other.plan
    return one.plan.value == pytest.approx(other.plan.value, rel=1e-10) and one.bound == pytest.approx(
        other.bound, rel=1e-10
    )


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seed", range(2000))
def test_each_number_of_devices_has_its_own_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr(plan_terms, "_MOST_KEPT_STAGES", 0)
    instance, numbers = drawn_instance(seed)
    alone = [best_plan(of_devices(instance, devices)) for devices in numbers]
    with searches_kept():
        together = [best_plan(of_devices(instance, devices)) for devices in numbers]
    for devices, one, other in zip(numbers, alone, together, strict=True):
        assert same(one, other)
        assert other.plan is None or other.plan.devices <= devices


def test_there_is_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the largest number of devices down, and questions become fewer."""
    made, asked = [], []
    whole, plan_within = PlanTable.__init__, PlanTable._plan_within

    def counted(self: PlanTable, *arguments: object) -> None:
        made.append(self)
        whole(self, *arguments)  # type: ignore[arg-type]

    def noted(self: PlanTable, load: float, limits: search.SearchLimits) -> object:
        asked.append(load)
        return plan_within(self, load, limits)

    instance, _ = drawn_instance(3)
    numbers = range(instance.devices, 0, -1)
    monkeypatch.setattr(PlanTable, "__init__", counted)
    monkeypatch.setattr(PlanTable, "_plan_within", noted)
    with searches_kept():
        for devices in numbers:
            best_plan(of_devices(instance, devices))
    together = len(asked)
    assert len(made) == 1
    for devices in numbers:
        best_plan(of_devices(instance, devices))
    assert together < len(asked) - together
    assert len(made) == 1 + len(numbers)
    assert kept_searches() is None


def test_a_search_is_kept_only_for_what_it_is_the_search_of() -> None:
    """Another capacity is another search; more devices than there were are one as well; only the last few are kept."""
    instance, _ = drawn_instance(3)
    with searches_kept():
        kept = kept_searches()
        assert kept is not None
        best_plan(instance)
        assert kept.of(instance) is not None
        assert kept.of(replace(instance, capacity=instance.capacity + 1)) is None
        assert kept.of(replace(instance, devices=instance.devices + 1)) is None
        assert kept.of(replace(instance, copies=instance.copies[:-1])) is None
        for more in range(1, MOST_KEPT + 1):
            best_plan(replace(instance, capacity=instance.capacity + more))
        assert kept.of(instance) is None
        assert kept.of(replace(instance, capacity=instance.capacity + MOST_KEPT)) is not None
