"""A problem as a program over paths: its stages, its rules sorted out, and its devices in classes by the rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from placedsl.algorithms.pipelines.path_program.rule_columns import grounded
from placedsl.algorithms.pipelines.path_program.rule_sorting import sorted_out
from placedsl.algorithms.pipelines.path_program.stage_rules import StageRules
from placedsl.algorithms.pipelines.path_program.stage_table import IdealTable, ideal_table
from placedsl.algorithms.simple_bounds import simple_bound, streamed_bound
from placedsl.algorithms.stages.stage_costs import DeviceClasses, device_classes, stage_costs
from placedsl.algorithms.units import placement_units
from placedsl.arrays import Integers
from placedsl.graph.contraction import Quotient
from placedsl.problem.problem import Problem

#: More classes of devices than this are not told apart.
_MOST_CLASSES = 64


@dataclass(frozen=True, eq=False)
class PathInstance:
    """``members``: of each class of ``kinds`` (a number a device before rules), the refined classes."""

    problem: Problem
    quotient: Quotient
    classes: DeviceClasses
    ideals: IdealTable
    rules: StageRules
    members: dict[int, list[int]]
    least: float

    def placements(self, path: list[tuple[Integers, int]]) -> Iterator[Integers]:
        """The devices of all nodes from units and class of each stage.

        All ways to choose among like devices where a rule that is left out may tell them apart; else one.
        """
        kinds = [kind for _, kind in path]
        ways = [
            permutations(members.tolist(), kinds.count(c))
            for c, members in enumerate(self.classes.devices)
            if kinds.count(c)
        ]
        for chosen in product(*ways) if self.rules.beyond else [tuple(next(way) for way in ways)]:
            left = dict(zip(sorted(set(kinds)), map(iter, chosen), strict=True))
            device = np.full(self.quotient.units, -1, dtype=np.int64)
            for units, kind in path:
                device[units] = next(left[kind])
            yield device[self.quotient.unit_of_node]


def instance(problem: Problem) -> PathInstance | None:
    """The instance; None where there are too many ideals, or too many classes of devices."""
    kinds = problem.interchangeable()
    sample = [int(np.flatnonzero(kinds == k)[0]) for k in range(int(kinds.max()) + 1)]
    quotient = placement_units(problem, contiguous=True, devices=sample)
    layout, ground, beyond = grounded(problem, quotient)
    rules = sorted_out(layout, ground, beyond, kinds, float(problem.graph.memory.sum()))
    refined = _refined(rules, kinds)
    if int(refined.max()) >= _MOST_CLASSES:
        return None
    classes = device_classes(refined, problem.memory_limits, problem.streaming)
    first = [int(members[0]) for members in classes.devices]
    quotient = placement_units(problem, contiguous=True, devices=first)
    ideals = ideal_table(stage_costs(problem.execution.communication)(quotient, classes))
    if ideals is None:
        return None
    members: dict[int, list[int]] = {}
    for c, d in enumerate(first):
        members.setdefault(int(kinds[d]), []).append(c)
    least = max(simple_bound(problem), streamed_bound(problem))
    return PathInstance(problem, quotient, classes, ideals, rules, members, least)


def _refined(rules: StageRules, kinds: Integers) -> Integers:
    """A class a device: alike, and with the same rules."""
    named = {d for rule in rules.general for d in rule.devices}
    known: dict[tuple[object, ...], int] = {}
    out = np.zeros(len(kinds), dtype=np.int64)
    for d, kind in enumerate(kinds.tolist()):
        local = tuple(sorted(one.signature for one in rules.local.get(d, ())))
        joint = tuple(
            (i, *(part.tobytes() for part in row.of_device[d]))
            for i, row in enumerate(rules.joint)
            if d in row.of_device
        )
        common = tuple(
            (i, *(part.tobytes() for part in family.common.of_device[d]))
            for i, family in enumerate(rules.families)
            if family.common is not None and d in family.common.of_device
        )
        out[d] = known.setdefault((kind, d if d in named else -1, local, joint, common), len(known))
    return out
