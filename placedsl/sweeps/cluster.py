"""A Dask cluster: each run is a task, solved in a process of its own that the cluster's worker starts.

What a run reads is sent along as texts: the workers need placedsl and nothing else.  The folder of the sweep is written
by the process that asked for it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from placedsl.diagnostics import UsageError
from placedsl.sweeps.child import RunProcess
from placedsl.sweeps.jobs import Job, Texts
from placedsl.sweeps.runs import Run
from placedsl.sweeps.tasks import FAULT, Result, Task
from placedsl.system.installation import package_version

#: Seconds within which a scheduler answers, and has a worker.
PATIENCE = 10.0
#: Seconds between two looks at whether a run is still wanted.
_LOOK = 0.5


class Cluster:
    """The cluster behind an address; ``size`` is the number of its threads.

    UsageError when ``distributed`` is not installed, nothing answers, or the workers have another placedsl.
    """

    def __init__(self, address: str) -> None:
        patience = PATIENCE
        if find_spec("distributed") is None:
            raise UsageError("--dask needs the package 'distributed': pip install 'placedsl[dask]'")
        from distributed import Client

        try:
            with _quiet():
                self.client: Any = Client(address, timeout=patience, set_as_default=False)
        except (OSError, ValueError, TypeError) as problem:
            reason = str(problem).partition("\n")[0] or type(problem).__name__
            raise UsageError(f"no Dask scheduler answers at '{address}' within {patience:g} s: {reason}") from None
        try:
            self.size = self._threads(address, patience)
        except BaseException:
            self.client.close()
            raise

    def _threads(self, address: str, patience: float) -> int:
        try:
            self.client.wait_for_workers(1, timeout=patience)
        except TimeoutError:
            raise UsageError(f"the Dask scheduler at '{address}' has no workers") from None
        try:
            found: dict[str, str] = self.client.run(package_version)
        except Exception as problem:  # noqa: BLE001 - whatever the other side raised
            raise UsageError(f"the workers at '{address}' cannot import placedsl: {problem}") from None
        for worker, version in found.items():
            if version != package_version():
                own = package_version()
                raise UsageError(f"the worker {worker} has placedsl {version}, here it is {own}: both must be the same")
        return sum(self.client.nthreads().values())

    def results(self, jobs: Sequence[Job]) -> Generator[tuple[Job, Result], None, None]:
        """Each job with its result, in the order in which they end.  To stop early, close the iterator."""
        from distributed import as_completed

        waiting: dict[Any, Job] = {}
        held: dict[Texts, Any] = {}
        try:
            for number, job in enumerate(jobs):
                texts = held.get(job.texts)
                if texts is None:
                    # A task, not scattered data: what a lost worker held is then made again.
                    texts = held[job.texts] = self.client.submit(_held, job.texts, pure=False)
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


def _held(texts: Texts) -> Texts:
    """The texts of a spec, once for all the runs that read them."""
    return texts


def solved_apart(run: Run, texts: Texts, name: str) -> Result:
    """Solve a run in a new process, which is killed when the task ``name`` is no longer wanted."""
    child, done = RunProcess(), threading.Event()
    wanted = _wanted(name)

    def watch() -> None:
        while not done.wait(_LOOK):
            if not wanted():
                child.kill()
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        return child.solved(Task(run, texts, 1))
    finally:
        done.set()
        child.close()


def _wanted(name: str) -> Callable[[], bool]:
    """Whether the cluster still waits for a task, asked of the worker that this thread belongs to."""
    from distributed import get_worker

    tasks = get_worker().state.tasks

    def wanted() -> bool:
        task = tasks.get(name)
        return task is not None and task.state == "executing"

    return wanted


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the log lines of attempts to connect: what came of them is told in one sentence."""
    import logging

    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
