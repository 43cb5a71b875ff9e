"""Linear programs gathered block by block as triplets, and solved with the HiGHS inside SciPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from placedsl.arrays import Floats, Integers
from placedsl.ir.program import LinearProgram

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class LinearRows:
    """Rows ``lower <= sum of coefficient * column <= upper``; columns need not be known in number beforehand."""

    def __init__(self) -> None:
        self.count = 0
        self._row: list[Integers] = []
        self._column: list[Integers] = []
        self._coefficient: list[Floats] = []
        self._lower: list[Floats] = []
        self._upper: list[Floats] = []

    def add(
        self, row: Integers, column: Integers, coefficient: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any]
    ) -> None:
        """A block of rows, numbered from zero; entries of one row and column add up."""
        self._row.append(row + self.count)
        self._column.append(column)
        self._coefficient.append(np.asarray(coefficient, dtype=float))
        self._lower.append(np.asarray(lower, dtype=float))
        self._upper.append(np.asarray(upper, dtype=float))
        self.count += len(lower)

    def at_most(self, row: Integers, column: Integers, coefficient: Floats, upper: Floats) -> None:
        """A block of rows without lower sides."""
        self.add(row, column, coefficient, np.full(len(upper), -np.inf), upper)

    def equal(self, row: Integers, column: Integers, coefficient: Floats, side: Floats) -> None:
        """A block of equations."""
        self.add(row, column, coefficient, side, side)

    def matrix(self, columns: int) -> csr_array:
        """All rows, over this many columns."""
        from scipy.sparse import coo_array

        row, column = (np.concatenate(parts or [np.zeros(0, dtype=np.int64)]) for parts in (self._row, self._column))
        coefficient = np.concatenate(self._coefficient or [np.zeros(0)])
        return coo_array((coefficient, (row, column)), shape=(self.count, columns)).tocsr()

    def program(self, cost: Floats) -> LinearProgram:
        """Minimise ``cost`` over points of these rows that are not negative."""
        matrix, (low, high) = self.matrix(len(cost)), self.sides()
        none = np.zeros(len(cost), dtype=bool)
        return LinearProgram(
            cost, 0.0, np.zeros(len(cost)), np.full(len(cost), np.inf), none, matrix.indptr, matrix.indices,
            matrix.data, low, high,
        )  # fmt: skip

    def sides(self) -> tuple[Floats, Floats]:
        """The lower and the upper side of each row."""
        return np.concatenate(self._lower or [np.zeros(0)]), np.concatenate(self._upper or [np.zeros(0)])

    def proven_least(self, cost: Floats, most: Floats, *, seconds: float) -> float:
        """A lower bound on the least of ``cost`` over points of these rows with columns between 0 and ``most``; inf if
        there are none, 0 if that was not decided within ``seconds``.

        It is computed from the multipliers of the rows (weak duality), whatever they are worth.
        """
        solved = self.minimise(cost, seconds=seconds)
        if solved.status != 0:
            return np.inf if solved.status == 2 else 0.0
        matrix, (low, high) = self.matrix(len(cost)), self.sides()
        same = (low == high) & np.isfinite(low)
        above, below = np.isfinite(low) & ~same, np.isfinite(high) & ~same
        least_of, most_of = np.zeros(self.count), np.zeros(self.count)  # multipliers of lower and upper sides
        one_sided = np.minimum(solved.ineqlin.marginals, 0.0)
        most_of[below], least_of[above] = one_sided[: below.sum()], -one_sided[below.sum() :]
        most_of[same] = solved.eqlin.marginals
        left = cost - matrix.T @ (most_of + least_of)
        sides = np.where(most_of != 0.0, high, 0.0) @ most_of + np.where(least_of != 0.0, low, 0.0) @ least_of
        return float(sides + np.minimum(left, 0.0) @ most)

    def minimise(
        self, cost: Floats, bounds: Floats | None = None, *, seconds: float | None = None, **options: float
    ) -> Any:
        """The least of ``cost`` over points of these rows: what ``scipy.optimize.linprog`` returns.

        ``bounds``: columns x (lower, upper); None: 0 to infinity.  ``seconds``: the time limit.  ``options`` are those
        of HiGHS.  In what is returned, the inequalities are the rows with an upper side and then those with a lower
        one, both in the order in which they were added; the equations are the rows whose two sides are equal.
        """
        # Not for every run: it takes a fifth of a second to load.
        from scipy.optimize import linprog
        from scipy.sparse import vstack

        matrix, (low, high) = self.matrix(len(cost)), self.sides()
        if seconds is not None:
            options["time_limit"] = seconds
        same = (low == high) & np.isfinite(low)
        above, below = np.isfinite(low) & ~same, np.isfinite(high) & ~same
        return linprog(
            cost, A_ub=vstack((matrix[below], -matrix[above])), b_ub=np.concatenate((high[below], -low[above])),
            A_eq=matrix[same], b_eq=low[same], bounds=(0, None) if bounds is None else bounds, method="highs",
            options=options,
        )  # fmt: skip
