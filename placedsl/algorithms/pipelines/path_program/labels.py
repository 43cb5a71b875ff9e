"""A path of a box by labels: exact where no label is left out for want of room."""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.pipelines.path_program.label_kernel import Rows, completions, labelled_path
from placedsl.algorithms.pipelines.path_program.path_bound import Priced
from placedsl.algorithms.pipelines.path_program.stage_table import StageTable
from placedsl.arrays import Floats, Integers, Integers32

#: Rows with no more different numbers than this (devices, for one) keep them.
_FEW = 4


def path_by_labels(
    table: StageTable, stages: Integers, values: Floats, limits: Floats, prices: Priced, room: int, most: int
) -> tuple[bool | None, Integers]:
    """Whether there is a path over some stages within R limits (None: not known), and the path.

    ``prices``   of the rows: what no completion pays less for
    ``room``     how many labels are kept at an ideal, of which ``most`` in all are looked at
    """
    found, path = _labelled(
        table.base[stages], table.goal[stages], table.ideals.count, values, limits, prices, room, most
    )
    return {1: True, 0: False}.get(found), stages[path]


def refuted_by_labels(
    table: StageTable, stages: Integers, values: Floats, limits: Floats, prices: Priced, room: int, most: int,
    grid: float, near: float,
) -> bool:  # fmt: skip
    """Whether it is proven that there is no path, by fewer labels: those of a relaxation.

    ``grid``   numbers are lowered to multiples of it
    ``near``   ideals whose work differs by less are one, and of the stages between two of them the least counts
    """
    base, goal, nodes = table.base[stages], table.goal[stages], table.ideals.count
    joined = _joined(table, stages, values, near)
    if joined is not None:
        base, goal, nodes, values = joined
    found, _ = _labelled(base, goal, nodes, _lowered(values, grid), limits, prices, room, most)
    return found == 0


def _labelled(
    base: Integers32, goal: Integers32, nodes: int, values: Floats, limits: Floats, prices: Priced, room: int, most: int
) -> tuple[int, Integers]:
    def ends(costs: Floats) -> Floats:
        """K x columns: the least that each sum grows from each ideal."""
        columns = [completions(base, goal, np.ascontiguousarray(column), nodes) for column in costs.T]
        return np.ascontiguousarray(np.stack(columns, axis=1)) if columns else np.zeros((nodes, 0))

    start = np.searchsorted(goal, np.arange(nodes + 1))
    known = prices.prices
    rows = Rows(values, limits, ends(values), limits + ends(-values), known, ends(values @ known.T), prices.ranking)
    found, path, _ = labelled_path(base, start, rows, room, most)
    return int(found), path


def _joined(
    table: StageTable, stages: Integers, values: Floats, near: float
) -> tuple[Integers32, Integers32, int, Floats] | None:
    """Stages between groups of ideals of nearly the same work, the least of each; None where that relaxes nothing.

    A path of ideals is one of groups: a stage within a group is left out, which is allowed where no sum falls by it.
    """
    work = table.ideals.pairs.unit_sum[0].min(axis=0)
    order = np.argsort(work, kind="stable")
    group = np.zeros(table.ideals.count, dtype=np.int64)
    number, first = 0, -np.inf
    for i in order.tolist():
        if i in (0, table.ideals.count - 1):
            continue
        if work[i] - first > near:
            number, first = number + 1, float(work[i])
        group[i] = number
    group[-1] = number + 1
    base, goal = group[table.base[stages]], group[table.goal[stages]]
    inside = base >= goal
    if number + 2 == table.ideals.count or (values[inside] < 0.0).any() or (base > goal).any():
        return None
    kept = np.flatnonzero(~inside)
    kind = table.kind[stages[kept]]
    by = kept[np.lexsort((kind, base[kept], goal[kept]))]
    key = np.stack([goal[by], base[by], table.kind[stages[by]]])
    begins = np.flatnonzero(np.concatenate(([True], (key[:, 1:] != key[:, :-1]).any(axis=0))))
    least = np.minimum.reduceat(values[by], begins, axis=0)
    return base[by][begins].astype(np.int32), goal[by][begins].astype(np.int32), number + 2, np.ascontiguousarray(least)


def _lowered(values: Floats, grid: float) -> Floats:
    """The numbers lowered to a grid, but for rows that have few different ones."""
    few = np.array([len(np.unique(column)) <= _FEW for column in values.T], dtype=bool)
    return np.ascontiguousarray(np.where(few, values, np.floor(values / grid + 1e-9) * grid))
