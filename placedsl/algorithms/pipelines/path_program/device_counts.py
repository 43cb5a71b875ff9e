"""Boxes refuted by how many devices of a group have a stage.

A mixture of paths uses five and a half devices of a kind where a budget allows no sixth one, so that its work fits
where that of no path does.  Where the relaxation of a box has a mixture, the box is therefore divided by the number of
stages on a group of device classes that is farthest from a whole number, and each part is asked again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placedsl.algorithms.pipelines.path_program.instance import PathInstance
from placedsl.algorithms.pipelines.path_program.path_bound import priced
from placedsl.algorithms.pipelines.path_program.path_rows import PathRows
from placedsl.algorithms.pipelines.path_program.stage_table import StageTable
from placedsl.arrays import Floats

#: A number of stages that is nearer to a whole one divides nothing.
_WHOLE = 1e-3

#: A part of a box: the limits of some groups, each with a sign (1: at most, -1: at least) and a number of stages.
Part = tuple[tuple[int, float, int], ...]


def groups(instance: PathInstance) -> list[frozenset[int]]:
    """Device classes whose stages are counted together: those that one rule is about, those that differ by rules alone,
    all of them, and each by itself; the smallest first."""
    first = [int(devices[0]) for devices in instance.classes.devices]
    every = range(len(first))
    found = {frozenset([c]) for c in every} | {frozenset(every)} | {frozenset(m) for m in instance.members.values()}
    found |= {frozenset(c for c in every if first[c] in row.of_device) for row in instance.rules.joint}
    return sorted((group for group in found if group), key=lambda group: (len(group), sorted(group)))


def refuted_by_counts(
    table: StageTable, rows: PathRows, values: Floats, limits: Floats, counted: list[frozenset[int]], most: int,
    over: Callable[[], bool],
) -> bool:  # fmt: skip
    """Whether each of at most ``most`` parts has no mixture of paths; False: that is not known."""
    base, goal, kind = table.base[rows.stages], table.goal[rows.stages], table.kind[rows.stages]
    of_group = np.stack([np.isin(kind, list(group)) for group in counted], axis=1).astype(float)
    parts: list[Part] = [()]
    for _ in range(most):
        part = parts.pop()
        own = [of_group[:, [k]] * (sign / max(count, 1)) for k, sign, count in part]
        within = np.array([sign * count / max(count, 1) for _, sign, count in part])
        known = priced(
            base, goal, np.ascontiguousarray(np.hstack((values, *own))), np.concatenate((limits, within)),
            table.ideals.count, close=0.0,
        )  # fmt: skip
        if known.refuted is None or over():
            return False
        if not known.refuted:
            # The mean of the mixture's paths, weighted.
            mean = known.weights @ np.stack([of_group[path].sum(axis=0) for path in known.paths])
            off = np.abs(mean - np.rint(mean))
            k = len(off) - 1 - int(off[::-1].argmax())
            if off[k] < _WHOLE:
                return False
            low = int(np.floor(mean[k]))
            parts += [(*part, (k, -1.0, low + 1)), (*part, (k, 1.0, low))]
        if not parts:
            return True
    return False
