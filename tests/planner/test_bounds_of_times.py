"""Bounds of times come from what takes time, whatever else a spec compares."""

from __future__ import annotations

import numpy as np

import placedsl
from placedsl.grounding.build import build
from placedsl.lowering.lower import lower
from placedsl.problem.formulation import choose
from placedsl.problem.problem import Problem
from placedsl.solvers.bound_propagation import finite_bounds
from placedsl.solvers.integer_program import differing, integer_program
from placedsl.solvers.integer_scaling import grid

SPEC = """graph {
    node a { time = {accelerator: 2 ms, host: 9 ms},  memory = 2 GiB, output = 8 MB }
    node b { time = {accelerator: 4 ms, host: 30 ms}, memory = 3 GiB, output = 8 MB }
    node c { time = {accelerator: 4 ms, host: 30 ms}, memory = 3 GiB }
    a -> b
    a -> c
}
device gpu[2]: accelerator { memory = 6 GiB }
device cpu: host
interconnect { bandwidth = 16 GB/s }
minimize latency
subject to
    sequential
"""


def longest(problem: Problem) -> float:
    """All nodes and transfers one after the other, each as slow as it can be."""
    assert problem.device_to_device is not None
    away = (
        problem.device_to_device.latency.max()
        + problem.device_to_device.size * problem.device_to_device.inverse_bandwidth.max()
    )
    return float(problem.time.max(axis=1).sum() + len(problem.machine.devices) * away.sum())


def test_times_are_bounded_by_times_although_memory_is_bounded_too() -> None:
    """A column for the peak memory, in bytes, does not loosen those of times, in seconds."""
    spec = placedsl.loads(SPEC + "    bounded: peak_memory <= 6 GiB\n")
    program = build(spec.problem, choose(spec.problem, spec.elaborated.checked_formulations())).program
    for native in (frozenset[str](), frozenset({"NoOverlap", "Implication"})):
        upper = lower(program, native=native).program.upper
        assert np.isfinite(upper).all()
        assert (upper > 1e6).sum() == 1
        assert upper[upper < 1e6].max() <= max(1.0, 2 * longest(spec.problem))


def test_a_start_that_is_fixed_leaves_intervals_on_the_grid_of_the_others() -> None:
    """Nothing can start before zero, so that a deadline may fix a start: it needs no grid."""
    spec = placedsl.loads(SPEC + "    now: finish(a) <= 2 ms\n")
    program = build(spec.problem, choose(spec.problem, spec.elaborated.checked_formulations())).program
    lowered = lower(program, native=frozenset({"NoOverlap", "Implication", "Maximum"}), integral=True).program
    low, high = finite_bounds(lowered)
    assert ((low == 0.0) & (high == 0.0) & ~lowered.integer).any()
    unknowns = grid(low, high, lowered.integer, differing(lowered, lowered.integer))
    (intervals,) = integer_program(lowered, unknowns).intervals
    assert len(intervals.size)
    assert (intervals.size > 0).all()
    latest = intervals.factor * unknowns.high[intervals.start]
    assert (latest + intervals.size < 2**59).all()
