"""A solver: ``scipy.optimize.milp``, which is given the rows as one sparse matrix."""

import numpy as np

from placedsl.budget import Budget
from placedsl.ir.program import LinearProgram
from placedsl.solvers.equilibration import conditioned
from placedsl.solvers.interface import Features, Outcome, Progress
from placedsl.solvers.outcome import Clock, infeasible_or_unbounded, installed_version, outcome, without_terms

#: What the status codes of SciPy say.
REASONS = {0: "optimal", 1: "time_limit", 2: "infeasible", 3: "unbounded"}


class ScipyMilp:
    """SciPy's mixed-integer solver; it tells nothing while it runs."""

    features = Features("scipy-milp", "scipy", note="scipy.optimize.milp, an example of a plug-in")

    def available(self) -> str | None:
        """The installed version of SciPy, or None."""
        return installed_version("scipy")

    def run(self, program: LinearProgram, budget: Budget, progress: Progress) -> Outcome:
        """Solve in one call."""
        clock, version = Clock.start(budget), self.available() or ""
        trivial = without_terms(program, budget, version)
        if trivial is not None:
            return trivial
        from scipy import optimize, sparse

        scaled = conditioned(program)
        p = scaled.program
        matrix = sparse.csr_array((p.coefficient, p.column, p.start), shape=(p.rows, p.columns))
        found = optimize.milp(
            p.cost,
            integrality=p.integer.astype(int),
            bounds=optimize.Bounds(p.lower, p.upper),
            constraints=optimize.LinearConstraint(matrix, p.row_lower, p.row_upper),
            options={"mip_rel_gap": budget.gap, **({} if clock.left is None else {"time_limit": clock.left})},
        )
        reason = REASONS.get(found.status, "error")
        if reason == "unbounded":
            return infeasible_or_unbounded(self.run, program, budget, clock, version)
        point = None if found.x is None else scaled.point(found.x)
        proven = getattr(found, "mip_dual_bound", None)
        bound = -np.inf if proven is None else scaled.value(proven + p.offset)
        return outcome(program, budget, clock, reason, point, bound, found.message, version)
