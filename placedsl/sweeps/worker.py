"""A process that solves one run after another for a sweep: ``python -m placedsl.sweeps.worker``.

It reads tasks, writes results, and leaves when the sweep has gone, whatever it is doing.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import IO

from placedsl.diagnostics import PlacedslError
from placedsl.solvers.messages import receive, send
from placedsl.solvers.worker import leave
from placedsl.sweeps.tasks import FAULT, Result, Task


def solved(task: Task) -> Result:
    """Solve a run here.  Never raises for what is wrong with a run."""
    from placedsl.api import spec_of
    from placedsl.report.document import document

    run, texts = task.run, task.texts
    try:
        spec = spec_of(texts.source, texts.folder, run.parameters, texts.data, texts.held, schedule=run.schedule)
        workers = run.workers if run.workers or spec.problem.settings.workers else task.workers
        answer = spec.solve(
            solver=run.solver, method=run.method, time_limit=run.time_limit, gap=run.gap, workers=workers, seed=run.seed
        )
        return Result(answer.exit_code, document(answer), answer.message)
    except PlacedslError as problem:
        return Result(problem.exit_code, None, str(problem))
    except MemoryError:
        return Result(FAULT, None, "the memory of the machine was not enough")
    except Exception as problem:  # noqa: BLE001 - a fault of ours in one run is told, and the others go on
        import traceback

        last = traceback.extract_tb(problem.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return Result(FAULT, None, f"a fault of placedsl itself: {type(problem).__name__}: {problem} ({place})")


def main() -> int:
    """Solve what is sent until nothing more comes; what is printed meanwhile goes to stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, tasks), daemon=True).start()
    while True:
        send(results, solved(tasks.get()))


def _listen(requests: IO[bytes], tasks: queue.SimpleQueue[Task]) -> None:
    """Take tasks; leave with all that was started when the other side has gone, also in the middle of a run."""
    try:
        while True:
            tasks.put(receive(requests))
    except (EOFError, OSError, ValueError):
        leave()


if __name__ == "__main__":
    sys.exit(main())
