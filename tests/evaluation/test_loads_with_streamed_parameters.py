"""What devices stream, on finished placements: by hand, and against an account step by step; in timelines as well."""

from __future__ import annotations

import random

import numpy as np
import pytest
from support import brute_force
from support.streaming_specs import order, peak, streamed, streaming_spec

import placedsl
from placedsl.evaluation.activation_peaks import ActivationPeaks
from placedsl.evaluation.evaluate import evaluate
from placedsl.evaluation.problem_data import ProblemData
from placedsl.report.json.answer_document import device_list
from placedsl.simulation.pipeline import simulate
from placedsl.simulation.streamed_parameters import streaming_times

CHAIN = """\
graph {
    node a { time = 4 ms, memory = 2 GB, output = 8 MB }
    node b { time = 6 ms, memory = 3 GB, output = 4 MB }
    node c { time = 5 ms, memory = 3 GB, output = 1 MB }
    node d { time = 1 ms, output = 1 MB }
    a -> b -> c -> d
    a -> d
}
device gpu[2]: accelerator { memory = 3 GB, streams = 1 TB/s, reserve = RESERVE }
device cpu: host { memory = 1 GB, streams = 100 GB/s }
interconnect { bandwidth = 8 GB/s }
minimize time_per_sample
"""


def spec(reserve: str) -> placedsl.Spec:
    return placedsl.loads(CHAIN.replace("RESERVE", reserve))


def test_what_does_not_fit_beside_the_reserve_is_streamed() -> None:
    found = evaluate(spec("500 MB").problem, [0, 0, 2, 2])
    # gpu[1]: 2.5 GB too much; sends 8 MB and 4 MB.  cpu: 2 GB too much, at a tenth of the rate.  gpu[2] holds nothing.
    assert found.streamed == pytest.approx((2.5e-3, 0.0, 20e-3))
    assert found.loads == pytest.approx((10e-3 + 1.5e-3 + 2.5e-3, 0.0, 6e-3 + 20e-3))
    assert found.objectives[0] == pytest.approx(26e-3)
    assert found.feasible


def test_a_reserve_larger_than_the_memory_is_streamed_by_devices_that_hold_something() -> None:
    found = evaluate(spec("4 GB").problem, [2, 2, 2, 0])
    assert found.streamed == pytest.approx((1e-3, 0.0, 70e-3))  # d has no bytes, and 1 GB of the reserve does not fit


def test_the_peak_is_that_of_the_order_of_the_graph() -> None:
    problem = spec("peak").problem
    peaks = ActivationPeaks(ProblemData(problem))
    assert peaks.of([]) == 0.0
    assert peaks.of([0]) == 8e6  # goes out as it is made
    assert peaks.of([1]) == 12e6
    assert peaks.of([0, 1]) == 12e6
    assert peaks.of([0, 1, 2]) == 12e6  # what only d reads of a is gone once b has read it
    assert peaks.of([0, 3]) == 9e6  # while d runs, that of a lies there, and that of c
    assert peaks.of([0, 1, 2, 3]) == 13e6  # while c runs
    assert evaluate(problem, [0, 0, 0, 0]).streamed[0] == pytest.approx((8e9 + 13e6 - 3e9) / 1e12)


@pytest.mark.parametrize("seed", range(150))
def test_loads_are_those_of_an_account_step_by_step(seed: int) -> None:
    problem = placedsl.loads(streaming_spec(seed, peak=seed % 2 == 1)).problem
    every = brute_force.placements(problem)
    rows = np.random.default_rng(seed).permutation(len(every))[:40]
    expected = streamed(problem, every[rows])
    loads = brute_force.loads(problem, every[rows]) + expected
    allowed = brute_force.allowed(problem, every[rows])
    for k, placement in enumerate(every[rows].tolist()):
        found = evaluate(problem, placement)
        assert np.allclose(found.loads, loads[k], rtol=1e-9, atol=1e-15)
        assert np.allclose(found.streamed or 0.0, expected[k], rtol=1e-9, atol=1e-15)
        assert found.feasible == bool(allowed[k])


@pytest.mark.parametrize("seed", range(40))
def test_a_larger_set_never_has_a_lower_peak(seed: int) -> None:
    problem = placedsl.loads(streaming_spec(seed, peak=True)).problem
    peaks, rng = ActivationPeaks(ProblemData(problem)), random.Random(seed)
    assert peaks.step == np.argsort(order(problem)).tolist()
    nodes = list(range(problem.graph.nodes))
    for _ in range(20):
        large = rng.sample(nodes, rng.randint(0, len(nodes)))
        small = rng.sample(large, rng.randint(0, len(large)))
        assert peaks.of(large) == pytest.approx(peak(problem, large))
        assert peaks.of(small) <= peaks.of(large)


@pytest.mark.parametrize("seed", range(60))
def test_a_timeline_runs_at_the_largest_load(seed: int) -> None:
    problem = placedsl.loads(streaming_spec(seed, peak=seed % 3 == 0, clusters=seed % 5 == 0)).problem
    devices, rng = len(problem.machine.devices), random.Random(seed)
    placement = [
        rng.choice([d for d in range(devices) if np.isfinite(problem.time[v, d])]) for v in range(problem.graph.nodes)
    ]
    found = evaluate(problem, placement)
    assert np.allclose(streaming_times(problem, placement), found.streamed or 0.0, rtol=1e-12, atol=0)
    timeline = simulate(problem, placement, samples=200)
    assert np.allclose(timeline.loads, found.loads, rtol=1e-9, atol=1e-15)
    assert timeline.total >= 200 * found.objectives[0] * (1 - 1e-9)
    if found.objectives[0] > 0.0 and not problem.graph.backward.any():
        slack = 4 * (2 * len(timeline.stages) + 1) / 200
        assert abs(timeline.time_per_sample - found.objectives[0]) <= slack * found.objectives[0]


def test_answers_say_what_is_streamed() -> None:
    problem = spec("500 MB").problem
    found = evaluate(problem, [0, 0, 1, 2])
    assert [device["streamed"] for device in device_list(problem, found)] == list(found.streamed)
    text = CHAIN.replace(", streams = 1 TB/s, reserve = RESERVE", "").replace(", streams = 100 GB/s", "")
    plain = placedsl.loads(text).problem
    assert all("streamed" not in device for device in device_list(plain, evaluate(plain, [0, 0, 1, 2])))


def test_formulas_read_rates_reserves_and_what_is_streamed() -> None:
    text = CHAIN.replace("RESERVE", "500 MB") + (
        "subject to\n"
        "    fast: forall d in devices where d.streams < 500 GB/s: not used(d)\n"
        "    aside: forall d in gpu: streamed(d) <= 3 ms and d.reserve <= 500 MB\n"
    )
    problem = placedsl.loads(text).problem
    assert evaluate(problem, [0, 0, 1, 1]).feasible
    assert [v.rule for v in evaluate(problem, [0, 0, 0, 1]).violations] == ["aside"]
    assert [v.rule for v in evaluate(problem, [0, 0, 1, 2]).violations] == ["fast"]
