"""A process that solves runs, seen from the sweep."""

from __future__ import annotations

import queue

from placedsl.processes.channel import Failure
from placedsl.processes.child import Child
from placedsl.sweeps.tasks import FAULT, Result, Task

_LAST_LINES = 5


class RunProcess:
    """A process of :mod:`placedsl.sweeps.worker`, which solves one run at a time."""

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._child = Child("placedsl.sweeps.worker", self._inbox.put, keep_stderr=True)

    def solved(self, task: Task) -> Result:
        """Have a run solved; a process that dies over it is a result too."""
        self._child.send(task)
        match self._inbox.get():
            case Result() as result:
                return result
            case Failure(message=message):
                return Result(FAULT, None, f"the process of this run failed: {message}")
            case _:
                return Result(FAULT, None, self._death())

    @property
    def alive(self) -> bool:
        """Whether it can be given another run."""
        return self._child.alive

    def kill(self) -> None:
        """End it at once, with the programs that it has started; a thread that waits for it gets a result."""
        self._child.kill()

    def close(self) -> None:
        """End it, wait for its end, and leave nothing open."""
        self._child.close()

    def _death(self) -> str:
        report = self._child.exit_report()
        advice = "; fewer runs at a time (--jobs) need less" if report.killed else ""
        lines = report.last_lines[-_LAST_LINES:]
        tail = f"; its last words: {' / '.join(lines)}" if lines else ""
        return f"the process of this run {report.phrase}{advice}{tail}"
