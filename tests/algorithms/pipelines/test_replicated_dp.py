"""Replicated pipelines against recursion over the sets themselves."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.small_pipelines import Small, alone, by_recursion, check, small

import placedsl
from placedsl.algorithms.pipelines.replicated import Replication, best_replicated, no_replication, sliced_replicated
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.pipelines.solve import pipeline_of
from placedsl.algorithms.pipelines.state_dp import best_pipeline
from placedsl.algorithms.stages.stage_costs import DeviceClasses, after_computation
from placedsl.graph.contraction import contract


def replication(case: Small) -> Replication:
    return Replication(case.allowed, case.sync, case.schedule == "pipedream")


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seed", range(60))
def test_random_problems(seed: int) -> None:
    """Twenty-five each: the value, whether there is one, the fewest devices, and the groups themselves."""
    for number in range(25):
        case = small(1000 * seed + number, copies=True, levels=0)
        value, devices = by_recursion(case)
        found = best_replicated(case.stages, replication(case))
        assert found.complete, (seed, number)
        assert found.value == pytest.approx(value), (seed, number)
        assert found.bound == found.value
        if math.isfinite(value):
            assert found.device is not None
            check(case, found.value, found.device, found.groups)
            assert found.fewest
            assert found.devices == devices, (seed, number)
            start = sliced_replicated(case.stages, replication(case))
            if start is not None:
                assert start.value >= value * (1 - 1e-9)
                check(case, start.value, start.device, start.groups)


@pytest.mark.parametrize("seed", range(40))
def test_groups_of_one_are_the_ordinary_pipeline(seed: int) -> None:
    case = alone(small(seed, copies=True, levels=0, most=12))
    found, plain = best_replicated(case.stages, replication(case)), best_pipeline(case.stages)
    assert found.value == pytest.approx(plain.value)
    assert found.complete
    if plain.device is not None:
        assert found.fewest
        assert found.devices == len(set(plain.device.tolist()))


@pytest.mark.workloads
@pytest.mark.parametrize("name", ["bert24_training", "resnet50_inference", "inceptionv3_inference"])
def test_published_graphs(name: str, workloads: Path) -> None:
    """Alone, as the ordinary search has it; shared for nothing, close to the work divided by all accelerators."""
    path = workloads / "dnn-partitioning" / "throughput-inputs" / "LayerGraphs" / f"{name}.json"
    spec = placedsl.loads(
        f'graph from "{path}"\ndevice acc[6]: accelerator\nminimize time_per_sample\nsubject to\n'
        "    contiguous\n    colocated by colorClass\n"
    )
    quotient, classes = pipeline_of(spec.problem)
    stages = after_computation(quotient, classes)
    found, plain = best_replicated(stages, no_replication(stages)), best_pipeline(stages)
    assert (found.complete, found.fewest) == (True, True)
    assert found.value == pytest.approx(plain.value)
    shared = best_replicated(stages, Replication((tuple(range(1, 7)),), np.zeros((1, stages.units)), True))
    assert shared.complete
    assert stages.least.sum() / 6 * (1 - 1e-9) <= shared.value < plain.value


def row(units: int, devices: int) -> tuple[np.ndarray, DeviceClasses]:
    return np.arange(units), DeviceClasses((devices,), (math.inf,), (np.arange(devices),))


def test_weights_that_cost_nothing_to_send_are_shared_by_all() -> None:
    """A row of units that exchange large tensors: every device runs everything."""
    steps, classes = row(100, 8)
    quotient = contract(
        memory=np.zeros(100), work=np.ones((1, 100)), groups=[], before=steps[:-1], after=steps[1:],
        tensor_producer=steps[:-1], read_tensor=steps[:-1], read_node=steps[1:], transfer=np.full((1, 99), 1000.0),
    )  # fmt: skip
    stages = after_computation(quotient, classes)
    free = Replication((tuple(range(1, 9)),), np.zeros((1, 100)), True)
    found = best_replicated(stages, free)
    assert (found.value, found.groups, found.complete) == (100 / 8, {0: tuple(range(8))}, True)
    # With weights that take a second each to send, sharing is no gain: L/r + (r - 1)/r Y with L = Y.
    assert best_replicated(stages, replace(free, sync=np.ones((1, 100)))).value == 100.0
    # Only powers of two up to four: all but the first four devices are of no use.
    assert best_replicated(stages, replace(free, allowed=((1, 2, 4),))).value == 25.0


def test_limits() -> None:
    """What has been found by then is returned, as unproven."""
    case = small(8, copies=True, levels=0, most=12)
    for limits in (SearchLimits(stop=lambda: True), SearchLimits(deadline=0.0)):
        assert not best_replicated(case.stages, replication(case), limits).complete
    none = np.zeros(0, dtype=np.int64)
    quotient = contract(
        memory=np.zeros(40), work=np.ones((1, 40)), groups=[], before=none, after=none, tensor_producer=none,
        read_tensor=none, read_node=none, transfer=np.zeros((1, 0)),
    )  # fmt: skip
    stages = after_computation(quotient, row(40, 3)[1])
    sharing = Replication(((1, 2),), np.full((1, 40), 0.1), True)
    found = best_replicated(stages, sharing, SearchLimits(most=1000))
    assert not found.complete
    assert found.device is not None
    assert 40 / 3 <= found.bound <= found.value


@pytest.mark.parametrize("seed", range(30))
def test_stages_are_extended_in_any_number_of_steps(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Between two of them the clock is looked at."""
    case = small(70_000 + seed, copies=True, levels=0)
    at_once = best_replicated(case.stages, replication(case))
    monkeypatch.setattr("placedsl.algorithms.pipelines.replicated._PATIENCE", seed % 3)
    assert best_replicated(case.stages, replication(case)).value == at_once.value


@pytest.mark.parametrize("seed", range(30))
def test_ideals_that_there_is_no_time_for(seed: int) -> None:
    """Lower loads leave fewer of them: the bound rises as far as it can, and it holds."""
    case = small(80_000 + seed, copies=True, levels=0, most=12)
    value, _ = by_recursion(case)
    limits = SearchLimits(time.monotonic() + 60.0, seconds_an_ideal=60.0 / (2 + seed))
    found = best_replicated(case.stages, replication(case), limits)
    assert found.bound <= value * (1.0 + 1e-9)
    assert found.value >= value * (1.0 - 1e-9)
    if found.complete:
        assert found.value == pytest.approx(value)
    else:
        assert not found.too_many


def test_time_for_ideals() -> None:
    limits = SearchLimits(time.monotonic() + 100.0, seconds_an_ideal=1e-3)
    assert limits.time_for(50_000)
    assert not limits.time_for(200_000)
    limits.made(100_000, time.monotonic() - 1.0)  # 10 us each
    assert limits.time_for(5_000_000)
    assert not limits.time_for(20_000_000)
    limits.made(100, time.monotonic() - 50.0)  # too few to tell
    assert limits.time_for(5_000_000)
    assert SearchLimits().time_for(10**12)
