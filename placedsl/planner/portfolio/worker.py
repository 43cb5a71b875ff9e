"""The process of one member of the portfolio, run as ``python -m placedsl.planner.portfolio.worker``."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from placedsl.algorithms.exchange import Key
from placedsl.arrays import Integers
from placedsl.planner.portfolio.findings import Findings, Told
from placedsl.planner.portfolio.portfolio import Done, Known, Report
from placedsl.problem.values import Values
from placedsl.processes.worker import ParentChannel, serve


class _Channel:
    """See :class:`placedsl.planner.portfolio.portfolio.PlannerChannel`."""

    def __init__(self, parent: ParentChannel) -> None:
        self.parent = parent
        self.best, self.bound = np.inf, -np.inf
        self.placement: Integers | None = None
        self.findings, self.news, self.lock = Findings(), dict[Key, float](), threading.Lock()

    def report(
        self, placement: Integers | None, bound: float, values: Values | None = None, by: str = "",
        certificate: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.parent.send(Report(placement, bound, values, by, certificate))

    def tell(self, found: Mapping[Key, float]) -> None:
        with self.lock:
            new = self.findings.raised(found)
        if new:
            self.parent.send(Told(new))

    def heard(self) -> Mapping[Key, float]:
        with self.lock:
            news, self.news = self.news, {}
        return news

    def take(self, message: Known | Told) -> None:
        if isinstance(message, Known):
            self.best, self.bound = message.best, message.bound
            if message.placement is not None:
                self.placement = message.placement
            return
        with self.lock:
            self.news.update(self.findings.raised(message.numbers))


def _work(parent: ParentChannel) -> None:
    work, arguments = parent.receive()
    channel = _Channel(parent)
    parent.listen(channel.take)
    work(channel, *arguments)
    parent.send(Done())


if __name__ == "__main__":
    sys.exit(serve(_work))
