"""Pyomo, and through it HiGHS, CBC, SCIP, Gurobi or GLPK."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from placedsl.arrays import Floats
from placedsl.budget import Budget
from placedsl.diagnostics import UsageError, nearest
from placedsl.ir.program import LinearProgram
from placedsl.solvers.equilibration import FINE_OBJECTIVE, conditioned
from placedsl.solvers.highs_options import mip_options, otherwise
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

#: Per backend: its name in Pyomo, and its options for time (seconds), relative gap, threads, seed.
_BACKENDS: dict[str, tuple[str, str, str, str, str]] = {
    "highs": ("highs", "time_limit", "mip_rel_gap", "threads", "random_seed"),
    "cbc": ("cbc", "sec", "ratio", "threads", "randomCbcSeed"),
    "glpk": ("glpk", "tmlim", "mipgap", "", ""),
    "gurobi": ("gurobi", "TimeLimit", "MIPGap", "Threads", "Seed"),
    "scip": ("scip", "limits/time", "limits/gap", "", "randomization/randomseedshift"),
}
_UNREADABLE = "pyomo cannot read the solution that {} wrote; use --solver mip, which runs CBC by itself, or highs"


class Pyomo:
    """A model in Pyomo's objects, solved by one of the solvers that it knows."""

    def __init__(self, backend: str = "highs") -> None:
        if backend not in _BACKENDS:
            raise UsageError(f"pyomo is not offered with '{backend}'; {nearest(backend, _BACKENDS)}")
        self.backend = backend
        name = "pyomo" if backend == "highs" else f"pyomo:{backend}"
        needs = {"highs": "highspy", "gurobi": "gurobipy"}.get(backend, f"the program '{backend}' on the PATH")
        self.features = Features(name, "pyomo", warm_start=backend in ("cbc", "gurobi"), note=f"needs {needs}")

    def available(self) -> str | None:
        """The installed version of Pyomo, or None when it or the solver behind it is missing."""
        version = installed_version("pyomo")
        if version is None:
            return None
        if self.backend == "highs":
            return version if has_module("highspy") else None
        if self.backend == "gurobi":
            return version if has_module("gurobipy") else None
        return version if _executable(self.backend) or (self.backend == "cbc" and has_module("cbcbox")) else None

    def run(self, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:  # noqa: ARG002
        """Solve with the backend."""
        clock, version = Clock.start(budget), self.available() or ""
        trivial = without_terms(program, budget, version)
        if trivial is not None:
            return trivial
        scaled = conditioned(program, FINE_OBJECTIVE)
        model, unknowns = _model(scaled.program)
        from pyomo.common.errors import ApplicationError, PyomoException

        try:
            if self.backend == "highs":
                options = mip_options(scaled.program)
                ended, values, bound, message = _with_highs(model, unknowns, options, budget, clock)
                if ended == "error":
                    again = _with_highs(model, unknowns, otherwise(options), budget, clock)
                    # Without reductions there was a reason: only a point is believed with them.
                    ended, values, bound, message = again if again[1] is not None else (ended, values, bound, message)
            else:
                ended, values, bound, message = self._with_program(model, unknowns, scaled.program.hint, budget, clock)
        except (ApplicationError, PyomoException, RuntimeError, ValueError, OSError) as problem:
            return outcome(program, budget, clock, "error", None, -np.inf, f"pyomo failed: {problem}", version)
        if ended == "unbounded":
            return infeasible_or_unbounded(self.run, program, budget, clock, version)
        point = None if values is None else scaled.point(values)
        real = scaled.value(bound) + program.offset if np.isfinite(bound) else -np.inf
        if ended == "optimal" and real == -np.inf and point is not None:
            real = by_claim(program, point, budget)
        return outcome(program, budget, clock, ended, point, real, message, version)

    def _with_program(
        self, model: Any, unknowns: list[Any], hint: Floats | None, budget: Budget, clock: Clock
    ) -> tuple[Termination, Floats | None, float, str]:
        """A run through Pyomo's file interfaces."""
        import pyomo.environ as pyo

        name, time_option, gap_option, threads, seed = _BACKENDS[self.backend]
        path = _executable(self.backend) or _packaged_cbc()
        if self.backend == "gurobi":
            solver: Any = pyo.SolverFactory("gurobi", solver_io="python")
        else:
            solver = pyo.SolverFactory(name, executable=path)
        solver.options[gap_option] = budget.gap
        if clock.left is not None:
            # GLPK takes whole seconds.
            solver.options[time_option] = max(1, int(clock.left)) if self.backend == "glpk" else clock.left
        if self.backend == "cbc":
            solver.options["integerTolerance"] = MIP_FEASIBILITY
        if threads and budget.workers:
            solver.options[threads] = budget.workers
        if seed and budget.seed:
            solver.options[seed] = budget.seed
        arguments: dict[str, Any] = {"load_solutions": False, "tee": False}
        if hint is not None and self.features.warm_start:
            for unknown, guess in zip(unknowns, hint.tolist(), strict=True):
                if not np.isnan(guess):
                    unknown.set_value(round(guess) if unknown.is_integer() else guess, skip_validation=True)
            arguments["warmstart"] = True
        found = solver.solve(model, **arguments)
        condition = str(found.solver.termination_condition)
        ended: dict[str, Termination] = {
            "optimal": "optimal",
            "infeasible": "infeasible",
            "unbounded": "unbounded",
            "infeasibleOrUnbounded": "unbounded",
            "maxTimeLimit": "time_limit",
            "intermediateNonInteger": "time_limit",  # CBC: stopped before there was an integer point
        }
        reason = ended.get(condition, "error")
        values = None
        if len(found.solution) and reason in ("optimal", "time_limit") and condition != "intermediateNonInteger":
            model.solutions.load_from(found)
            if all(unknown.value is None for unknown in unknowns):
                # Recent CBCs leave the section of rows out when none is left, and Pyomo takes the columns for rows.
                return "error", None, -np.inf, _UNREADABLE.format(self.backend)
            values = _values(unknowns)
        bound = found.problem.lower_bound
        bound = float(bound) if isinstance(bound, (int, float)) else -np.inf
        message = "" if reason != "error" else f"{self.backend} ended with '{condition}': {found.solver.message}"
        return reason, values, bound, message


def _with_highs(
    model: Any, unknowns: list[Any], further: Mapping[str, float | str], budget: Budget, clock: Clock
) -> tuple[Termination, Floats | None, float, str]:
    """A run through Pyomo's own interface to HiGHS."""
    from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition
    from pyomo.contrib.solver.solvers.highs import Highs

    solver: Any = Highs()
    config = solver.config
    config.load_solutions = False
    config.raise_exception_on_nonoptimal_result = False
    config.rel_gap, config.abs_gap, config.time_limit = budget.gap, 0.0, clock.left
    config.threads = budget.workers or None
    config.solver_options = {"random_seed": budget.seed % 2**31, **further}
    found = solver.solve(model)
    codes = TerminationCondition
    ended: dict[Any, Termination] = {
        codes.convergenceCriteriaSatisfied: "optimal",
        codes.provenInfeasible: "infeasible",
        codes.unbounded: "unbounded",
        codes.infeasibleOrUnbounded: "unbounded",
        codes.maxTimeLimit: "time_limit",
        codes.interrupted: "interrupted",
    }
    reason = ended.get(found.termination_condition, "error")
    values = None
    if found.solution_status in (SolutionStatus.optimal, SolutionStatus.feasible):
        found.solution_loader.load_vars()
        values = _values(unknowns)
    bound = -np.inf if found.objective_bound is None else float(found.objective_bound)
    message = "" if reason != "error" else f"HiGHS ended with '{found.termination_condition.name}'"
    return reason, values, bound, message


def _model(program: LinearProgram) -> tuple[Any, list[Any]]:
    """The program as a ConcreteModel, and its variables in the order of the columns."""
    import pyomo.environ as pyo
    from pyomo.core.expr.numeric_expr import LinearExpression

    model: Any = pyo.ConcreteModel()
    lower, upper, integer = program.lower.tolist(), program.upper.tolist(), program.integer.tolist()

    def bounds(_: Any, j: int) -> tuple[float | None, float | None]:
        return (lower[j] if np.isfinite(lower[j]) else None, upper[j] if np.isfinite(upper[j]) else None)

    def domain(_: Any, j: int) -> Any:
        return pyo.Integers if integer[j] else pyo.Reals

    model.x = pyo.Var(range(program.columns), bounds=bounds, domain=domain)
    unknowns = [model.x[j] for j in range(program.columns)]
    start, column = program.start.tolist(), program.column.tolist()
    coefficient, low, high = program.coefficient.tolist(), program.row_lower.tolist(), program.row_upper.tolist()

    def row(_: Any, i: int) -> Any:
        terms = slice(start[i], start[i + 1])
        least = low[i] if np.isfinite(low[i]) else None
        most = high[i] if np.isfinite(high[i]) else None
        if least is None and most is None:
            return pyo.Constraint.Skip
        body = LinearExpression(
            constant=0.0, linear_coefs=coefficient[terms], linear_vars=[unknowns[j] for j in column[terms]]
        )
        return (least, body, most)

    empty = np.diff(program.start) == 0
    model.rows = pyo.Constraint(np.flatnonzero(~empty).tolist(), rule=row)
    if (empty & ((program.row_lower > CONTRADICTION) | (program.row_upper < -CONTRADICTION))).any():
        # Pyomo raises on a row without terms that cannot hold; two rows that contradict each other say the same.
        model.never = pyo.ConstraintList()
        for least, most in ((1.0, None), (None, 0.0)):
            model.never.add((least, LinearExpression(constant=0.0, linear_coefs=[1.0], linear_vars=unknowns[:1]), most))
    used = np.flatnonzero(program.cost).tolist()
    cost = program.cost[used].tolist()
    goal = LinearExpression(constant=0.0, linear_coefs=cost, linear_vars=[unknowns[j] for j in used])
    model.goal = pyo.Objective(expr=goal if used else 0.0)
    return model, unknowns


def _values(unknowns: list[Any]) -> Floats:
    """What was loaded; a variable that a solver left out, because nothing depends on it, takes a bound or zero."""

    def one(unknown: Any) -> float:
        if unknown.value is not None:
            return float(unknown.value)
        return float(min(max(0.0, unknown.lb if unknown.has_lb() else 0.0), unknown.ub if unknown.has_ub() else np.inf))

    return np.array([one(unknown) for unknown in unknowns])


def _executable(backend: str) -> str | None:
    """The solver's program on the PATH."""
    return shutil.which({"glpk": "glpsol"}.get(backend, backend))


def _packaged_cbc() -> str | None:
    """The program that comes with the package cbcbox, which python-mip brings along."""
    import cbcbox  # type: ignore[import-untyped, unused-ignore]

    path = str(cbcbox.cbc_bin_path())
    return path if Path(path).exists() else None
