"""One run of a solver in a child process, so that its crash, its chatter or its hang harms nobody."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from placedsl.program.program import Floats, GlobalConstraint, LinearProgram, Origin
from placedsl.solvers.interface import Budget, Outcome, Progress, Solver, Termination
from placedsl.solvers.messages import STOP, Task, receive, send
from placedsl.solvers.outcome import Clock, rounded, value
from placedsl.solvers.outcome import outcome as outcome_of
from placedsl.solvers.registry import get

#: Seconds that a child has left once it was asked to stop.
STOP_GRACE = 3.0
#: Seconds beyond the time limit after which a child is killed (or a tenth of the limit, if longer).
LIMIT_GRACE = 5.0


def run_here(name: str, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:
    """The same run in this process."""
    solver = get(name)
    return _missing(solver) or solver.run(program, budget, progress)


def run_isolated(name: str, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:
    """Run the solver in a child process, and pass on what it finds.

    A child that dies, hangs or is interrupted costs its proof only: the best incumbent and bound that it had
    sent are in the outcome.
    """
    solver = get(name)
    return _missing(solver) or _Run(solver, program, budget, progress).result()


def _missing(solver: Solver) -> Outcome | None:
    if solver.available() is not None:
        return None
    features = solver.features
    advice = f"pip install {features.package}" if ":" not in features.name else features.note
    message = f"the solver '{features.name}' is not installed ({advice}), or try --solver highs"
    return Outcome("error", None, np.inf, -np.inf, message)


class _Run:
    """The parent's side of one run."""

    def __init__(self, solver: Solver, program: LinearProgram, budget: Budget, progress: Progress) -> None:
        self.solver, self.program, self.budget, self.progress = solver, program, budget, progress
        self.clock = Clock.start(budget)
        self.point: Floats | None = None
        self.objective, self.bound = np.inf, -np.inf
        self.stopping: float | None = None
        self.interrupted = False
        self.writer = threading.Thread()
        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def result(self) -> Outcome:
        """Start the child, hear it to its end, and leave nothing behind."""
        with tempfile.TemporaryFile() as chatter:
            environment = dict(os.environ)
            root = str(Path(__file__).resolve().parents[2])
            # All that this process can import, the child must: a plug-in may lie anywhere on the search path.
            environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys((root, *filter(None, sys.path))))
            child = subprocess.Popen(
                [sys.executable, "-m", "placedsl.solvers.worker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=chatter,
                start_new_session=True, env=environment,
            )  # fmt: skip
            try:
                return self._listen(child, chatter)
            finally:
                _kill(child)

    def _listen(self, child: subprocess.Popen[bytes], chatter: IO[bytes]) -> Outcome:
        stdin, stdout = child.stdin, child.stdout
        assert stdin is not None
        assert stdout is not None
        threading.Thread(target=self._read, args=(stdout,), daemon=True).start()
        task = Task(self.solver.features.name, _bare(self.program), self.budget, time.time())
        # In a thread, because a child that does not read would hold up a large program for ever.
        self.writer = threading.Thread(target=_write, args=(stdin, task), daemon=True)
        self.writer.start()
        while True:
            try:
                message = self._next()
                if message is None:
                    return self._ended(self._overdue())
                if message[0] == "outcome":
                    return self._merged(message[1])
                if message[0] == "failed":
                    return self._ended("error", f"{self.solver.features.name} failed: {message[1]}")
                if message[0] == "gone":
                    return self._gone(child, chatter)
                if self._hear(message) and self.stopping is None:
                    self._stop(stdin)
            except KeyboardInterrupt:
                if self.interrupted:
                    return self._ended("interrupted")
                self.interrupted = True
                self._stop(stdin)

    def _read(self, stdout: IO[bytes]) -> None:
        try:
            while True:
                self.inbox.put(receive(stdout))
        except (EOFError, OSError, ValueError):
            self.inbox.put(("gone",))

    def _next(self) -> Any:
        """The next message, or None when the child's time is over."""
        limits = []
        if self.budget.time_limit is not None:
            limit = self.budget.time_limit
            limits.append(limit + max(LIMIT_GRACE, 0.1 * limit) - self.clock.seconds)
        if self.stopping is not None:
            limits.append(self.stopping + STOP_GRACE - time.monotonic())
        # Never without a timeout: a wait without one cannot be interrupted everywhere.
        while True:
            wait = min([0.5, *limits])
            if wait <= 0:
                return None
            try:
                return self.inbox.get(timeout=wait)
            except queue.Empty:
                limits = [left - wait for left in limits]
            if self.stopping is None:
                # Whoever listens may know by now what the child does not.
                return ("bound", self.bound)

    def _hear(self, message: Any) -> bool:
        if message[0] == "bound":
            self.bound = max(self.bound, message[1])
            return self.progress(None, np.inf, self.bound)
        _, point, objective, bound = message
        self.bound = max(self.bound, bound)
        if objective < self.objective or self.point is None:
            self.point, self.objective = point, objective
        return self.progress(point, objective, self.bound)

    def _stop(self, stdin: IO[bytes]) -> None:
        self.stopping = time.monotonic()
        if self.writer.is_alive():
            return  # A child that has not even read its task is killed when the grace is over.
        with contextlib.suppress(OSError, ValueError):
            os.write(stdin.fileno(), STOP)

    def _overdue(self) -> Termination:
        return "time_limit" if self.stopping is None else "interrupted"

    def _ended(self, reason: Termination, message: str = "") -> Outcome:
        version = self.solver.available() or ""
        return outcome_of(self.program, self.budget, self.clock, reason, self.point, self.bound, message, version)

    def _merged(self, found: Outcome) -> Outcome:
        """The child's outcome with what it had sent before, where that was better."""
        if found.termination in ("infeasible", "unbounded"):
            return replace(found, seconds=self.clock.seconds)
        point, bound = found.incumbent, max(found.bound, self.bound)
        if self.point is not None and (point is None or self.objective < found.objective):
            point = self.point
        reason: Termination = "interrupted" if self.interrupted and found.termination == "error" else found.termination
        if point is not None:
            bound = min(bound, value(self.program, rounded(self.program, point)))
        merged = outcome_of(
            self.program, self.budget, self.clock, reason, point, bound, found.message, found.version, found.details
        )
        # Only the child knows which differences say nothing.
        known = found.termination in ("optimal", "gap_reached") and merged.termination == "error"
        return replace(merged, termination=found.termination, message=found.message) if known else merged

    def _gone(self, child: subprocess.Popen[bytes], chatter: IO[bytes]) -> Outcome:
        """The child went without an outcome."""
        if self.stopping is not None:
            return self._ended("interrupted")
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(2.0)
        code, name = child.poll(), self.solver.features.name
        if code is None:
            how = f"the process of {name} stopped answering"
        elif code == -signal.SIGKILL if os.name == "posix" else False:
            how = f"the process of {name} was killed, most likely because the memory was used up"
        elif code < 0:
            how = f"the process of {name} crashed ({signal.Signals(-code).name})"
        else:
            how = f"the process of {name} ended with exit code {code}"
        chatter.seek(0, os.SEEK_END)
        chatter.seek(max(0, chatter.tell() - 2000))
        said = chatter.read().decode("utf-8", "replace").strip().splitlines()[-8:]
        advice = "another solver may do: try --solver cp-sat" if name == "highs" else "try --solver highs"
        tail = "\nlast words of the process:\n  " + "\n  ".join(said) if said else ""
        return self._ended("error", f"{how}; {advice}{tail}")


def _write(stdin: IO[bytes], task: Task) -> None:
    # A child that has gone is noticed by its other pipe.
    with contextlib.suppress(OSError, ValueError):
        send(stdin, task)


def _bare(program: LinearProgram) -> LinearProgram:
    """The program without the texts that its rows come from."""
    origins = tuple(Origin(o.name) for o in program.origins)
    return replace(program, origins=origins, native=tuple(_unsourced(c) for c in program.native))


def _unsourced(constraint: GlobalConstraint) -> GlobalConstraint:
    plain = replace(constraint, origin=Origin(constraint.origin.name))
    rows = getattr(plain, "rows", None)
    return plain if rows is None else replace(plain, rows=replace(rows, origin=plain.origin))


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the child and everything it has started."""
    if child.poll() is None:
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
