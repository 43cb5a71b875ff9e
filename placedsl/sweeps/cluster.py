"""A Dask cluster: each run is a task, solved in a process of its own that the cluster's worker starts.

What a run reads is sent along as texts: the workers need placedsl and nothing else.  The folder of the sweep is written
by the process that asked for it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Sequence
from typing import Any

from placedsl.processes.dask_cluster import connected, held, wanted
from placedsl.sweeps.child import RunProcess
from placedsl.sweeps.jobs import Job, Texts
from placedsl.sweeps.runs import Run
from placedsl.sweeps.tasks import FAULT, Result, Task

#: Seconds between two looks at whether a run is still wanted.
_LOOK = 0.5


class Cluster:
    """The cluster behind an address; ``size`` is the number of its threads.

    UsageError as of :func:`placedsl.processes.dask_cluster.connected`.
    """

    def __init__(self, address: str) -> None:
        self.client: Any = connected(address)
        self.size = sum(self.client.nthreads().values())

    def results(self, jobs: Sequence[Job]) -> Generator[tuple[Job, Result], None, None]:
        """Each job with its result, in the order in which they end.  To stop early, close the iterator."""
        from distributed import as_completed

        waiting: dict[Any, Job] = {}
        sent: dict[Texts, Any] = {}
        try:
            for number, job in enumerate(jobs):
                texts = sent.get(job.texts)
                if texts is None:
                    texts = sent[job.texts] = self.client.submit(held, job.texts, pure=False)
                name = f"placedsl-{job.key[:16]}-{number}"
                future = self.client.submit(solved_apart, job.run, texts, name, key=name, pure=False, retries=0)
                waiting[future] = job
            for future in as_completed(list(waiting), loop=self.client.loop):
                yield waiting[future], _result(future)
        finally:
            with contextlib.suppress(Exception):
                self.client.cancel(list(waiting))
            self.client.close()


def _result(future: Any) -> Result:
    """A task's result; what went wrong on the cluster is a failure of that run."""
    try:
        result = future.result()
    except Exception as problem:  # noqa: BLE001 - whatever a cluster can do to a task: it is told, and others go on
        return Result(FAULT, None, f"the cluster lost this run: {type(problem).__name__}: {problem}")
    assert isinstance(result, Result)
    return result


def solved_apart(run: Run, texts: Texts, name: str) -> Result:
    """Solve a run in a new process, which is killed when the task ``name`` is no longer wanted."""
    child, done = RunProcess(), threading.Event()
    still = wanted(name)

    def watch() -> None:
        while not done.wait(_LOOK):
            if not still():
                child.kill()
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        return child.solved(Task(run, texts, 1))
    finally:
        done.set()
        child.close()
