"""What runs beside for one sample's latency under schedule dataflow."""

from __future__ import annotations

import time

import numpy as np

from placedsl.graph.graph import Integers
from placedsl.portfolio.portfolio import Link
from placedsl.problem import Problem

#: Seconds between two schedules that are told of, at least, and for each operator: they are simulated anew.
_APART, _APART_EACH = 0.3, 1e-4


def search_dataflow(link: Link, problem: Problem, start: Integers | None, seed: int) -> None:
    """Search for schedules until the best is proven, and say each better one."""
    from placedsl.algorithms.dataflow.kernel import schedule, values_of
    from placedsl.algorithms.dataflow.search import begin, run

    search = begin(problem, start, seed)
    told, last = np.inf, -np.inf

    def tell() -> None:
        nonlocal told, last
        if search.best is not None and search.value < told:
            _, times = schedule(search.flow, search.best)
            link.say(search.best.device, -np.inf, values_of(times))
            told, last = search.value, time.monotonic()

    tell()
    for _ in run(search):
        if time.monotonic() >= last + max(_APART, _APART_EACH * search.flow.nodes):
            tell()
    tell()
    if search.proven:
        link.say(None, search.value if search.best is not None else np.inf)


def bound_dataflow(link: Link, problem: Problem, left: float | None) -> None:
    """Say ever better lower bounds, and schedules that come about on the way; ``left``: the seconds of the run."""
    from placedsl.algorithms.bounds.dataflow import bounds_and_orders
    from placedsl.algorithms.dataflow.arrays import flow_of
    from placedsl.algorithms.dataflow.kernel import schedule, values_of
    from placedsl.algorithms.dataflow.starts import heeds

    flow = flow_of(problem)
    deadline = None if left is None else time.monotonic() + left
    last = -np.inf
    for bound, order in bounds_and_orders(flow, upper=lambda: link.best, deadline=deadline):
        if order is not None and heeds(flow, order.device):
            latency, times = schedule(flow, order)
            if latency < link.best:
                link.say(order.device, bound, values_of(times))
        if bound > last * (1.0 + 1e-9):
            link.say(None, bound)
            last = bound
