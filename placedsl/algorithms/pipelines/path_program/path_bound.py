"""Whether the linear relaxation of a box has a path, by prices of its rows and cheapest paths.

Rows ``A path <= b`` with prices p >= 0 that add up to 1 refute a box where the cheapest path costs more than ``p b``
(Lagrangian duality); a mixture of paths that keeps all limits says that no prices do.  Prices come from a master
program over the paths found so far (Kelley's cutting planes, Dantzig and Wolfe's columns).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms.pipelines.path_program.stage_table_kernel import cheapest_path
from placedsl.arrays import Floats, Integers, Integers32
from placedsl.ir.linear_rows import LinearRows
from placedsl.solvers.highs import linear_model

#: Paths that are asked for before it is given up.
_MOST_PATHS = 300
#: The cheapest path has to cost so much more than the limits allow (they are about 1) for a proof.
_PROOF = 1e-9
#: Prices are taken for the best there are where bound and master program differ by this share.
_CLOSE = 1e-2


@dataclass(frozen=True, eq=False)
class Priced:
    """``refuted``: the box has no path (None: not known); ``prices``: K x R, of which the first ``ranking`` are those
    that no mixture of paths had met yet, and the others are the best.  ``paths``: what was asked for, as positions of
    stages, and the ``weights`` of the last mixture of them, which add up to 1 where there is one."""

    refuted: bool | None
    prices: Floats
    ranking: int
    paths: tuple[Integers, ...] = ()
    weights: Floats = field(default_factory=lambda: np.zeros(0))


def priced(
    base: Integers32, goal: Integers32, values: Floats, limits: Floats, nodes: int, *, thorough: bool = False,
    close: float = _CLOSE,
) -> Priced:  # fmt: skip
    """Decide the relaxation of S stages by rising goal with S x R numbers and R limits.

    ``thorough``: the prices are to be the best there are, also where they refute nothing.  ``close``: they are the best
    where bound and master program differ by this share.
    """
    rows = len(limits)
    best, kept, early = -np.inf, list[Floats](), list[Floats]()
    if rows == 0:
        return Priced(False, np.zeros((0, 0)), 0)
    master = _Master(limits)
    prices = np.full(rows, 1.0 / rows)
    feasible: bool | None = None
    paths = list[Integers]()
    for _ in range(_MOST_PATHS):
        cost, path = cheapest_path(base, goal, values @ prices, nodes)
        if not len(path):
            return Priced(True, np.zeros((0, rows)), 0)
        over = float(cost) - float(prices @ limits)
        if over > best:
            best = over
            kept.append(prices)
        if over > _PROOF:
            return Priced(True, np.array(kept[-4:]), len(kept[-4:]))
        paths.append(path)
        violation, new = master.with_path(values[path].sum(axis=0))
        if new is None:
            break
        if violation <= 1e-12 and feasible is None:
            feasible, early = False, [*kept[-3:], prices]
            if not thorough:
                break
        if violation - best < close * max(-best, close) or np.array_equal(new, prices):
            break
        prices = new
    early = early or kept[-4:]
    return Priced(feasible, np.array([*early, *kept[-2:]]), len(early), tuple(paths), master.weights())


class _Master:
    """The least violation, the same of all rows, of a mixture of paths."""

    def __init__(self, limits: Floats) -> None:
        rows = LinearRows()
        count = len(limits)
        self.count = count
        # The violation is counted from -1 on, as columns are not negative.
        rows.at_most(np.arange(count), np.zeros(count, dtype=np.int64), np.full(count, -1.0), limits - 1.0)
        rows.equal(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), np.ones(1))
        self.solver = linear_model(rows, np.ones(1))
        self.solver.setOptionValue("threads", 1)

    def with_path(self, sums: Floats) -> tuple[float, Floats | None]:
        """One more path: the violation, and the prices of the rows (None: the solver failed)."""
        import highspy

        index = np.arange(self.count + 1, dtype=np.int32)
        self.solver.addCol(0.0, 0.0, np.inf, self.count + 1, index, np.append(sums, 1.0))
        self.solver.run()
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return np.inf, None
        dual = np.maximum(-np.array(self.solver.getSolution().row_dual)[: self.count], 0.0)
        total = float(dual.sum())
        violation = float(self.solver.getObjectiveValue()) - 1.0
        return violation, dual / total if total > 0.0 else np.full(self.count, 1.0 / self.count)

    def weights(self) -> Floats:
        """Of each path, in the mixture with the least violation."""
        return np.array(self.solver.getSolution().col_value)[1:]
