"""Prices that prove a bound, searched for in a process of its own: solvers that it loads stay there."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from placedsl.planner.portfolio.portfolio import Member, PlannerChannel, Portfolio
from placedsl.problem.problem import Problem

#: Seconds between two looks at what the process has said, and for it to start.
_PAUSE, _START = 0.01, 3.0


def prices(problem: Problem, largest: float, seconds: float) -> Mapping[str, Any] | None:
    """How the proof begins that no placement is within a load; None where none is found in about so many seconds."""
    deadline = time.monotonic() + seconds + _START
    with Portfolio([Member("prices", search, (problem, largest, seconds))]) as beside:
        active = True
        while active and time.monotonic() < deadline:
            active = beside.active
            for message in beside.messages():
                if message.certificate is not None:
                    return message.certificate
            time.sleep(_PAUSE)
    return None


def search(channel: PlannerChannel, problem: Problem, largest: float, seconds: float) -> None:
    """Say prices, once there are some."""
    from placedsl.algorithms.partitions.bounds.partition import prices_at
    from placedsl.algorithms.partitions.bounds.relaxation import relaxation

    deadline = time.monotonic() + seconds
    found = prices_at(relaxation(problem), largest, lambda: time.monotonic() > deadline)
    if found is not None:
        channel.report(None, largest, certificate=found)
