"""Pipelines over clusters of devices against recursion over the sets themselves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from support.small_pipelines import SCHEDULES, Small, alone, by_recursion, check, small

from placedsl.algorithms.cluster_surcharges import merged
from placedsl.algorithms.pipelines.clusters import Clusters, in_clusters
from placedsl.algorithms.pipelines.hierarchical import best_hierarchical
from placedsl.algorithms.pipelines.replicated import Replication, best_replicated, no_replication
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.pipelines.state_dp import best_pipeline
from placedsl.algorithms.stages.stage_costs import DeviceClasses, StageCostModel, after_computation
from placedsl.graph.contraction import contract

pytestmark = pytest.mark.rotates(2)


def prepared(case: Small) -> tuple[StageCostModel, Clusters, Replication]:
    schedule = SCHEDULES[case.schedule]
    stages, clusters = in_clusters(schedule, case.quotient, case.classes, case.cluster, case.far)
    return stages, clusters, Replication(case.allowed, case.sync, case.schedule == "pipedream")


def compare(case: Small, name: object) -> None:
    """The value, whether there is one, the fewest devices, and the pipeline itself."""
    value, devices = by_recursion(case)
    found = best_hierarchical(*prepared(case))
    assert found.complete, name
    assert found.value == pytest.approx(value), name
    if math.isfinite(value):
        assert found.device is not None
        check(case, found.value, found.device, found.groups)
        assert found.fewest
        assert found.devices == devices, name


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", range(60))
def test_clusters(seed: int) -> None:
    for number in range(20):
        case = small(500_000 + 1000 * seed + number, copies=False, levels=1)
        compare(case, (seed, number))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", range(60))
def test_clusters_and_replication(seed: int) -> None:
    for number in range(20):
        case = small(800_000 + 1000 * seed + number, copies=True, levels=1, most=6)
        compare(case, (seed, number))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("seed", range(30))
def test_clusters_within_clusters(seed: int, levels: int) -> None:
    for number in range(10):
        case = small(1_100_000 + 1000 * seed + 10 * number + levels, copies=number % 2 == 1, levels=levels, most=6)
        compare(case, (seed, levels, number))


@pytest.mark.parametrize("seed", range(40))
def test_the_clock_is_looked_at_as_often_as_one_likes(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Stages inside clusters are listed, and gone on from, in as many steps."""
    monkeypatch.setattr("placedsl.algorithms.pipelines.hierarchical._PATIENCE", seed % 3)
    compare(small(1_500_000 + seed, copies=seed % 2 == 0, levels=1, most=6), seed)


@pytest.mark.parametrize("seed", range(40))
def test_one_cluster_is_no_cluster(seed: int) -> None:
    """Whatever leaving it would cost."""
    case = small(seed, copies=True, levels=1, most=11)
    case = replace(case, cluster=np.zeros_like(case.cluster))
    stages, clusters, replication = prepared(case)
    found = best_hierarchical(stages, clusters, replication)
    assert found.value == pytest.approx(best_replicated(case.stages, replication).value)
    found = best_hierarchical(stages, clusters, no_replication(stages))
    assert found.value == pytest.approx(best_pipeline(case.stages).value)


@pytest.mark.parametrize("seed", range(40))
def test_clusters_of_one_device_pay_for_every_edge(seed: int) -> None:
    """As a machine with the sum of both costs."""
    case = alone(small(seed, copies=True, levels=1, most=11))
    case = replace(case, cluster=np.arange(case.cluster.shape[1])[None])
    dear = replace(case.quotient, transfer=case.quotient.transfer + case.far[0])
    found = best_hierarchical(*prepared(case))
    # The surcharge is on reading outside and on making for outside, as the transfer itself is with one device each.
    assert found.value == pytest.approx(best_pipeline(SCHEDULES[case.schedule](dear, case.classes)).value)


def chain(units: int, transfer: float) -> tuple[StageCostModel, Clusters]:
    """Equal units in a row on two clusters of two devices; a boundary costs 0 inside and ``transfer`` between them."""
    steps = np.arange(units)
    quotient = contract(
        memory=np.zeros(units), work=np.ones((1, units)), groups=[], before=steps[:-1], after=steps[1:],
        tensor_producer=steps[:-1], read_tensor=steps[:-1], read_node=steps[1:], transfer=np.zeros((1, units - 1)),
    )  # fmt: skip
    classes = DeviceClasses((4,), (math.inf,), (np.arange(4),))
    far = np.full((1, 1, units - 1), transfer)
    return in_clusters(after_computation, quotient, classes, np.array([[0, 0, 1, 1]]), far)


def test_a_slow_link_between_clusters() -> None:
    """Where it is slow enough, one cluster does everything; before that, the devices at the link do less."""
    stages, clusters = chain(40, 2.0)
    found = best_hierarchical(stages, clusters, no_replication(stages))
    assert (found.value, found.devices, found.complete) == (11.0, 4, True)
    stages, clusters = chain(40, 20.0)
    found = best_hierarchical(stages, clusters, no_replication(stages))
    assert (found.value, found.devices, found.complete) == (20.0, 2, True)
    # Two devices a stage: the cluster as a whole pays for the link.
    stages, clusters = chain(40, 2.0)
    pairs = Replication(((1, 2),), np.zeros((1, 40)), True)
    assert best_hierarchical(stages, clusters, pairs).value == 11.0


def test_surcharges_add_up_where_tensors_do() -> None:
    """Two tensors with one maker and one reader are one, and what never leaves its unit costs nothing."""
    quotient = contract(
        memory=np.zeros(4), work=np.ones((1, 4)), groups=[np.array([0, 0, 1, 2])], before=np.array([0, 1, 2]),
        after=np.array([2, 2, 3]), tensor_producer=np.array([0, 1, 2, 0]), read_tensor=np.array([0, 1, 2, 3]),
        read_node=np.array([2, 2, 3, 1]), transfer=np.array([[1.0, 2.0, 4.0, 8.0]]),
    )  # fmt: skip
    assert sorted(quotient.transfer[0]) == [3.0, 4.0]
    assert np.array_equal(merged(quotient, np.array([[10.0, 20.0, 40.0, 80.0]])), 10.0 * quotient.transfer)


def test_limits() -> None:
    stages, clusters = chain(40, 2.0)
    for limits in (SearchLimits(stop=lambda: True), SearchLimits(deadline=0.0)):
        assert not best_hierarchical(stages, clusters, no_replication(stages), limits).complete
    few = best_hierarchical(stages, clusters, no_replication(stages), SearchLimits(most=3))
    assert not few.complete
    assert few.too_many
    assert few.value == 11.0
