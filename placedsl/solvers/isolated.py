"""One run of a solver in a child process, so that its crash, its chatter or its hang harms nobody."""

from __future__ import annotations

import queue
import time
from dataclasses import replace

import numpy as np

from placedsl.arrays import Floats
from placedsl.budget import Budget
from placedsl.ir.program import GlobalConstraint, LinearProgram, Origin
from placedsl.processes.channel import Failure, Gone
from placedsl.processes.child import Child
from placedsl.solvers.exact_rows import Solve, solved_exactly
from placedsl.solvers.interface import Outcome, Progress, Solver, Termination
from placedsl.solvers.outcome import Clock, rounded, value
from placedsl.solvers.outcome import outcome as outcome_of
from placedsl.solvers.registry import get
from placedsl.solvers.task import Ended, Found, Stop, Task
from placedsl.system import interruption

#: Seconds that a child has left once it was asked to stop.
STOP_GRACE = 3.0
#: Seconds beyond the time limit after which a child is killed (or a tenth of the limit, if longer).
LIMIT_GRACE = 5.0
#: The same for one that others go before: it may not even have read its program, and what it proves comes on top.
_PATIENT_GRACE = 1.0
#: Lines of the child's standard error in a message.
_LAST_LINES = 8
#: Instead of a message, where none has come for a while.
_NOTHING_NEW = Found(None, np.inf, -np.inf)


def run_here(name: str, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:
    """The same run in this process."""
    solver = get(name)
    return _missing(solver) or _exactly(solver, solver.run, program, budget, progress)


def run_isolated(name: str, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:
    """Run the solver in a child process, and pass on what it finds.

    A child that dies, hangs or is interrupted costs its proof only: the best incumbent and bound that it had
    sent are in the outcome.  Rows of whole numbers hold to the last unit (:mod:`placedsl.solvers.exact_rows`).
    """
    solver = get(name)

    def solve(asked: LinearProgram, within: Budget, told: Progress) -> Outcome:
        return _Run(solver, asked, within, told).result()

    return _missing(solver) or _exactly(solver, solve, program, budget, progress)


def _exactly(solver: Solver, solve: Solve, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:
    return solved_exactly(solve, program, budget, progress, in_integers=solver.features.integers_only)


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
        self.inbox: queue.SimpleQueue[object] = queue.SimpleQueue()

    def result(self) -> Outcome:
        """Start the child, receive all that it sends, and leave nothing behind."""
        child = Child("placedsl.solvers.worker", self.inbox.put, keep_stderr=True)
        try:
            child.send(Task(self.solver.features.name, _bare(self.program), self.budget, time.monotonic()))
            return self._listen(child)
        finally:
            child.close()

    def _listen(self, child: Child) -> Outcome:
        while True:
            try:
                match self._next():
                    case None:
                        return self._ended(self._overdue())
                    case Ended(outcome=found):
                        return self._merged(found)
                    case Failure(message=message):
                        return self._ended("error", f"{self.solver.features.name} failed: {message}")
                    case Gone():
                        return self._gone(child)
                    case Found() as found if self._taken(found) and self.stopping is None:
                        if found is _NOTHING_NEW:  # the caller knows enough without what this child may still find
                            return self._ended("interrupted")
                        self._stop(child)
            except KeyboardInterrupt:
                interruption.caught()
                if self.interrupted:
                    return self._ended("interrupted")
                self.interrupted = True
                self._stop(child)

    def _next(self) -> object:
        """The next message, or None when the child's time is over."""
        limits = []
        if self.budget.time_limit is not None:
            limit = self.budget.time_limit
            grace = _PATIENT_GRACE if self.budget.patient else max(LIMIT_GRACE, 0.1 * limit)
            limits.append(limit + grace - self.clock.seconds)
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
                # The caller may know by now what the child does not.
                return _NOTHING_NEW

    def _taken(self, found: Found) -> bool:
        """Keep what was found, and pass it on; whether the caller wants to stop."""
        self.bound = max(self.bound, found.bound)
        if found.point is not None and (found.objective < self.objective or self.point is None):
            self.point, self.objective = found.point, found.objective
        return self.progress(found.point, found.objective, self.bound)

    def _stop(self, child: Child) -> None:
        # A child that has not even read its task is killed when the grace is over.
        self.stopping = time.monotonic()
        child.send(Stop())

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

    def _gone(self, child: Child) -> Outcome:
        """The child ended without an outcome."""
        if self.stopping is not None:
            return self._ended("interrupted")
        report, name = child.exit_report(), self.solver.features.name
        how = f"the process of {name} {report.phrase}"
        advice = "another solver may do: try --solver cp-sat" if name == "highs" else "try --solver highs"
        lines = report.last_lines[-_LAST_LINES:]
        tail = "\nlast words of the process:\n  " + "\n  ".join(lines) if lines else ""
        return self._ended("error", f"{how}; {advice}{tail}")


def _bare(program: LinearProgram) -> LinearProgram:
    """The program without the texts that its rows come from."""
    origins = tuple(Origin(o.name) for o in program.origins)
    return replace(program, origins=origins, native=tuple(_unsourced(c) for c in program.native))


def _unsourced(constraint: GlobalConstraint) -> GlobalConstraint:
    plain = replace(constraint, origin=Origin(constraint.origin.name))
    rows = getattr(plain, "rows", None)
    return plain if rows is None else replace(plain, rows=replace(rows, origin=plain.origin))
