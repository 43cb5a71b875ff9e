"""CBC through python-mip, which can also drive HiGHS."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from placedsl.budget import Budget
from placedsl.diagnostics import UsageError
from placedsl.ir.program import LinearProgram
from placedsl.solvers.equilibration import FINE_OBJECTIVE, conditioned
from placedsl.solvers.interface import Features, Outcome, Progress, Termination
from placedsl.solvers.outcome import (
    Clock,
    by_claim,
    has_module,
    infeasible_or_unbounded,
    installed_version,
    outcome,
    without_terms,
)
from placedsl.tolerances import CONTRADICTION, MIP_FEASIBILITY


class Mip:
    """python-mip; CBC comes with it.  It reports nothing while it runs, and cannot be asked to stop."""

    def __init__(self, backend: str = "cbc") -> None:
        if backend not in ("cbc", "highs"):
            raise UsageError(f"python-mip is not offered with '{backend}'; it knows cbc and highs")
        self.backend = backend
        name, note = ("mip", "CBC, through python-mip") if backend == "cbc" else ("mip:highs", "needs highspy as well")
        self.features = Features(name, "mip", warm_start=backend == "cbc", note=note)

    def available(self) -> str | None:
        """The installed version of python-mip, or None."""
        version = installed_version("mip")
        return version if version is None or self.backend == "cbc" or has_module("highspy") else None

    def run(self, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:  # noqa: ARG002
        """Solve with CBC or HiGHS."""
        clock, version = Clock.start(budget), self.available() or ""
        trivial = without_terms(program, budget, version)
        if trivial is not None:
            return trivial
        scaled = conditioned(program, FINE_OBJECTIVE)
        with _silence():
            import mip

            model, unknowns = _model(mip, self.backend, scaled.program)
            model.max_mip_gap, model.max_mip_gap_abs, model.integer_tol = budget.gap, 1e-12, MIP_FEASIBILITY
            model.seed = budget.seed % 2**31
            if budget.workers:
                model.threads = budget.workers
            hint = scaled.program.hint
            if hint is not None and self.features.warm_start:
                known = np.flatnonzero(~np.isnan(hint))
                model.start = [(unknowns[j], float(hint[j])) for j in known.tolist()]
            status = model.optimize(max_seconds=np.inf if clock.left is None else clock.left)
            found = model.num_solutions > 0
            values = np.array([unknown.x for unknown in unknowns]) if found else None
            claimed = model.objective_bound
        codes = mip.OptimizationStatus
        ended: dict[Any, Termination] = {
            codes.OPTIMAL: "optimal",
            codes.INFEASIBLE: "infeasible",
            codes.INT_INFEASIBLE: "infeasible",
            codes.FEASIBLE: "time_limit",
            codes.NO_SOLUTION_FOUND: "time_limit",
            codes.TRUNCATED: "time_limit",
        }
        if status == codes.UNBOUNDED:
            return infeasible_or_unbounded(self.run, program, budget, clock, version)
        reason = ended.get(status, "error")
        message = f"{self.backend} ended with status '{status.name}'" if reason == "error" else ""
        if reason == "time_limit" and budget.time_limit is None:
            reason, message = "error", f"{self.backend} stopped without a proof although no limit was set"
        point = None if values is None or reason == "infeasible" else scaled.point(values)
        bound = -np.inf
        if program.integer.any() and claimed is not None and abs(claimed) < 1e30:
            bound = scaled.value(float(claimed)) + program.offset
        if reason == "optimal" and point is not None and bound == -np.inf:
            bound = by_claim(program, point, budget)
        return outcome(program, budget, clock, reason, point, bound, message, version)


def _model(mip: Any, backend: str, program: LinearProgram) -> tuple[Any, list[Any]]:
    """The program in python-mip's objects, and its variables in the order of the columns."""
    model = mip.Model(sense=mip.MINIMIZE, solver_name=mip.CBC if backend == "cbc" else "HIGHS")
    model.verbose = 0
    kinds = [mip.INTEGER if whole else mip.CONTINUOUS for whole in program.integer.tolist()]
    unknowns = [
        model.add_var(lb=_number(low, mip), ub=_number(high, mip), obj=cost, var_type=kind)
        for low, high, cost, kind in zip(
            program.lower.tolist(), program.upper.tolist(), program.cost.tolist(), kinds, strict=True
        )
    ]
    start, column, coefficient = program.start.tolist(), program.column.tolist(), program.coefficient.tolist()
    for i, (low, high) in enumerate(zip(program.row_lower.tolist(), program.row_upper.tolist(), strict=True)):
        terms = slice(start[i], start[i + 1])
        body = mip.LinExpr([unknowns[j] for j in column[terms]], coefficient[terms])
        if start[i] == start[i + 1]:
            if low > CONTRADICTION or high < -CONTRADICTION:
                # python-mip drops a row without terms; bounds that contradict each other say the same.
                model.add_constr(mip.LinExpr([unknowns[0]], [1.0]) >= 1)
                model.add_constr(mip.LinExpr([unknowns[0]], [1.0]) <= 0)
            continue
        if low == high:
            model.add_constr(body == low)
            continue
        if np.isfinite(low):
            model.add_constr(body >= low)
        if np.isfinite(high):
            model.add_constr(body <= high)
    return model, unknowns


def _number(bound: float, mip: Any) -> float:
    return bound if np.isfinite(bound) else float(np.sign(bound)) * float(mip.INF)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """CBC writes to file descriptor 1 whatever it is told."""
    sys.stdout.flush()
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)
