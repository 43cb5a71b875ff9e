"""Trees of cases by branch and bound: linear programs whose duals are the multipliers of the leaves."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from placedsl.arrays import Floats
from placedsl.certificates.checked.cases import Program, leaf, whole_numbers
from placedsl.certificates.checked.numbers import RefusedError
from placedsl.certificates.searched.no_proof import NoProofError

#: A tree of more cases than this is given up.
MOST_CASES = 12_000
#: A column this near to a whole number is that number in the solution of a linear program.
_WHOLE = 1e-7
#: Limits are lowered by this share where solvers would take for within them what is not: above their tolerance.
_TIGHTER = 1e-6


def case_tree(program: Program, target: Fraction, seconds: float) -> list[Any]:
    """Cases that prove that no x of a program costs less than ``target``; NoProofError with the reason where there are
    none, or too many."""
    tree = _Tree(program, target, time.monotonic() + seconds)
    cases: list[Any] = [None]
    waiting: list[tuple[int, dict[int, int]]] = [(0, {})]
    while waiting:
        number, fixed = waiting.pop()
        found = tree.leaf_or_column(fixed)
        if isinstance(found, Mapping):
            cases[number] = found
            continue
        if len(cases) + 2 > MOST_CASES:
            raise NoProofError(f"a tree of more than {MOST_CASES:,} cases would be needed")
        cases[number] = [found, len(cases), len(cases) + 1]
        waiting += [(len(cases), {**fixed, found: 0}), (len(cases) + 1, {**fixed, found: 1})]
        cases += [None, None]
    return cases


class _Tree:
    """The linear program in floating point, with rows and columns of about the same size."""

    def __init__(self, program: Program, target: Fraction, deadline: float) -> None:
        from scipy.sparse import csr_array

        self.program, self.target, self.deadline = program, target, deadline
        self.whole = whole_numbers(program)
        entries = [(i, j, float(a)) for i, (row, _) in enumerate(program.rows) for j, a in row.items()]
        index, column, value = (np.array(side) for side in zip(*entries, strict=True)) if entries else ([], [], [])
        rows = len(program.rows)
        self.limit = np.array([float(limit) for _, limit in program.rows])
        cost = np.zeros(program.columns)
        for j, c in program.cost.items():
            cost[j] = float(c)
        # A column without a limit is counted in units of the target, rows and costs in those of their largest entry.
        self.unit = np.ones(program.columns)
        self.unit[list(program.open)] = max(abs(float(target)), 1e-300)
        matrix = csr_array((value, (index, column)), shape=(rows, program.columns), dtype=float)
        matrix = matrix.multiply(self.unit).tocsr()
        largest = abs(matrix).max(axis=1).toarray().ravel() if rows else np.zeros(0)
        self.row_scale: Floats = np.where(largest > 0.0, largest, 1.0)
        self.matrix = matrix.multiply(1.0 / self.row_scale[:, None]).tocsr()
        self.limit /= self.row_scale
        # Rows of amounts with a limit of their own: what solvers round in them decides what is within it.
        amounts = [any(abs(a) != 1 for a in row.values()) and not program.open & row.keys() for row, _ in program.rows]
        self.measured = np.where(amounts, np.abs(self.limit), 0.0)
        self.cost = cost * self.unit
        self.cost_scale = float(np.abs(self.cost).max(initial=0.0)) or 1.0
        self.cost /= self.cost_scale
        self.importance = np.asarray(abs(self.matrix).sum(axis=0)).ravel()[: program.binary]

    def leaf_or_column(self, fixed: Mapping[int, int]) -> dict[str, Any] | int:
        """A leaf that proves the target in its box, or the column whose two cases are next."""
        if time.monotonic() > self.deadline:
            raise NoProofError("the tree of cases would take longer than there is time for")
        low, high = np.zeros(self.program.columns), np.ones(self.program.columns)
        high[list(self.program.open)] = np.inf
        for j, value in fixed.items():
            low[j] = high[j] = value
        # What a solver takes for within a limit is within less of it by more than its tolerance.
        for limit in (self.limit, self.limit - _TIGHTER * self.measured):
            made, x = self._solved(limit, low, high, fixed)
            if made is not None:
                return made
            away = np.minimum(x, 1.0 - x)
            if away.max(initial=0.0) > _WHOLE:
                return int(np.argmax(np.where(away > _WHOLE, np.minimum(away, 0.3) * (1.0 + self.importance), -1.0)))
            if not self.measured.any():
                break
        if not np.isnan(x).any() or len(fixed) == self.program.binary:
            raise NoProofError("the relaxation that the certificate is of does not reach the bound")
        return next(j for j in range(self.program.binary) if j not in fixed)

    def _solved(
        self, limit: Floats, low: Floats, high: Floats, fixed: Mapping[int, int]
    ) -> tuple[dict[str, Any] | None, Floats]:
        """A leaf that proves the target, if there is one, and the solution's binary columns (nan: there is none)."""
        from scipy.optimize import linprog

        found = linprog(self.cost, A_ub=self.matrix, b_ub=limit, bounds=np.stack((low, high), axis=1), method="highs")
        if found.status == 2:
            return self._empty(limit, low, high, fixed), np.full(self.program.binary, np.nan)
        if found.status != 0:
            raise NoProofError("a linear program came to no end")
        made, reach = None, float(self.target) - 1e-5 * abs(float(self.target))
        if found.fun * self.cost_scale >= reach:
            made = self._leaf(1.0, -np.asarray(found.ineqlin.marginals), fixed)
        return made, np.asarray(found.x[: self.program.binary])

    def _leaf(self, weight: float, duals: Floats, fixed: Mapping[int, int]) -> dict[str, Any] | None:
        """The leaf, if it proves the target."""
        used = np.flatnonzero(duals > 1e-13 * max(1.0, float(duals.max(initial=0.0))))
        scaled = duals[used] / self.row_scale[used]
        own = weight / self.cost_scale
        given = [(int(i), float(y)) for i, y in zip(used, scaled, strict=True)]
        if own:
            # Columns without a limit must not have negative costs: the weight is what is corrected.
            for j in self.program.open:
                need = -sum((self.program.rows[i][0].get(j, Fraction(0)) * Fraction(y) for i, y in given), Fraction(0))
                cost = self.program.cost[j]
                if own * cost < need:
                    own = _above(need / cost)
        case = {"weight": own, "rows": [list(one) for one in given]}
        try:
            least = leaf(self.whole, case, fixed)
        except RefusedError:
            return None
        return case if least is None or least >= self.target else None

    def _empty(
        self, limit: Floats, low: Floats, high: Floats, fixed: Mapping[int, int]
    ) -> dict[str, Any] | None:  # fmt: skip
        """A leaf that says that a box holds nothing, if multipliers of doubles show it."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, hstack

        rows = len(limit)
        matrix = hstack((self.matrix, csr_array(-np.ones((rows, 1))))).tocsr()
        bounds = np.stack((np.append(low, 0.0), np.append(high, np.inf)), axis=1)
        cost = np.append(np.zeros(len(low)), 1.0)
        found = linprog(cost, A_ub=matrix, b_ub=limit, bounds=bounds, method="highs")
        return self._leaf(0.0, -np.asarray(found.ineqlin.marginals), fixed) if found.status == 0 else None


def _above(value: Fraction) -> float:
    """The least double that is not below a fraction."""
    out = float(value)
    return out if out >= value else math.nextafter(out, math.inf)
