"""CVXPY: one vector variable, rows as sparse matrix products, HiGHS behind it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from placedsl.arrays import Floats
from placedsl.budget import Budget
from placedsl.ir.program import LinearProgram
from placedsl.solvers.equilibration import conditioned
from placedsl.solvers.highs_options import mip_options
from placedsl.solvers.interface import Features, Outcome, Progress, Termination
from placedsl.solvers.outcome import (
    Clock,
    by_claim,
    infeasible_or_unbounded,
    installed_version,
    outcome,
    without_terms,
)
from placedsl.tolerances import CONTRADICTION


class Cvxpy:
    """CVXPY with HiGHS, or with the HiGHS inside SciPy when highspy is missing.  Reports nothing while it runs."""

    features = Features("cvxpy", "cvxpy", note="HiGHS, through CVXPY")

    def available(self) -> str | None:
        """The installed version of CVXPY, or None."""
        return installed_version(self.features.package)

    def run(self, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:  # noqa: ARG002
        """Solve with CVXPY's HiGHS."""
        clock, version = Clock.start(budget), self.available() or ""
        trivial = without_terms(program, budget, version)
        if trivial is not None:
            return trivial
        import cvxpy

        scaled = conditioned(program)
        problem, x, impossible = _problem(cvxpy, scaled.program)
        if impossible:
            return outcome(program, budget, clock, "infeasible", None, -np.inf, version=version)
        backend = "HIGHS" if "HIGHS" in cvxpy.installed_solvers() else "SCIPY"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem.solve(solver=backend, **_options(backend, scaled.program, budget, clock))
        except cvxpy.error.SolverError as failure:
            # What cvxpy raises when its HiGHS stops at the limit without a point, too.
            if budget.time_limit is not None and clock.seconds >= 0.9 * budget.time_limit:
                return outcome(program, budget, clock, "time_limit", None, -np.inf, version=version)
            return outcome(program, budget, clock, "error", None, -np.inf, f"cvxpy failed: {failure}", version)
        status = str(problem.status)
        if status in ("unbounded", "infeasible_or_unbounded", "unbounded_inaccurate"):
            return infeasible_or_unbounded(self.run, program, budget, clock, version)
        extra = None if problem.solver_stats is None else problem.solver_stats.extra_stats
        point, bound = _found(x, extra), -np.inf
        ended: dict[str, Termination] = {
            "optimal": "optimal", "infeasible": "infeasible", "user_limit": "time_limit",
        }  # fmt: skip
        reason = ended.get(status, "error")
        if reason == "time_limit" and budget.time_limit is None:
            reason = "error"
        message = f"cvxpy ended with status '{status}'" if reason == "error" else ""
        real = None if point is None or reason == "infeasible" else scaled.point(point)
        proven = _dual_bound(extra)
        if program.integer.any() and proven is not None and reason != "infeasible":
            bound = scaled.value(proven + scaled.program.offset)
        elif reason == "optimal" and real is not None:
            bound = by_claim(program, real, budget)
        return outcome(program, budget, clock, reason, real, bound, message, version)


def _problem(cvxpy: Any, program: LinearProgram) -> tuple[Any, Any, bool]:
    """The problem, its variable, and whether a row without terms already cannot hold."""
    from scipy import sparse

    integers = np.flatnonzero(program.integer)
    x = cvxpy.Variable(program.columns, integer=(integers,) if len(integers) else False)
    matrix = sparse.csr_array(
        (program.coefficient, program.column, program.start), shape=(program.rows, program.columns)
    )
    low, high, size = program.row_lower, program.row_upper, np.diff(program.start)
    impossible = bool(((size == 0) & ((low > CONTRADICTION) | (high < -CONTRADICTION))).any())
    same = (low == high) & (size > 0)
    above, below = np.isfinite(low) & ~same & (size > 0), np.isfinite(high) & ~same & (size > 0)
    constraints = []
    if same.any():
        constraints.append(matrix[same] @ x == low[same])
    if above.any():
        constraints.append(matrix[above] @ x >= low[above])
    if below.any():
        constraints.append(matrix[below] @ x <= high[below])
    for bounds, upper in ((program.lower, False), (program.upper, True)):
        known = np.flatnonzero(np.isfinite(bounds))
        if len(known):
            constraints.append(x[known] <= bounds[known] if upper else x[known] >= bounds[known])
    goal = program.cost @ x if program.cost.any() else 0.0
    return cvxpy.Problem(cvxpy.Minimize(goal), constraints), x, impossible


def _options(backend: str, program: LinearProgram, budget: Budget, clock: Clock) -> dict[str, Any]:
    if backend == "SCIPY":
        scipy_options: dict[str, Any] = {"mip_rel_gap": budget.gap}
        if clock.left is not None:
            scipy_options["time_limit"] = clock.left
        return {"scipy_options": scipy_options}
    options: dict[str, Any] = {"mip_rel_gap": budget.gap, "mip_abs_gap": 0.0, "random_seed": budget.seed % 2**31}
    options |= mip_options(program)
    if clock.left is not None:
        options["time_limit"] = clock.left
    if budget.workers:
        import highspy

        highspy.Highs.resetGlobalScheduler(True)
        options["threads"] = budget.workers
    return options


def _found(x: Any, extra: Any) -> Floats | None:
    """The point, if it is one: HiGHS also hands over what it has when that is not feasible."""
    if x.value is None or getattr(extra, "primal_solution_status", 2) != 2:
        return None
    return np.asarray(x.value, dtype=float)


def _dual_bound(extra: Any) -> float | None:
    """The proven bound that HiGHS left in the statistics."""
    if extra is None:
        return None
    bound = extra.get("mip_dual_bound") if isinstance(extra, dict) else getattr(extra, "mip_dual_bound", None)
    return float(bound) if bound is not None and np.isfinite(bound) else None
