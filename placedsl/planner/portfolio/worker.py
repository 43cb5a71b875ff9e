"""The process of one member of the portfolio, run as ``python -m placedsl.planner.portfolio.worker``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from placedsl.arrays import Integers
from placedsl.planner.portfolio.portfolio import Done, Known, Report
from placedsl.problem.values import Values
from placedsl.processes.worker import ParentChannel, serve


class _Channel:
    """See :class:`placedsl.planner.portfolio.portfolio.PlannerChannel`."""

    def __init__(self, parent: ParentChannel) -> None:
        self.parent = parent
        self.best, self.bound = np.inf, -np.inf

    def report(
        self, placement: Integers | None, bound: float, values: Values | None = None, by: str = "",
        certificate: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.parent.send(Report(placement, bound, values, by, certificate))

    def take(self, known: Known) -> None:
        self.best, self.bound = known.best, known.bound


def _work(parent: ParentChannel) -> None:
    work, arguments = parent.receive()
    channel = _Channel(parent)
    parent.listen(channel.take)
    work(channel, *arguments)
    parent.send(Done())


if __name__ == "__main__":
    sys.exit(serve(_work))
