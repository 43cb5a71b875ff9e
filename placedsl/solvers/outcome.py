"""What every solver file needs: the gap, how a run is named, rounding, the program without columns."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placedsl.arrays import Floats, Integers
from placedsl.budget import Budget
from placedsl.ir.program import LinearProgram
from placedsl.solvers.interface import Outcome, Progress, Termination
from placedsl.tolerances import CONTRADICTION, IMPROVEMENT, INTEGER_BOUND, SAME_VALUE


def installed_version(package: str) -> str | None:
    """The version of an installed package, without importing it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def has_module(name: str) -> bool:
    """Whether a top-level module could be imported."""
    return importlib.util.find_spec(name) is not None


#: How the message begins of a solver that calls optimal what its own bound does not bear out.
UNPROVEN = "the solver reports an optimal point and "


def gap(objective: float, bound: float) -> float:
    """(objective - bound) / max(|objective|, 1e-9); infinite when either is missing."""
    if not (np.isfinite(objective) and np.isfinite(bound)):
        return float("inf")
    return max(0.0, objective - bound) / max(abs(objective), 1e-9)


def rounded(program: LinearProgram, point: Floats) -> Floats:
    """The point with integer columns at the nearest integer; others as they are."""
    return np.where(program.integer, np.round(point), point) + 0.0


def value(program: LinearProgram, point: Floats) -> float:
    """The objective at a point."""
    return float(program.cost @ point) + program.offset


def least(program: LinearProgram) -> float:
    """What the bounds of the columns alone say of the objective; -inf where they say nothing."""
    used = np.flatnonzero(program.cost)
    cost = program.cost[used]
    return float(np.where(cost > 0.0, cost * program.lower[used], cost * program.upper[used]).sum()) + program.offset


def by_claim(program: LinearProgram, point: Floats, budget: Budget) -> float:
    """The bound that a claim of optimality within the gap asked for amounts to, where a solver gives none."""
    objective = value(program, rounded(program, point))
    # Less by a rounding error: the gap computed from the bound must not exceed the one asked for.
    return objective - (budget.gap * abs(objective) * (1.0 - IMPROVEMENT) if budget.gap > SAME_VALUE else 0.0)


def without_objective(program: LinearProgram) -> LinearProgram:
    """The same program with nothing to minimise."""
    return replace(program, cost=np.zeros(program.columns), offset=0.0)


def row_of_entry(program: LinearProgram) -> Integers:
    """The row of each matrix entry."""
    return np.repeat(np.arange(program.rows), np.diff(program.start))


def heard_by_nobody(point: Floats | None, objective: float, bound: float) -> bool:  # noqa: ARG001
    """A progress function for runs whose progress is of no interest."""
    return False


class Guarded:
    """A progress function for use inside a solver's callbacks, whatever thread they come from.

    Keeps the best bound, never raises (an exception stops the run and is raised by :meth:`check`), and once told to
    stop goes on saying so.
    """

    def __init__(self, program: LinearProgram, progress: Progress) -> None:
        self.program, self.progress = program, progress
        self.bound = -np.inf
        self.point: Floats | None = None
        self.objective = np.inf
        self.stop = False
        self._lock = threading.Lock()
        self._problem: BaseException | None = None

    def found(self, point: Floats) -> bool:
        """A new point, in the program's units; returns whether to stop."""
        with self._lock:
            point = rounded(self.program, point)
            objective = value(self.program, point)
            if objective < self.objective or self.point is None:
                self.point, self.objective = point, objective
            return self._say(point, objective)

    def proved(self, bound: float = -np.inf) -> bool:
        """A bound, or only the question whether to stop."""
        with self._lock:
            self.bound = max(self.bound, bound)
            return self._say(None, np.inf)

    def check(self) -> None:
        """Raise what the progress function raised."""
        if self._problem is not None:
            raise self._problem

    def _say(self, point: Floats | None, objective: float) -> bool:
        if not self.stop:
            try:
                self.stop = self.progress(point, objective, self.bound)
            except BaseException as problem:  # noqa: BLE001
                self._problem, self.stop = problem, True
        return self.stop


@dataclass
class Clock:
    """Wall time of one run against its limit, which includes building the model."""

    limit: float | None
    begin: float

    @classmethod
    def start(cls, budget: Budget) -> Clock:
        """A clock that starts now."""
        return cls(budget.time_limit, time.monotonic())

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.begin

    @property
    def left(self) -> float | None:
        """Seconds left (never below a hundredth of a second), or None without a limit."""
        return None if self.limit is None else max(0.01, self.limit - self.seconds)


def outcome(
    program: LinearProgram,
    budget: Budget,
    clock: Clock,
    reason: Termination,
    point: Floats | None,
    bound: float,
    message: str = "",
    version: str = "",
    details: dict[str, float] | None = None,
    slack: float = 0.0,
) -> Outcome:
    """An outcome; ``reason`` is why the solver says that it stopped.

    The point is rounded and its objective computed here, and what is left between it and the bound decides:
    "optimal" may become "gap_reached", or "error" when the bound does not bear it out; a run that was stopped with
    no more than the gap asked for left is called "optimal" or "gap_reached".  ``slack`` is an absolute difference
    that says nothing, for solvers that know theirs.
    """
    objective = float("inf")
    if point is not None:
        point = rounded(program, np.asarray(point, dtype=float))
        objective = value(program, point)
        bound = min(max(bound, least(program)), objective)
    left = gap(objective, bound)
    if point is not None and objective - bound <= slack:
        left = 0.0
    # A bound that is read from what a solver prints may be further off than the gap asked for by its last digit.
    if reason in ("optimal", "time_limit", "interrupted") and left <= budget.gap + SAME_VALUE:
        reason = "optimal" if left <= SAME_VALUE else "gap_reached"
    elif reason == "optimal":
        reason = "error"
        message = UNPROVEN + (
            "does not give it" if point is None else f"a bound that is {left:.3g} away from it, relatively"
        )
    return Outcome(reason, point, objective, bound, message, clock.seconds, version, details or {})


def without_terms(program: LinearProgram, budget: Budget, version: str) -> Outcome | None:
    """The outcome of a program whose rows have no terms (or that has no rows, or no columns); None for any other."""
    if len(program.column) or program.native:
        return None
    clock = Clock.start(budget)
    lower, upper = program.lower, program.upper
    if program.integer.any():
        lower = np.where(program.integer, np.ceil(lower - INTEGER_BOUND), lower)
        upper = np.where(program.integer, np.floor(upper + INTEGER_BOUND), upper)
    crossed = (lower > upper + CONTRADICTION).any()
    if crossed or (program.row_lower > CONTRADICTION).any() or (program.row_upper < -CONTRADICTION).any():
        return outcome(program, budget, clock, "infeasible", None, -np.inf, version=version)
    point = np.where(program.cost > 0, lower, np.where(program.cost < 0, upper, np.clip(0.0, lower, upper)))
    if np.isinf(point).any():
        return _unbounded(clock, version)
    return outcome(program, budget, clock, "optimal", point, value(program, point), version=version)


def not_loaded(program: LinearProgram, budget: Budget, clock: Clock, problem: ImportError, version: str) -> Outcome:
    """A solver whose library this process cannot load."""
    message = f"its library cannot be loaded: {problem}; highspy and ortools, for one, do not go into one process"
    return outcome(program, budget, clock, "error", None, -np.inf, message, version)


def infeasible_or_unbounded(
    run: Callable[[LinearProgram, Budget, Progress], Outcome],
    program: LinearProgram,
    budget: Budget,
    clock: Clock,
    version: str,
) -> Outcome:
    """Tell the two apart: a program with a feasible point is unbounded."""
    found = run(without_objective(program), replace(budget, time_limit=clock.left), heard_by_nobody)
    if found.incumbent is not None:
        return _unbounded(clock, version)
    if found.termination == "infeasible":
        return outcome(program, budget, clock, "infeasible", None, -np.inf, version=version)
    return outcome(program, budget, clock, found.termination, None, -np.inf, found.message, version)


def _unbounded(clock: Clock, version: str) -> Outcome:
    return Outcome("unbounded", None, np.inf, -np.inf, "the objective has no lower bound", clock.seconds, version)
