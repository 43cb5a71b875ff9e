"""The best plan on devices that are counted by class, by thresholds; every lower load is refuted.

So plans are searched on devices of several classes, and on devices that are all alike where a plan has to have some
number of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from placedsl.algorithms.ideals.chain_cover import chain_cover
from placedsl.algorithms.ideals.enumeration import ideals
from placedsl.algorithms.pipelines.parallel_plans.branching import measured
from placedsl.algorithms.pipelines.parallel_plans.instance import Goal, Plan, PlanInstance, PlannedStage
from placedsl.algorithms.pipelines.parallel_plans.load_thresholds import PlanResult, least_load
from placedsl.algorithms.pipelines.parallel_plans.plan_terms import NEVER
from placedsl.algorithms.pipelines.parallel_plans.question_kernel import times_sent
from placedsl.algorithms.pipelines.parallel_plans.search import PlanTable, least_busy
from placedsl.algorithms.pipelines.parallel_plans.unlike_devices_kernel import extend
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.arrays import Integers

#: More ideals than this are not planned over, nor states of all ideals that take so many bytes.
MOST_IDEALS, _MOST_BYTES = 2_000, 250_000_000
#: The devices of what is not reached, where all are counted and the last class has none.
_NONE = 127
#: A load that may be divided by.
_SMALLEST = 1e-300


def best_plan(
    instances: Sequence[PlanInstance],
    devices: Sequence[Integers],
    limits: SearchLimits | None = None,
    within: float = np.inf,
    goal: Goal = "time_per_sample",
) -> PlanResult:
    """The plan whose largest load is least, or that has the fewest devices, stages or copies.

    ``instances``: one for each class of like devices, over the same units, with as many devices as plans may have of
    all classes;  ``devices``: those of each class.  ``within``: a largest load that plans may have.
    """
    limits = limits or SearchLimits()
    if _required(instances):
        found = best_plan([any_number(one) for one in instances], devices, limits, within, goal)
        return with_devices(instances, devices, limits, within, goal, found)
    return _best(instances, devices, limits, within, goal, 0.0, False)


def with_devices(
    instances: Sequence[PlanInstance],
    devices: Sequence[Integers],
    limits: SearchLimits,
    within: float,
    goal: Goal,
    found: PlanResult,
) -> PlanResult:
    """The same of plans that have some number of devices; ``found``: the best one of any number."""
    if not found.complete or found.plan is None or found.plan.devices >= _required(instances):
        return found
    return _best(instances, devices, limits, within, goal, found.bound if goal == "time_per_sample" else 0.0, True)


def any_number(instance: PlanInstance) -> PlanInstance:
    """The same with plans of any number of devices."""
    limits = instance.limits
    return instance if limits is None or not limits.devices else replace(instance, limits=replace(limits, devices=0))


def _required(instances: Sequence[PlanInstance]) -> int:
    """The fewest devices that plans have to have."""
    return max((one.limits.devices for one in instances if one.limits is not None), default=0)


def _best(
    instances: Sequence[PlanInstance],
    devices: Sequence[Integers],
    limits: SearchLimits,
    within: float,
    goal: Goal,
    lowest: float,
    all_counted: bool,
) -> PlanResult:
    """The best plan, and none of less load than ``lowest``; ``all_counted``: states tell all numbers of devices, and so
    may be required to have some."""
    if within < 0.0:
        return PlanResult(None, within, True)
    # A class that runs nothing takes no part.
    able = [c for c, one in enumerate(instances) if len(one.options.degree) and _load(one) >= 0.0]
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
        return PlanResult(None, lowest, False, walked.too_many)
    tables = [
        PlanTable(instance, own, cover, walked.positions, goal, busy)
        for instance, own in zip(instances, costs, strict=True)
    ]
    lowest = max(lowest, float(busy.sum()) / sum(map(len, devices)) * (1.0 - 1e-12))
    if len(walked.positions) * _StateTable.bytes_of(tables, devices, all_counted) > _MOST_BYTES:
        return PlanResult(None, lowest if goal == "time_per_sample" else 0.0, False)
    table, ceiling = _StateTable(tables, devices, limits, goal, all_counted), max(one.ceiling() for one in tables)
    if goal != "time_per_sample":
        return table.fewest_of(min(within, ceiling))
    return least_load(table.ask, limits, lowest, ceiling, within)


def _load(instance: PlanInstance) -> float:
    """The load that a stage on devices of a class may have."""
    return np.inf if instance.limits is None else instance.limits.load


class _StateTable:
    """The states of all ideals, and the questions that are asked of them.

    The class with the most devices is the last one: states have the fewest of it.  Where all are counted, a class
    without devices is the last one.
    """

    def __init__(
        self, tables: list[PlanTable], devices: Sequence[Integers], limits: SearchLimits, goal: Goal, all_counted: bool
    ) -> None:  # fmt: skip
        order = np.argsort([len(own) for own in devices], kind="stable").tolist()
        self.tables, self.devices, self.limits = [tables[c] for c in order], [devices[c] for c in order], limits
        self.goal, self.all_counted = goal, all_counted
        self.unsure = False  # of the last question: whether a knapsack was given up on
        counts = [len(own) for own in self.devices]
        self.total = min(sum(counts), *(table.instance.devices for table in tables))
        widths = [count + 1 for count in (counts if all_counted else counts[:-1])]
        #: What one more device of a class adds to a position.
        self.stride = [*(prod(widths[:c]) for c in range(len(widths))), *([] if all_counted else [0])]
        positions = np.arange(prod(widths))
        digits = [positions // stride % width for stride, width in zip(self.stride, widths, strict=False)]
        self.used = np.sum(digits, axis=0, dtype=np.int64) if digits else np.zeros(1, dtype=np.int64)
        terms = self.tables[0].terms
        self.layers, self.required = terms.bounds.layers, self.tables[0].limits
        shape = (len(terms.weight) * self.layers, terms.most_copies + 1, len(positions))
        self.fewest = np.empty(shape, dtype=np.int8 if all_counted else np.int32)
        self.never = _NONE if all_counted else NEVER

    @staticmethod
    def bytes_of(tables: Sequence[PlanTable], devices: Sequence[Integers], all_counted: bool) -> int:
        """How many bytes the states of each ideal take."""
        counts, terms = sorted(len(own) for own in devices), tables[0].terms
        positions = prod(count + 1 for count in (counts if all_counted else counts[:-1]))
        return (1 if all_counted else 4) * (terms.most_copies + 1) * terms.bounds.layers * positions

    def fewest_of(self, within: float) -> PlanResult:
        """The plan with the fewest devices, stages or copies within a load."""
        answer = self.ask(within)
        if answer is None or (answer[0] is None and not answer[1]):
            return PlanResult(None, 0.0, False, questions=1)
        plan, exact = answer[0], answer[1] and not self.unsure
        bound = np.inf if plan is None else measured(plan, self.goal) if exact else 0.0
        return PlanResult(plan, bound, exact, questions=1)

    def ask(self, load: float) -> tuple[Plan | None, bool] | None:
        """A plan within a load, or none and whether that is sure; None where a limit was reached before."""
        load = max(load, _SMALLEST)
        self.fewest[:] = self.never
        self.fewest[0, 0, 0] = 0
        given_up, every = 0, self.all_counted or self.tables[0].terms.bounds.every
        asked = (self.total, every, self.never)
        ideals_in_all = len(self.fewest) // self.layers
        for base in range(ideals_in_all - 1):
            for table, own, stride in zip(self.tables, self.devices, self.stride, strict=True):
                given_up += extend(
                    table.pairs, table.terms, table.knapsacks, table.scratch, (load, self._within(table, load)), base,
                    (len(own), stride), asked, self.fewest, self.used,
                )  # fmt: skip
            if self.limits.passed:
                return None
        self.unsure = given_up > 0
        chosen = self._chosen()
        if chosen is None:
            return None, not given_up
        layer, copies, position = chosen
        row = len(self.fewest) - self.layers + layer
        return Plan(tuple(self._placed(self._traced(load, row, copies, position)))), True

    @staticmethod
    def _within(table: PlanTable, load: float) -> float:
        """The load that stages on devices of a class stay within."""
        return max(min(load, _load(table.instance)), _SMALLEST)

    def _chosen(self) -> tuple[int, int, int] | None:
        """The state of all units that is best by the goal, of equal ones that with fewest devices: layer, copies and
        position; None where there is none."""
        last = self.fewest[len(self.fewest) - self.layers :]
        devices = last + self.used
        there = (last < self.never) & (devices >= self.required.devices) & (devices <= self.total)
        fewest, copies = self.required.stages[0], self.required.copies[0]
        there[: fewest if self.layers > 1 else 0] = False
        there[:, :copies] = False
        states = np.nonzero(there)
        if not len(states[0]):
            return None
        taken = devices[states]
        first = {"stages_used": states[0], "copies_used": states[1]}.get(self.goal, taken)
        at = np.lexsort((taken, first))[0]
        return int(states[0][at]), int(states[1][at]), int(states[2][at])

    def _traced(self, load: float, row: int, copies: int, position: int) -> Iterator[tuple[int, PlannedStage]]:
        """The stages of a state with their classes, the input's first."""
        while row:
            c, row, stage = next(self._last_stages(load, row, copies, position))
            yield c, stage
            copies -= stage.copies
            position -= stage.copies * stage.degree * self.stride[c]

    def _last_stages(
        self, load: float, row: int, copies: int, position: int
    ) -> Iterator[tuple[int, int, PlannedStage]]:
        """The stages that a state may have come from: their class, and the row that they begin at."""
        fewest, (goal, layer) = int(self.fewest[row, copies, position]), divmod(row, self.layers)
        layers = [layer - 1] if layer else []
        if layer == self.layers - 1 and self.tables[0].terms.bounds.saturates:
            layers.append(layer)
        for c, (table, stride) in enumerate(zip(self.tables, self.stride, strict=True)):
            terms, instance = table.terms, table.instance
            digit = fewest if not stride else position // stride % (len(self.devices[c]) + 1)
            for g, degree in enumerate(instance.degrees):
                for own in instance.copies:
                    taken = own * degree
                    if taken > digit or own > copies:
                        continue
                    in_flight = -(-(instance.held or copies) // own)
                    exchange = float(times_sent(terms.exchange, own))
                    before = self.fewest[: goal * self.layers, copies - own, position - taken * stride]
                    for source in np.flatnonzero(before == fewest - (0 if stride else taken)).tolist():
                        base, from_layer = divmod(source, self.layers)
                        if from_layer not in layers or not self._allowed(table, base, goal, g, own, in_flight):
                            continue
                        stage = table.stage_within(base, goal, g, own, in_flight, exchange, self._within(table, load))
                        if stage is not None:
                            yield c, source, stage

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
