"""A process that solves one run after another for a sweep: ``python -m placedsl.sweeps.worker``.

It reads tasks, writes results, and leaves when the sweep has gone, whatever it is doing.
"""

from __future__ import annotations

import queue
import sys
from pathlib import Path

from placedsl.diagnostics import PlacedslError
from placedsl.processes.worker import ParentChannel, serve
from placedsl.sweeps.tasks import FAULT, Result, Task


def solved(task: Task) -> Result:
    """Solve a run here.  Never raises for what is wrong with a run."""
    from placedsl.api.spec import spec_of
    from placedsl.report.json.answer_document import document

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


def _work(channel: ParentChannel) -> None:
    """Solve what is sent until the sweep has gone, which ends this process also in the middle of a run."""
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
    channel.listen(tasks.put)
    from placedsl.algorithms.pipelines.parallel_plans.kept_searches import searches_kept

    with searches_kept():
        while True:
            channel.send(solved(tasks.get()))


if __name__ == "__main__":
    sys.exit(serve(_work))
