"""The child process of one run: receives a task, runs the solver, sends what it finds.

Started by :mod:`placedsl.solvers.isolated` as ``python -m placedsl.solvers.worker``.
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace

import numpy as np

from placedsl.arrays import Floats
from placedsl.processes.priority import step_back
from placedsl.processes.worker import ParentChannel, leave, serve
from placedsl.solvers.interface import Solver
from placedsl.solvers.registry import get
from placedsl.solvers.task import Ended, Found, Stop, Task


def _work(channel: ParentChannel) -> None:
    task: Task = channel.receive()
    solver = get(task.name)
    reporter = _Reporter(channel, solver)
    channel.listen(reporter.stop_by)
    budget = task.budget
    if budget.patient:
        step_back()
    if budget.time_limit is not None:
        budget = replace(budget, time_limit=max(0.01, budget.time_limit - (time.monotonic() - task.sent)))
    channel.send(Ended(solver.run(task.program, budget, reporter)))


class _Reporter:
    """The child's progress function: sends what is new, and returns whether the parent wants to stop."""

    def __init__(self, channel: ParentChannel, solver: Solver) -> None:
        self.channel, self.solver = channel, solver
        self.stop = False
        self.bound = -np.inf
        self.lock = threading.Lock()

    def __call__(self, point: Floats | None, objective: float, bound: float) -> bool:
        with self.lock:
            better = bound > self.bound
            self.bound = max(self.bound, bound)
            if point is not None or better:
                self.channel.send(Found(point, objective if point is not None else np.inf, self.bound))
        return self.stop

    def stop_by(self, _message: Stop) -> None:
        """Stop the solver, or this process where the solver never asks."""
        self.stop = True
        if not self.solver.features.streams_incumbents:
            leave()


if __name__ == "__main__":
    sys.exit(serve(_work))
