"""The child process of one run: reads a task, runs the solver, streams what it finds.

Started by :mod:`placedsl.solvers.isolated` as ``python -m placedsl.solvers.worker``.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from typing import IO

import numpy as np

from placedsl.program.program import Floats
from placedsl.solvers.interface import Solver
from placedsl.solvers.messages import STOP, Task, receive, send
from placedsl.solvers.registry import get

#: How far a patient solver stands back.
_PATIENT = 10


def main() -> int:
    """Do one task; whatever the solver prints goes to stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    # No solver, and no program that a solver starts, may read from the parent's pipe.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    task: Task = receive(requests)
    solver = get(task.name)
    reporter = _Reporter(answers)
    threading.Thread(target=_listen, args=(requests, solver, reporter), daemon=True).start()
    budget = task.budget
    if budget.patient and hasattr(os, "nice"):
        os.nice(_PATIENT)
    if budget.time_limit is not None:
        budget = replace(budget, time_limit=max(0.01, budget.time_limit - (time.time() - task.sent)))
    try:
        send(answers, ("outcome", solver.run(task.program, budget, reporter)))
    except BrokenPipeError:
        return 1
    except Exception as problem:
        # The parent tells the user; the traceback goes to stderr, which the parent keeps the end of.
        send(answers, ("failed", f"{type(problem).__name__}: {problem}"))
        raise
    finally:
        sys.stderr.flush()
    # Without the interpreter's shutdown: solver libraries have been seen to crash there.
    os._exit(0)


class _Reporter:
    """The child's progress function: sends what is new, and says whether the parent wants to stop."""

    def __init__(self, answers: IO[bytes]) -> None:
        self.answers = answers
        self.stop = False
        self.bound = -np.inf
        self.lock = threading.Lock()

    def __call__(self, point: Floats | None, objective: float, bound: float) -> bool:
        with self.lock:
            better = bound > self.bound
            self.bound = max(self.bound, bound)
            if point is not None:
                send(self.answers, ("incumbent", point, objective, self.bound))
            elif better:
                send(self.answers, ("bound", bound))
        return self.stop


def _listen(requests: IO[bytes], solver: Solver, reporter: _Reporter) -> None:
    """Wait for the parent's word; leave when it has gone, or when the solver cannot be asked to stop."""
    told = requests.read(1)
    if told == STOP:
        reporter.stop = True
        if solver.features.streams_incumbents:
            told = requests.read(1)
    leave()


def leave() -> None:
    """End this process and the programs it has started."""
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
