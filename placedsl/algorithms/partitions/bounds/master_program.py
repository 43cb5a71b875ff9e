"""The master program of the partition bound: by which factor the devices would have to be multiplied, for the columns
known.

    minimise theta:   every unit is covered exactly once by the columns used; at most theta * count columns are used for
                      each device class, and they take at most the memory of theta * count devices

Its duals are prices of the units, and for each class of a device and of its memory.  Units are aggregated to groups
that are covered as one, in proportion to their work: fewer rows, and duals that converge sooner.  Any prices give a
valid bound; groups only weaken it, and are refined where they weaken it too much.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placedsl.algorithms.partitions.bounds.relaxation import Relaxation
from placedsl.arrays import Floats, Integers
from placedsl.ir.linear_rows import LinearRows
from placedsl.solvers.highs import linear_model

#: Limit on the iterations of the simplex method; some hundred are usual.
ITERATIONS = 50_000


@dataclass(frozen=True, eq=False)
class Duals:
    """Prices of the units (u), and for each device class of a device and of its memory.  ``needed``: the value theta;
    ``loose``: units stay uncovered, at the price of the box of the duals.
    """

    unit: Floats
    device: Floats
    memory: Floats
    needed: float
    loose: bool


def unit_groups(relaxed: Relaxation, most: int) -> Integers:
    """The group of each unit, at most ``most`` groups: joined along the most expensive hyperedges, none far above its
    share of the work.
    """
    units = relaxed.units
    root = list(range(units))

    def find(unit: int) -> int:
        while root[unit] != unit:
            root[unit] = root[root[unit]]
            unit = root[unit]
        return unit

    weight = base_prices(relaxed)
    limit = float(weight.sum()) / most
    weight = weight.copy()
    links = sorted(
        (-cost / (len(pins) - 1), pins[0], other)
        for device in relaxed.classes
        for pins, cost in zip(device.edges.pins, device.edges.cost.tolist(), strict=True)
        for other in pins[1:]
    )
    count = units
    for growth in (0.25, 0.5, 1.0, 2.0, 4.0, np.inf):
        for _, one, other in links:
            if count <= most:
                break
            a, b = find(one), find(other)
            if a != b and weight[a] + weight[b] <= growth * limit:
                root[a] = b
                weight[b] += weight[a]
                count -= 1
    label: dict[int, int] = {}
    return np.array([label.setdefault(find(unit), len(label)) for unit in range(units)], dtype=np.int64)


def base_prices(relaxed: Relaxation) -> Floats:
    """The initial prices: the least work of each unit, as a share of the total."""
    least = np.min([device.work for device in relaxed.classes], axis=0)
    total = float(least.sum())
    return least / total if total > 0 else np.full(relaxed.units, 1.0 / relaxed.units)


@dataclass(eq=False)
class MasterProgram:
    """A master program in HiGHS.  The duals stay within ``box`` times (share + 1 / groups) of those in ``centre``."""

    relaxed: Relaxation
    group: Integers
    centre: Floats
    box: float
    _known: set[tuple[int, bytes]] = field(init=False, default_factory=set)
    _solver: Any = field(init=False)
    _share: Floats = field(init=False)
    _slacks: int = field(init=False)
    #: An upper limit on its entries: columns times rows.
    size: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        groups, classes = int(self.group.max()) + 1, self.relaxed.classes
        base = base_prices(self.relaxed)
        weight = np.bincount(self.group, weights=base, minlength=groups)
        size = np.bincount(self.group, minlength=groups)
        self._share = np.where(
            weight[self.group] > 0, base / np.maximum(weight[self.group], 1e-300), 1 / size[self.group]
        )
        # Columns: theta, then what is missing and what is too much of each group.
        self._slacks = 2 * groups
        slack_of, sign = np.repeat(np.arange(groups), 2), np.tile((1.0, -1.0), groups)
        centre = np.bincount(self.group, weights=self.centre, minlength=groups)
        reach = self.box * (weight + 1.0 / groups)
        rows = LinearRows()
        rows.equal(slack_of, 1 + np.arange(self._slacks), sign, np.ones(groups))
        for _ in range(2):  # how many devices are used, and their memory
            count = np.array([float(device.count) for device in classes])
            rows.at_most(np.arange(len(classes)), np.zeros(len(classes), dtype=np.int64), -count, 0.0 * count)
        self._solver = linear_model(rows, np.append(1.0, reach[slack_of] + sign * centre[slack_of]))
        self._solver.setOptionValue("threads", 1)
        self._solver.setOptionValue("simplex_iteration_limit", ITERATIONS)

    def add(self, column: Floats, class_index: int) -> bool:
        """Add a column (u shares) for a device class; returns whether it was new."""
        groups = int(self.group.max()) + 1
        covered = np.bincount(self.group, weights=self._share * column, minlength=groups)
        device = self.relaxed.classes[class_index]
        held = float(device.memory @ column)
        key = (class_index, np.append(covered, held).tobytes())
        if key in self._known:
            return False
        self._known.add(key)
        self.size += groups
        rows = np.flatnonzero(covered)
        limits = (groups + class_index, groups + len(self.relaxed.classes) + class_index)
        index = np.append(rows, limits).astype(np.int32)
        self._solver.addCol(0.0, 0.0, np.inf, len(index), index, np.append(covered[rows], (1.0, held)))
        return True

    def solve(self) -> Duals | None:
        """The duals of the optimum; None if the solver does not reach it."""
        import highspy

        solver, groups, classes = self._solver, int(self.group.max()) + 1, len(self.relaxed.classes)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = solver.getSolution()
        dual = np.array(solution.row_dual)
        uncovered = float(np.abs(np.array(solution.col_value)[1 : 1 + self._slacks]).sum())
        device, memory = (np.maximum(-part, 0.0) for part in np.split(dual[groups:], 2))
        assert len(device) == classes
        return Duals(
            dual[:groups][self.group] * self._share, device, memory, float(solver.getObjectiveValue()), uncovered > 1e-9
        )
