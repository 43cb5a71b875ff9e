"""HiGHS through highspy: the model is handed over as arrays in one call."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from placedsl.program.program import Floats, LinearProgram
from placedsl.solvers.common import (
    Clock,
    infeasible_or_unbounded,
    installed_version,
    outcome,
    rounded,
    value,
    without_columns,
)
from placedsl.solvers.conditioning import Conditioned, conditioned
from placedsl.solvers.interface import Budget, Features, Outcome, Progress, Termination

#: Seconds between two questions whether to stop when nothing new was found.
_PAUSE = 0.2


class Highs:
    """Mixed-integer branch and cut, open source."""

    features = Features(
        "highs", "highspy", warm_start=True, streams_incumbents=True, note="branch and cut; the default"
    )

    def available(self) -> str | None:
        """The installed version of highspy, or None."""
        return installed_version(self.features.package)

    def run(self, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:
        """Solve with HiGHS."""
        clock = Clock.start(budget)
        version = self.available() or ""
        trivial = without_columns(program, budget, version)
        if trivial is not None:
            return trivial
        import highspy

        scaled = conditioned(program)
        model: Any = highspy.Highs()
        _set_options(model, budget, highspy)
        if _pass_model(model, scaled.program) == highspy.HighsStatus.kError:
            message = "HiGHS refuses the model: a number in it is not finite or too large"
            return outcome(program, budget, clock, "error", None, -np.inf, message, version)
        _pass_hint(model, scaled.program)
        mixed = bool(program.integer.any())
        listener = _Listener(program, scaled, progress)
        listener.attach(model, mixed)
        if clock.left is not None:
            model.setOptionValue("time_limit", clock.left)
        model.run()
        status, info, codes = model.getModelStatus(), model.getInfo(), highspy.HighsModelStatus
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
        if reason == "error":
            message = f"HiGHS ended with status '{model.modelStatusToString(status)}'"
        point, bound = listener.point, listener.bound
        if reason != "infeasible" and info.primal_solution_status == 2:
            point = scaled.point(np.asarray(model.getSolution().col_value))
        if reason == "optimal" and not mixed:
            bound = np.inf if point is None else value(program, rounded(program, point))
        elif mixed and np.isfinite(info.mip_dual_bound):
            bound = max(bound, scaled.value(info.mip_dual_bound))
        details = {"nodes": float(info.mip_node_count)} if mixed else {}
        return outcome(program, budget, clock, reason, point, bound, message, version, details)


def _set_options(model: Any, budget: Budget, highspy: Any) -> None:
    model.setOptionValue("output_flag", False)
    model.setOptionValue("mip_rel_gap", budget.gap)
    # Objectives have any unit: an absolute gap would mean nothing.
    model.setOptionValue("mip_abs_gap", 0.0)
    model.setOptionValue("random_seed", budget.seed % 2**31)
    if budget.workers:
        # The pool of threads belongs to the process and keeps the size it was first given.
        highspy.Highs.resetGlobalScheduler(True)
        model.setOptionValue("threads", budget.workers)


def _pass_model(model: Any, program: LinearProgram) -> Any:
    by_rows, minimise = 2, 1
    return model.passModel(
        program.columns, program.rows, len(program.column), by_rows, minimise, program.offset,
        program.cost.astype(np.float64), program.lower.astype(np.float64), program.upper.astype(np.float64),
        program.row_lower.astype(np.float64), program.row_upper.astype(np.float64),
        program.start.astype(np.int32), program.column.astype(np.int32),
        program.coefficient.astype(np.float64), program.integer.astype(np.int32),
    )  # fmt: skip


def _pass_hint(model: Any, program: LinearProgram) -> None:
    if program.hint is None or not program.integer.any():
        return
    known = np.flatnonzero(~np.isnan(program.hint))
    if len(known):
        values = np.clip(rounded(program, program.hint), program.lower, program.upper)
        model.setSolution(len(known), known.astype(np.int32), values[known])


class _Listener:
    """Passes incumbents and bounds on, and stops the run when told to."""

    def __init__(self, program: LinearProgram, scaled: Conditioned, progress: Progress) -> None:
        self.program, self.scaled, self.progress = program, scaled, progress
        self.point: Floats | None = None
        self.bound = -np.inf
        self.stop = False
        self.last = time.monotonic()

    def attach(self, model: Any, mixed: bool) -> None:
        """Register with the model."""
        if mixed:
            model.cbMipImprovingSolution += self.improved
            model.cbMipLogging += self.asked
            model.cbMipInterrupt += self.asked
        else:
            model.cbSimplexInterrupt += self.asked
            model.cbIpmInterrupt += self.asked

    def improved(self, event: Any) -> None:
        """A new incumbent."""
        values = np.array(event.data_out.mip_solution, dtype=float)
        if len(values) != self.program.columns:
            return
        self.point = rounded(self.program, self.scaled.point(values))
        self.hear(event.data_out.mip_dual_bound)
        self.say(self.point)

    def asked(self, event: Any) -> None:
        """HiGHS asks whether to go on."""
        now = time.monotonic()
        if not self.stop and now - self.last >= _PAUSE:
            self.last = now
            self.hear(event.data_out.mip_dual_bound)
            self.say(None)
        if self.stop:
            event.interrupt()

    def hear(self, bound: float) -> None:
        """Keep a bound if it is a better one."""
        if np.isfinite(bound):
            self.bound = max(self.bound, self.scaled.value(bound))

    def say(self, point: Floats | None) -> None:
        """Report, and remember the answer."""
        objective = np.inf if point is None else value(self.program, point)
        self.stop = self.progress(point, objective, self.bound) or self.stop
