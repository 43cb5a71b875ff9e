"""The pool of processes of this machine: each solves one run at a time, and is replaced when it dies over one."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from placedsl.sweeps.child import RunProcess
from placedsl.sweeps.jobs import Job
from placedsl.sweeps.tasks import FAULT, Result, Task


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Processes:
    """Up to ``size`` runs at a time.  A thread waits for each process; one that dies over a run takes no other along.

    An executor of processes will not do: it is broken as a whole once one of its processes is killed.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.workers = max(1, processors() // size)
        self._children: set[RunProcess] = set()
        self._idle: list[RunProcess] = []
        self._lock = threading.Lock()
        self._stopped = False

    def results(self, jobs: Sequence[Job]) -> Generator[tuple[Job, Result], None, None]:
        """Each job with its result, in the order in which they end.  To stop early, close the iterator."""
        threads = ThreadPoolExecutor(self.size, "placedsl-sweep")
        try:
            waiting = {threads.submit(self._solved, job): job for job in jobs}
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            self._stop()
            threads.shutdown(cancel_futures=True)
            for child in self._children:
                child.close()

    def _solved(self, job: Job) -> Result:
        child = self._taken()
        if child is None:
            return Result(FAULT, None, "stopped")
        result = child.solved(Task(job.run, job.texts, self.workers))
        # A process that told of a fault is not trusted with another run: it may have too little memory left.
        if result.exit_code == FAULT or not child.alive:
            with self._lock:
                self._children.discard(child)
            child.close()
        else:
            with self._lock:
                self._idle.append(child)
        return result

    def _taken(self) -> RunProcess | None:
        """A process that has nothing to do, an old one or a new one; None when all was stopped."""
        with self._lock:
            if self._stopped:
                return None
            if self._idle:
                return self._idle.pop()
            child = RunProcess()
            self._children.add(child)
            return child

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            for child in self._children:
                child.kill()
