"""What runs beside for one sample's latency under schedule dataflow."""

from __future__ import annotations

import time

import numpy as np

from placedsl.arrays import Integers
from placedsl.planner.portfolio.portfolio import PlannerChannel
from placedsl.problem.problem import Problem
from placedsl.tolerances import EQUAL_COSTS

#: Seconds between two schedules that are told of, at least, and for each operator: they are simulated anew.
_APART, _APART_EACH = 0.3, 1e-4


def search_dataflow(channel: PlannerChannel, problem: Problem, start: Integers | None, seed: int) -> None:
    """Search for schedules until the best is proven, and say each better one."""
    from placedsl.algorithms.operator_scheduling.schedule_kernel import schedule_of, values_of
    from placedsl.algorithms.operator_scheduling.search.search import run, search_problem

    search = search_problem(problem, start, seed)
    told, last = np.inf, -np.inf

    def tell() -> None:
        nonlocal told, last
        if search.best is not None and search.value < told:
            _, times = schedule_of(search.instance, search.best)
            channel.report(search.best.device, -np.inf, values_of(times))
            told, last = search.value, time.monotonic()

    tell()
    for _ in run(search):
        if time.monotonic() >= last + max(_APART, _APART_EACH * search.instance.nodes):
            tell()
    tell()
    if search.proven:
        channel.report(None, search.value if search.best is not None else np.inf)


def bound_dataflow(channel: PlannerChannel, problem: Problem, left: float | None, turn: int = 0) -> None:
    """Say ever better lower bounds, and schedules that come about on the way.

    ``left``: the seconds of the run;  ``turn``: how many others refine blocks and go before.
    """
    from placedsl.algorithms.operator_scheduling.bounds.streams import bounds_and_sequences
    from placedsl.algorithms.operator_scheduling.instance import scheduling_instance
    from placedsl.algorithms.operator_scheduling.schedule_kernel import schedule_of, values_of
    from placedsl.algorithms.operator_scheduling.search.initial_orders import is_feasible

    instance = scheduling_instance(problem)
    deadline = None if left is None else time.monotonic() + left
    last = -np.inf
    for bound, sequence in bounds_and_sequences(
        instance, upper=lambda: channel.best, deadline=deadline, exchange=channel, turn=turn
    ):
        if sequence is not None and is_feasible(instance, sequence.device):
            latency, times = schedule_of(instance, sequence)
            if latency < channel.best:
                channel.report(sequence.device, bound, values_of(times))
        if bound > last * (1.0 + EQUAL_COSTS):
            channel.report(None, bound)
            last = bound
