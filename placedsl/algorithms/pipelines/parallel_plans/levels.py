"""The plan with the least largest load over clusters within clusters, whose copies share samples; every lower load is
refuted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from placedsl.algorithms.compilation import kernels_run_compiled
from placedsl.algorithms.ideals.chain_cover import chain_cover
from placedsl.algorithms.ideals.enumeration import ideals
from placedsl.algorithms.pipelines.parallel_plans.instance import Plan, PlanInstance, PlannedStage
from placedsl.algorithms.pipelines.parallel_plans.level_terms import (
    KnownClusters,
    KnownStages,
    LevelStates,
    LevelTerms,
    StageLimits,
)
from placedsl.algorithms.pipelines.parallel_plans.levels_kernel import (
    load_around,
    reach,
    sent_within,
    weights_matter,
)
from placedsl.algorithms.pipelines.parallel_plans.load_thresholds import PlanResult, least_load
from placedsl.algorithms.pipelines.parallel_plans.plan_terms import workspace
from placedsl.algorithms.pipelines.parallel_plans.search import PlanTable
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.stages.cut_edges_kernel import all_stages
from placedsl.algorithms.stages.stage_costs import DeviceClasses, StageCostModel
from placedsl.algorithms.stages.stage_pairs import ideal_sums
from placedsl.arrays import Floats

#: More ideals than this are not planned over: all pairs of them are kept.
MOST_IDEALS = 600
#: Triples, and stages, that there is room for.
_TRIPLES, _KNOWN = 1 << 21, 1 << 20
#: Triples of a level and an ideal at most.
_MOST_TRIPLES = 8192
#: What is known of the insides of clusters: keys, and rows.
_ASKED, _INSIDE = 1 << 17, 1 << 21
#: Ideals that are gone on from before anybody may stop the search, at first; then for some such share of a second.
_LISTENING_S = 0.2


@dataclass(frozen=True, eq=False)
class PlanLevels:
    """Like clusters within like clusters, l levels with that of devices.  e tensors.

    ``size``      devices of an innermost cluster, then clusters of each level in one of the next, or in the machine
    ``crossing``  (l - 1) x e seconds that a tensor takes over the link around a cluster, innermost level first
    ``slower``    l - 1: how much longer a byte takes there than over the link of a device
    """

    size: tuple[int, ...]
    crossing: Floats
    slower: tuple[float, ...]


def best_plan(
    instance: PlanInstance, levels: PlanLevels, limits: SearchLimits | None = None, within: float = np.inf
) -> PlanResult:
    """The plan whose largest load is least.

    ``devices`` of the instance are all there are.  Options of a kind and degree have the same weights.  Of its limits
    those of stages and the most copies are kept.  ``within``: a largest load that plans may have.
    """
    limits = limits or SearchLimits()
    if within < 0.0:
        return PlanResult(None, within, True)
    costs = _with_levels(instance.stage_costs(), levels)
    degrees = len(instance.degrees)
    if not np.isfinite(costs.work[:degrees]).any(axis=0).all():
        return PlanResult(None, np.inf, True)
    cover = chain_cover(costs.units, costs.before, costs.after)
    if cover is None:
        return PlanResult(None, 0.0, False, True)
    walked = ideals(cover, np.ones(costs.units, dtype=np.int64), most=MOST_IDEALS, deadline=limits.deadline)
    if not walked.complete:
        return PlanResult(None, 0.0, False, walked.too_many)
    table = _LevelTable(PlanTable(instance, costs, cover, walked.positions, "time_per_sample"), levels, limits)
    return least_load(table.ask, limits, table.lowest, table.ceiling, within)


def _with_levels(costs: StageCostModel, levels: PlanLevels) -> StageCostModel:
    """With a further class of devices for each level, on which nothing costs but tensors."""
    more = len(levels.crossing)
    classes, none = len(costs.work) + more, np.zeros((1, more, costs.units))

    def beside(of_degrees: Floats, of_levels: Floats) -> Floats:
        return np.concatenate((of_degrees, of_levels), axis=1)

    return replace(
        costs,
        classes=DeviceClasses((1,) * classes, (np.inf,) * classes, (np.zeros(1, dtype=np.int64),) * classes),
        work=np.concatenate((costs.work, np.full(none.shape[1:], np.inf))), unit_cost=beside(costs.unit_cost, none),
        input_cost=beside(costs.input_cost, levels.crossing[None]),
        output_cost=beside(costs.output_cost, levels.crossing[None]), limit=np.full((1, classes), np.inf),
    )  # fmt: skip


class _LevelTable:
    """The ideals of an instance with their sums, and the questions that are asked of them."""

    def __init__(self, table: PlanTable, levels: PlanLevels, limits: SearchLimits) -> None:
        self.plain, self.levels, self.limits = table, levels, limits
        instance, flat, pairs = table.instance, table.terms, table.pairs
        count, degrees, most = len(pairs.weight), len(instance.degrees), flat.most_copies
        inside = np.zeros((count, count), dtype=np.bool_)
        edges = np.zeros((count, count, degrees + len(levels.crossing)))
        all_stages(pairs, inside, edges)
        allowed, multiple = np.zeros(most + 1, dtype=np.bool_), np.zeros(most + 1, dtype=np.bool_)
        for copies in (r for r in instance.copies if r <= most):
            allowed[copies] = True
            multiple[[m for m in range(1, copies + 1) if copies % m == 0]] = True
        depth = len(levels.size)
        self.devices = np.array([prod(levels.size[:k]) for k in range(depth)], dtype=np.int64)
        self.terms = LevelTerms(
            inside, edges, pairs.unsupported[:degrees], flat.weight,
            np.ascontiguousarray(pairs.unit_sum[0, :degrees]), flat.weights, *self._weight_limits(), flat.sharded,
            flat.table, flat.of_kind, flat.degree, allowed, multiple, np.array(levels.size, dtype=np.int64),
            self.devices, np.array([1.0, *levels.slower]), most, instance.capacity, flat.exchange, instance.held,
            StageLimits(flat.bounds.fewest, flat.bounds.most, flat.bounds.in_flight, flat.bounds.of_kinds),
        )  # fmt: skip
        shape = (depth, count, min(_MOST_TRIPLES, _TRIPLES // (depth * count)))
        whole, real = np.zeros(shape, dtype=np.int32), np.zeros(shape)
        self.states = LevelStates(
            np.zeros(shape[:2], dtype=np.int32), whole, whole.copy(), real,
            whole.copy(), whole.copy(), whole.copy(), whole.copy(), real.copy(),
        )  # fmt: skip
        kinds = np.zeros(instance.kinds, dtype=np.int64)
        self.known = KnownStages(
            np.full(_KNOWN, -1, dtype=np.int64), np.zeros(_KNOWN, dtype=np.int32), np.zeros(_KNOWN, dtype=np.int32),
            workspace(flat.table), kinds, kinds.copy(), np.zeros(2, dtype=np.int64),
        )  # fmt: skip
        self.inner = KnownClusters(
            np.full(_ASKED, -1, dtype=np.int64), np.zeros(_ASKED, dtype=np.int64), np.zeros(_ASKED, dtype=np.int64),
            np.zeros(_INSIDE, dtype=np.int32), np.zeros(_INSIDE, dtype=np.int32), np.zeros(_INSIDE),
            np.zeros(2, dtype=np.int64),
        )  # fmt: skip
        self.load = 0.0

    def _weight_limits(self) -> tuple[Floats, Floats]:
        """K: the least and the most that the weights of a copy can be, from all its devices."""
        plain, given = self.plain, self.plain.instance.options
        scaled = given.weights * given.degree
        least, most = plain.instance.least(scaled).min(axis=0), -plain.instance.least(-scaled)
        most = np.where(np.isfinite(most), most, 0.0).max(axis=0)
        low, high = (ideal_sums(plain.cover, plain.positions, np.where(np.isfinite(x), x, 0.0)) for x in (least, most))
        return low, high

    @property
    def lowest(self) -> float:
        """A load that every plan has."""
        return float(self.terms.weight[-1]) / self.plain.instance.devices * (1.0 - 1e-12)

    @property
    def ceiling(self) -> float:
        """A load that no device of a plan exceeds, and no link around it."""
        tensors = 2.0 * float(self.levels.crossing.sum())
        weights = self.terms.exchange.traffic * float(self.terms.heaviest[-1]) * float(self.terms.slower.max())
        return self.plain.ceiling() + 1.0000001 * (tensors + weights)

    def ask(self, load: float) -> tuple[Plan | None, bool] | None:
        """A plan within a load, or none and whether that is sure; None where a limit was reached before."""
        self.known.key[:], self.known.seen[:], self.load = -1, 0, load
        self.inner.key[:], self.inner.used[:] = -1, 0
        top, last = len(self.levels.size) - 1, len(self.terms.weight) - 1
        begin, chunk = 0, 8 if kernels_run_compiled() else 1
        while begin < last:
            began = time.monotonic()
            self._reach(top, 0, 0, 1, False, begin, begin + chunk)
            if self.limits.passed:
                return None
            begin += chunk
            chunk = 2 * chunk if time.monotonic() - began < _LISTENING_S / 4 else max(1, chunk // 2)
        used = self.states.used[top, last, : self.states.number[top, last]]
        if not len(used):
            return None, not self.known.seen.any()
        return Plan(tuple(self._traced(top, 0, 0, 1, False, last, int(used.argmin()), 0))), True

    def _reach(self, level: int, first: int, behind: int, around: int, weighed: bool, begin: int, end: int) -> None:
        reach(
            self.terms,
            self.states,
            self.known,
            self.inner,
            self.load,
            level,
            first,
            behind,
            around,
            weighed,
            begin,
            end,
        )

    def _traced(
        self, level: int, first: int, behind: int, around: int, weighed: bool, goal: int, state: int, place: int
    ) -> Iterator[PlannedStage]:
        """The stages that a triple stands for, the input's first; ``place``: the first device that they have."""
        states, parts = self.states, []
        while goal != first:
            at = level, goal, state
            base, before = int(states.base[at]), int(states.state[at])
            parts.append((
                base, goal, int(states.choice[at]), int(states.part[at]), float(states.part_weights[at]),
                int(states.copies[level, base, before]), int(states.copies[at]),
            ))  # fmt: skip
            goal, state = base, before
        for base, goal, choice, part, weights, before, copies in parts:
            if level == 0:
                yield replace(self._stage(base, goal, choice, part, around, behind + around * copies), first=place)
                place += part * self.plain.instance.degrees[choice]
                continue
            inner, start = around * choice, 0
            if not self.terms.held:
                start = -(-(behind + around * before) // inner) * inner
            weigh = weighed or (choice > 1 and bool(weights_matter(self.terms, self.load, level, base, choice, around)))
            self._reach(level - 1, base, start, inner, weigh, base, len(self.terms.weight))
            own = level - 1, goal, slice(int(states.number[level - 1, goal]))
            same = (states.copies[own] == part) & (states.weights[own] == weights)
            within = self._traced(level - 1, base, start, inner, weigh, goal, int(np.flatnonzero(same)[0]), place)
            edges = float(self.terms.edges[base, goal, len(self.terms.degree) + level - 1])
            stages = list(within)
            sent = self._weights(stages) * float(self.terms.slower[level])
            load = float(load_around(self.terms.exchange, choice, around, edges, sent))
            for stage in stages:
                yield replace(stage, load=max(stage.load, load), across=(*stage.across, choice))
            place += choice * int(self.devices[level])

    def _weights(self, stages: list[PlannedStage]) -> float:
        """Seconds to send the weights of a copy of each stage, from all its devices, over the link of one device."""
        given = self.plain.instance.options.weights
        return sum(stage.degree * float(given[list(stage.option.values())].sum()) for stage in stages)

    def _stage(self, base: int, goal: int, g: int, own: int, around: int, together: int) -> PlannedStage:
        copies = own * around
        in_flight = -(-(self.plain.instance.held or together) // copies)
        exchange = float(sent_within(self.terms.exchange, own, around))
        return self.plain.stage_with_options(base, goal, g, copies, in_flight, exchange, self.load)
