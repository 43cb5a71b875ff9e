"""CBC through python-mip, which can also drive HiGHS."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from placedsl.arrays import Floats
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
    rounded,
    row_of_entry,
    without_terms,
)
from placedsl.tolerances import CONTRADICTION, MIP_FEASIBILITY

#: A row that is broken by such a share of its terms was not kept.
_FAR = 1e-3


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
        status, values, claimed = self._solved(scaled.program, budget, clock, mip)
        if values is not None and self.backend == "cbc" and _breaks_rows(scaled.program, values):
            # Its reductions do that to programs that have no point at all.
            status, values, claimed = self._solved(scaled.program, budget, clock, mip, reduced=False)
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

    def _solved(
        self, program: LinearProgram, budget: Budget, clock: Clock, mip: Any, *, reduced: bool = True
    ) -> tuple[Any, Floats | None, float | None]:
        """Status, the values of the columns, and the bound that is claimed, of a program in the solver's units."""
        with _silence():
            model, unknowns = _model(mip, self.backend, program)
            model.max_mip_gap, model.max_mip_gap_abs, model.integer_tol = budget.gap, 1e-12, MIP_FEASIBILITY
            model.seed = budget.seed % 2**31
            if not reduced:
                model.preprocess = 0
            if budget.workers:
                model.threads = budget.workers
            if program.hint is not None and self.features.warm_start:
                known = np.flatnonzero(~np.isnan(program.hint))
                model.start = [(unknowns[j], float(program.hint[j])) for j in known.tolist()]
            status = model.optimize(max_seconds=np.inf if clock.left is None else clock.left)
            values = np.array([unknown.x for unknown in unknowns]) if model.num_solutions > 0 else None
            return status, values, model.objective_bound


def _breaks_rows(program: LinearProgram, point: Floats) -> bool:
    """Whether a point breaks a row by far more than any tolerance."""
    row = row_of_entry(program)
    terms = program.coefficient * rounded(program, point)[program.column]
    total, size = (np.bincount(row, values, program.rows) for values in (terms, np.abs(terms)))
    slack = _FAR * np.maximum(1.0, size)
    return bool(((total > program.row_upper + slack) | (total < program.row_lower - slack)).any())


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
