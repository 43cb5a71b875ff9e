"""HiGHS through highspy: the model is handed over as arrays in one call."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from placedsl.arrays import Floats
from placedsl.budget import Budget
from placedsl.ir.linear_rows import LinearRows
from placedsl.ir.program import LinearProgram
from placedsl.solvers.equilibration import Conditioned, conditioned
from placedsl.solvers.highs_iis import refutation
from placedsl.solvers.highs_options import mip_options, otherwise
from placedsl.solvers.interface import Features, Outcome, Progress, Termination
from placedsl.solvers.outcome import (
    UNPROVEN,
    Clock,
    Guarded,
    by_claim,
    infeasible_or_unbounded,
    installed_version,
    not_loaded,
    outcome,
    rounded,
    without_terms,
)

#: Seconds between two questions whether to stop when nothing new was found.
_PAUSE = 0.2
#: Most seconds for making a full starting point from a partial one.
_HINT_SECONDS = 20.0


class Highs:
    """Mixed-integer branch and cut, open source."""

    features = Features(
        "highs",
        "highspy",
        warm_start=True,
        streams_incumbents=True,
        relaxed_core=True,
        note="branch and cut; the default",
    )

    def available(self) -> str | None:
        """The installed version of highspy, or None."""
        return installed_version(self.features.package)

    def run(self, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:
        """Solve with HiGHS."""
        clock = Clock.start(budget)
        version = self.available() or ""
        trivial = without_terms(program, budget, version)
        if trivial is not None:
            return trivial
        try:
            import highspy
        except ImportError as problem:
            return not_loaded(program, budget, clock, problem, version)
        scaled = conditioned(program)
        model: Any = silent(highspy)
        _set_options(model, budget, mip_options(scaled.program), highspy)
        if pass_model(model, scaled.program) == highspy.HighsStatus.kError:
            message = "HiGHS refuses the model: a number in it is not finite or too large"
            return outcome(program, budget, clock, "error", None, -np.inf, message, version)
        if len(program.assumed_zero):
            return refutation(model, program, clock, version)
        start = _start(scaled.program, budget, clock, highspy)
        if start is not None:
            model.setSolution(program.columns, np.arange(program.columns, dtype=np.int32), start)
        mixed = bool(program.integer.any())
        heard = Guarded(program, progress)
        _Listener(heard, scaled).attach(model, mixed)
        if clock.left is not None:
            model.setOptionValue("time_limit", clock.left)
        model.run()
        codes = highspy.HighsModelStatus
        failed = model.getModelStatus() == codes.kSolveError
        if failed:
            _set_options(model, budget, otherwise(mip_options(scaled.program)), highspy)
            model.run()
        heard.check()
        status, info = model.getModelStatus(), model.getInfo()
        ended: dict[Any, Termination] = {
            codes.kOptimal: "optimal",
            codes.kModelEmpty: "optimal",
            codes.kInfeasible: "infeasible",
            codes.kTimeLimit: "time_limit",
            codes.kInterrupt: "interrupted",
        }
        if status in (codes.kUnboundedOrInfeasible, codes.kUnbounded):
            return infeasible_or_unbounded(self.run, program, budget, clock, version)
        reason, message = ended.get(status, "error"), ""
        if start is not None and reason == "optimal" and info.simplex_iteration_count <= 0:
            return self._without_start(program, budget, clock, progress)
        if reason == "infeasible" and failed:
            reason = "error"  # without reductions there was a reason: with them only points are believed
        if reason == "error":
            message = f"HiGHS ended with status '{model.modelStatusToString(status)}'"
        point, bound = heard.point, heard.bound
        if reason == "infeasible" and point is not None:
            reason, message, bound = "error", "HiGHS calls infeasible what it found a point of", -np.inf
        if reason != "infeasible" and info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
            point = scaled.point(np.asarray(model.getSolution().col_value))
        if reason == "optimal" and not mixed:
            bound = -np.inf if point is None else by_claim(program, point, replace(budget, gap=0.0))
        elif mixed and np.isfinite(info.mip_dual_bound):
            bound = max(bound, scaled.value(info.mip_dual_bound))
        details = {"nodes": float(info.mip_node_count)} if mixed else {}
        found = outcome(program, budget, clock, reason, point, bound, message, version, details)
        if start is not None and found.message.startswith(UNPROVEN):
            return self._without_start(program, budget, clock, progress)
        return found

    def _without_start(self, program: LinearProgram, budget: Budget, clock: Clock, progress: Progress) -> Outcome:
        """HiGHS 1.15.1 takes a start for the optimum where its reductions, which the start does not survive, leave only
        points that are better: it has looked at little then, at nothing or up to a bound below it."""
        return self.run(replace(program, hint=None), replace(budget, time_limit=clock.left), progress)


def silent(highspy: Any) -> Any:
    """A HiGHS object that prints nothing: without this, the first one of a process says on stdout who it is."""

    class Silent(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> Any:  # noqa: N802  what its constructor calls first
            self.setOptionValue("output_flag", False)
            return super().enableCallbacks()

    return Silent()


def _set_options(model: Any, budget: Budget, further: Mapping[str, float | str], highspy: Any) -> None:
    model.setOptionValue("mip_rel_gap", budget.gap)
    # Objectives have any unit: an absolute gap would mean nothing.
    model.setOptionValue("mip_abs_gap", 0.0)
    for name, value in further.items():
        model.setOptionValue(name, value)
    model.setOptionValue("random_seed", budget.seed % 2**31)
    if budget.workers:
        # The pool of threads belongs to the process and keeps the size it was first given.
        highspy.Highs.resetGlobalScheduler(True)
        model.setOptionValue("threads", budget.workers)


def pass_model(model: Any, program: LinearProgram) -> Any:
    """Give a HiGHS object the whole program in one call; returns HiGHS's status."""
    by_rows, minimise = 2, 1
    return model.passModel(
        program.columns, program.rows, len(program.column), by_rows, minimise, program.offset,
        program.cost.astype(np.float64), program.lower.astype(np.float64), program.upper.astype(np.float64),
        program.row_lower.astype(np.float64), program.row_upper.astype(np.float64),
        program.start.astype(np.int32), program.column.astype(np.int32),
        program.coefficient.astype(np.float64), program.integer.astype(np.int32),
    )  # fmt: skip


def linear_model(rows: LinearRows, cost: Floats) -> Any:
    """A HiGHS object, silent, that minimises ``cost`` over points of ``rows`` that are not negative."""
    import highspy

    model: Any = silent(highspy)
    pass_model(model, rows.program(cost))
    return model


def _start(program: LinearProgram, budget: Budget, clock: Clock, highspy: Any) -> Floats | None:
    """The hint completed to a feasible point by a run of its own, or None.

    Given a partial point, HiGHS would complete it within the main run and report that smaller problem's bound through
    the main run's callbacks, as if it were proven of the whole.
    """
    if program.hint is None or not program.integer.any():
        return None
    known = ~np.isnan(program.hint)
    values = np.clip(rounded(program, program.hint), program.lower, program.upper)
    model: Any = silent(highspy)
    _set_options(model, budget, mip_options(program), highspy)
    fixed = replace(program, lower=np.where(known, values, program.lower), upper=np.where(known, values, program.upper))
    pass_model(model, fixed)
    model.setOptionValue("time_limit", _HINT_SECONDS if clock.left is None else min(_HINT_SECONDS, clock.left / 4))
    model.run()
    if model.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    return np.asarray(model.getSolution().col_value)


class _Listener:
    """Passes incumbents and bounds on, and stops the run when told to."""

    def __init__(self, heard: Guarded, scaled: Conditioned) -> None:
        self.heard, self.scaled = heard, scaled
        self.last = time.monotonic()

    def attach(self, model: Any, mixed: bool) -> None:
        """Register with the model."""
        if mixed:
            model.cbMipImprovingSolution += self.improved
            model.cbMipLogging += self.asked
            model.cbMipInterrupt += self.asked
        else:
            model.cbSimplexInterrupt += self.asked_by_lp
            model.cbIpmInterrupt += self.asked_by_lp

    def improved(self, event: Any) -> None:
        """A new incumbent."""
        self.heard.bound = max(self.heard.bound, self.bound(event))
        values = np.array(event.data_out.mip_solution, dtype=float)
        if len(values) == len(self.scaled.unit):
            self.heard.found(self.scaled.point(values))

    def asked(self, event: Any) -> None:
        """HiGHS asks whether to go on."""
        self.ask(event, self.bound(event))

    def asked_by_lp(self, event: Any) -> None:
        """The same without a bound to tell."""
        self.ask(event, -np.inf)

    def ask(self, event: Any, bound: float) -> None:
        """Pass the question on, now and then."""
        now = time.monotonic()
        if not self.heard.stop and now - self.last >= _PAUSE:
            self.last = now
            self.heard.proved(bound)
        if self.heard.stop:
            event.interrupt()

    def bound(self, event: Any) -> float:
        """The bound that comes with an event, in the program's units."""
        bound = float(event.data_out.mip_dual_bound)
        return self.scaled.value(bound) if np.isfinite(bound) else -np.inf
