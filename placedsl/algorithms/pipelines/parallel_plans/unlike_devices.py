"""The plan with the least largest load on devices of several classes, by thresholds; every lower load is refuted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from placedsl.algorithms.ideals.chain_cover import chain_cover
from placedsl.algorithms.ideals.enumeration import ideals
from placedsl.algorithms.pipelines.parallel_plans.instance import Plan, PlanInstance, PlannedStage
from placedsl.algorithms.pipelines.parallel_plans.load_thresholds import PlanResult, least_load
from placedsl.algorithms.pipelines.parallel_plans.plan_terms import NEVER
from placedsl.algorithms.pipelines.parallel_plans.question_kernel import times_sent
from placedsl.algorithms.pipelines.parallel_plans.search import PlanTable, least_busy
from placedsl.algorithms.pipelines.parallel_plans.unlike_devices_kernel import extend
from placedsl.algorithms.pipelines.state_dp import SearchLimits
from placedsl.arrays import Integers

#: More ideals than this are not planned over, nor so many states of all ideals.
MOST_IDEALS, _MOST_STATES = 2_000, 30_000_000


def best_plan(
    instances: Sequence[PlanInstance],
    devices: Sequence[Integers],
    limits: SearchLimits | None = None,
    within: float = np.inf,
) -> PlanResult:
    """The plan whose largest load is least.

    ``instances``: one for each class of like devices, over the same units, with as many devices as there are of all
    classes;  ``devices``: those of each class.  Of the limits, those of stages and the most copies are kept.
    ``within``: a largest load that plans may have.
    """
    limits = limits or SearchLimits()
    if within < 0.0:
        return PlanResult(None, within, True)
    # A class that runs nothing takes no part.
    able = [c for c, instance in enumerate(instances) if len(instance.options.degree)]
    if not able:
        return PlanResult(None, np.inf, True)
    instances, devices = [instances[c] for c in able], [devices[c] for c in able]
    costs = [instance.stage_costs() for instance in instances]
    busy = np.min([least_busy(*one) for one in zip(instances, costs, strict=True)], axis=0)
    if not np.isfinite(busy).all():
        return PlanResult(None, np.inf, True)
    cover = chain_cover(costs[0].units, costs[0].before, costs[0].after)
    if cover is None:
        return PlanResult(None, 0.0, False, True)
    walked = ideals(cover, np.ones(len(busy), dtype=np.int64), most=MOST_IDEALS, deadline=limits.deadline)
    if not walked.complete:
        return PlanResult(None, 0.0, False, walked.too_many)
    tables = [
        PlanTable(instance, own, cover, walked.positions, "time_per_sample", busy)
        for instance, own in zip(instances, costs, strict=True)
    ]
    lowest = float(busy.sum()) / sum(map(len, devices)) * (1.0 - 1e-12)
    if len(walked.positions) * _StateTable.states_of(tables, devices) > _MOST_STATES:
        return PlanResult(None, lowest, False)
    table = _StateTable(tables, devices, limits)
    return least_load(table.ask, limits, lowest, max(one.ceiling() for one in tables), within)


class _StateTable:
    """The states of all ideals, and the questions that are asked of them.

    The class with the most devices is the last one: states have the fewest of it.
    """

    def __init__(self, tables: list[PlanTable], devices: Sequence[Integers], limits: SearchLimits) -> None:
        order = np.argsort([len(own) for own in devices], kind="stable").tolist()
        self.tables, self.devices, self.limits = [tables[c] for c in order], [devices[c] for c in order], limits
        counts = [len(own) for own in self.devices]
        self.total = sum(counts)
        widths = [count + 1 for count in counts[:-1]]
        #: What one more device of a class adds to a position.
        self.stride = [*(prod(widths[:c]) for c in range(len(widths))), 0]
        positions = np.arange(prod(widths))
        digits = [positions // stride % width for stride, width in zip(self.stride, widths, strict=False)]
        self.used = np.sum(digits, axis=0, dtype=np.int64) if digits else np.zeros(1, dtype=np.int64)
        terms = self.tables[0].terms
        shape = (len(terms.weight), terms.most_copies + 1, len(positions))
        self.fewest = np.empty(shape, dtype=np.int32)

    @staticmethod
    def states_of(tables: Sequence[PlanTable], devices: Sequence[Integers]) -> int:
        """How many states each ideal has."""
        counts = sorted(len(own) for own in devices)
        return (tables[0].terms.most_copies + 1) * prod(count + 1 for count in counts[:-1])

    def ask(self, load: float) -> tuple[Plan | None, bool] | None:
        """A plan within a load, or none and whether that is sure; None where a limit was reached before."""
        self.fewest[:] = NEVER
        self.fewest[0, 0, 0] = 0
        last, given_up = len(self.fewest) - 1, 0
        for base in range(last):
            for table, own, stride in zip(self.tables, self.devices, self.stride, strict=True):
                given_up += extend(
                    table.pairs, table.terms, table.knapsacks, load, base, (len(own), stride), self.total, self.fewest,
                    self.used,
                )  # fmt: skip
            if self.limits.passed:
                return None
        reached = self.fewest[last] + self.used
        if int(reached.min()) >= NEVER:
            return None, not given_up
        copies, position = np.unravel_index(int(reached.argmin()), reached.shape)
        return Plan(tuple(self._placed(self._traced(load, last, int(copies), int(position))))), True

    def _traced(self, load: float, goal: int, copies: int, position: int) -> Iterator[tuple[int, PlannedStage]]:
        """The stages of a state with their classes, the input's first."""
        while goal:
            c, base, stage = next(self._last_stages(load, goal, copies, position))
            yield c, stage
            goal, copies = base, copies - stage.copies
            position -= stage.copies * stage.degree * self.stride[c]

    def _last_stages(
        self, load: float, goal: int, copies: int, position: int
    ) -> Iterator[tuple[int, int, PlannedStage]]:
        """The stages that a state may have come from: their class, and the ideal that they begin at."""
        fewest = int(self.fewest[goal, copies, position])
        for c, (table, stride) in enumerate(zip(self.tables, self.stride, strict=True)):
            terms, instance = table.terms, table.instance
            digit = fewest if not stride else position // stride % (len(self.devices[c]) + 1)
            for g, degree in enumerate(instance.degrees):
                for own in instance.copies:
                    taken = own * degree
                    if taken > digit or own > copies:
                        continue
                    before = self.fewest[:goal, copies - own, position - taken * stride]
                    for base in np.flatnonzero(before == fewest - (0 if stride else taken)).tolist():
                        in_flight = -(-(instance.held or copies) // own)
                        if not self._allowed(table, base, goal, g, own, in_flight):
                            continue
                        exchange = float(times_sent(terms.exchange, own))
                        stage = table.stage_within(base, goal, g, own, in_flight, exchange, load)
                        if stage is not None:
                            yield c, base, stage

    @staticmethod
    def _allowed(table: PlanTable, base: int, goal: int, g: int, copies: int, in_flight: int) -> bool:
        """Whether there is such a stage at all."""
        pairs, terms = table.pairs, table.terms
        inside = bool((table.positions[base] <= table.positions[goal]).all())
        if not inside or pairs.unsupported[g, goal] != pairs.unsupported[g, base]:
            return False
        there, bounds = terms.of_kind[goal] > terms.of_kind[base], terms.bounds
        low, high = int(bounds.fewest[there].max(initial=0)), int(bounds.most[there].min(initial=NEVER))
        return low <= copies <= high and in_flight <= int(bounds.in_flight[there].min(initial=NEVER))

    def _placed(self, stages: Iterator[tuple[int, PlannedStage]]) -> Iterator[PlannedStage]:
        """Each stage on the next devices of its class."""
        taken = [0] * len(self.devices)
        for c, stage in stages:
            yield replace(stage, first=int(self.devices[c][taken[c]]))
            taken[c] += stage.copies * stage.degree
