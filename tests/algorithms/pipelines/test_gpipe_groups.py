"""Dynamic programming under GPipe's schedule on clusters, with shared stages, and with the fewest devices."""

from __future__ import annotations

import random
import re

import pytest
from algorithms.pipelines.test_gpipe_pipelines import training_spec
from algorithms.pipelines.test_nested_clusters import confirm, spec_of

import placedsl

pytestmark = pytest.mark.rotates(2)

COMMUNICATION = ("sequential", "overlapped", "full_duplex")


def schedule_of(seed: int) -> str:
    return f"schedule gpipe {{ communication = {random.Random(seed).choice(COMMUNICATION)} }}"


@pytest.mark.sampled(20)
@pytest.mark.parametrize("first", range(0, 200, 10))
def test_clusters_within_clusters(first: int) -> None:
    """One to three levels, with and without stages that devices share."""
    for seed in range(first, first + 10):
        confirm(placedsl.loads(re.sub(r"(?m)^schedule .*$", schedule_of(seed), spec_of(seed))).problem)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("first", range(60_000, 60_300, 20))
def test_shared_stages(first: int) -> None:
    """Weights are exchanged in the backward pass alone; times, sizes and weights of unlike magnitudes."""
    for seed in range(first, first + 20):
        rng = random.Random(seed)
        weights = rng.choice(["memory", "memory", "0"])
        shared = f"{schedule_of(seed)}\nparallelism {{ data = 1..{rng.choice([2, 3])}, weights = {weights} }}"
        confirm(placedsl.loads(training_spec(seed, shared)).problem)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("first", range(70_000, 70_300, 20))
def test_fewest_devices(first: int) -> None:
    """Of pipelines with the least sum of passes; many have equal sums, as times are small whole numbers."""
    for seed in range(first, first + 20):
        text = training_spec(seed, schedule_of(seed))
        confirm(
            placedsl.loads(
                text.replace("minimize time_per_sample", "minimize time_per_sample then devices_used")
            ).problem
        )


def test_a_node_of_no_time_and_then_the_fewest_devices() -> None:
    """Searched for a smaller load than nothing without end."""
    text = """graph { node a { time = 0 s } }
device gpu[2]: accelerator { memory = 4 GiB }
interconnect { bandwidth = 1 GB/s }
schedule gpipe
minimize time_per_sample then devices_used
subject to
    contiguous
"""
    found = placedsl.loads(text).solve()
    assert (found.termination, found.evaluation.objectives) == ("optimal", (0.0, 1.0))
