"""The plan with the least largest load, by thresholds; every lower load is refuted."""

from __future__ import annotations

import time
from copy import copy
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from placedsl.algorithms.compilation import kernels_run_compiled
from placedsl.algorithms.ideals.chain_cover import ChainCover, chain_cover
from placedsl.algorithms.ideals.enumeration import ideals
from placedsl.algorithms.pipelines.parallel_plans.cheap_cuts import cheapest_cuts
from placedsl.algorithms.pipelines.parallel_plans.coarse import coarse
from placedsl.algorithms.pipelines.parallel_plans.goals_kernel import reaching
from placedsl.algorithms.pipelines.parallel_plans.instance import (
    ANY_NUMBER,
    Goal,
    Plan,
    PlanInstance,
    PlanLimits,
    PlannedStage,
)
from placedsl.algorithms.pipelines.parallel_plans.kept_searches import AskedLoads, kept_searches
from placedsl.algorithms.pipelines.parallel_plans.knapsack_kernel import options_within, time_within
from placedsl.algorithms.pipelines.parallel_plans.least_transfers import least_transfers
from placedsl.algorithms.pipelines.parallel_plans.like_stages import like_stages
from placedsl.algorithms.pipelines.parallel_plans.load_thresholds import CLOSE, PlanResult, least_load
from placedsl.algorithms.pipelines.parallel_plans.option_rows import alike_weights, quickest_rows, smallest_bytes
from placedsl.algorithms.pipelines.parallel_plans.options import YES, Demand
from placedsl.algorithms.pipelines.parallel_plans.plan_terms import (
    BATCH,
    NEVER,
    ROUND,
    SAMPLE,
    Exchanges,
    Knapsacks,
    ListedStages,
    PlanTerms,
    Reached,
    Scratch,
    as_reached,
    bounds_of,
    kept_stages,
    kept_swaps,
    room_to_list,
    scratch_for,
    workspace,
)
from placedsl.algorithms.pipelines.parallel_plans.plan_value_kernel import largest_load
from placedsl.algorithms.pipelines.parallel_plans.question_kernel import times_sent, within
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.stages.cut_edges_kernel import edge_costs
from placedsl.algorithms.stages.stage_costs import StageCostModel
from placedsl.algorithms.stages.stage_pairs import all_stage_pairs, between, ideal_sums
from placedsl.arrays import Floats, Integers32

#: More ideals than this are not planned over.
MOST_IDEALS = 40_000
_PERIODS = {"sample": SAMPLE, "round": ROUND, "batch": BATCH}
_PARTS = 2**44
#: A load that may be divided by.
_SMALLEST = 1e-300
#: With more ideals than this the first plan is one of groups of so many units each, if that makes enough groups.
_MANY_IDEALS, _COARSER, _GROUPS = 400, 4, 24
#: With so many ideals a unit, questions about more than what is needed take much longer than others.
_WIDE = 8
#: Ideals that are gone on from before anybody may stop the search, at first; then for some such share of a second.
_CHUNK, _LISTENING_S = 64, 0.2
#: With so many ideals, and stages that a question has listed, there is first a plan over ideals that are cheap to cut,
#: as near to the best one of these.
_MANY_TO_CUT, _MANY_LISTED, _NEAR = 5_000, 100_000, 1e-4
#: With so few kinds the smallest options are summed up as they are asked for; of more there is a table, up to a size.
_FEW_KINDS, _LARGEST_TABLE = 8, 4_000_000
_DISAGREE = "the sums of a stage and its options disagree"


def best_plan(
    instance: PlanInstance,
    limits: SearchLimits | None = None,
    goal: Goal = "time_per_sample",
    within: float = np.inf,
    near: float = 0.0,
) -> PlanResult:
    """The plan whose largest load is least, or that has the fewest devices, stages or copies.

    ``within``: a largest load that plans may have; where there is none, the result has no plan and it as its bound.
    ``near``: how near to its bound the largest load has to be, relatively.
    """  # fmt: skip
    limits = limits or SearchLimits()
    if within < 0.0:
        return PlanResult(None, within, True)
    kept = kept_searches() if goal == "time_per_sample" else None
    search = kept.of(instance) if kept is not None else None
    if search is not None:
        assert isinstance(search.table, PlanTable)
        known = _first_plan(instance, limits, goal, within, len(search.table.positions))
        return search.table.of_devices(instance.devices).best(limits, within, known, near, search.asked)
    costs = instance.stage_costs()
    supported = np.isfinite(costs.work).any(axis=0)
    if not supported.all():
        return PlanResult(None, np.inf, True)
    cover = chain_cover(costs.units, costs.before, costs.after)
    if cover is None:
        return PlanResult(None, 0.0, False, True)
    walked = ideals(cover, np.ones(costs.units, dtype=np.int64), most=MOST_IDEALS, deadline=limits.deadline)
    if not walked.complete:
        return PlanResult(None, 0.0, False, walked.too_many)
    known = _first_plan(instance, limits, goal, within, len(walked.positions))
    table = PlanTable(instance, costs, cover, walked.positions, goal)
    if goal != "time_per_sample":
        return table.fewest(limits, within)
    return table.best(limits, within, known, near, None if kept is None else kept.keep(instance, table).asked)


def _first_plan(instance: PlanInstance, limits: SearchLimits, goal: Goal, within: float, ideals: int) -> Plan | None:
    """A plan of groups of units, where there are many of them; None where the search begins without one."""
    if goal != "time_per_sample" or within < np.inf or instance.units < _COARSER * _GROUPS or ideals <= _MANY_IDEALS:
        return None
    return best_plan(coarse(instance, instance.units // _COARSER), _of_others(limits), near=CLOSE).plan


def _of_others(limits: SearchLimits) -> SearchLimits:
    """The same for a search among some of the plans only, whose bound is none of all of them."""
    told = limits.told
    return limits if told is None else replace(limits, told=lambda plan, _: told(plan, 0.0))


class PlanTable:
    """The ideals of an instance with their sums, and the questions that are asked of them."""

    def __init__(
        self, instance: PlanInstance, costs: StageCostModel, cover: ChainCover, positions: np.ndarray, goal: Goal,
        busy: Floats | None = None,
    ) -> None:  # fmt: skip
        """``busy``: u seconds that units keep devices busy at least, by which ideals are ordered; default: on these."""
        self.instance, self.costs, self.cover, self.goal = instance, costs, cover, goal
        self.most_listed = -np.inf
        self.unsure = False  # of the last question: whether a knapsack was given up on
        self.limits = instance.limits or PlanLimits.none(instance.kinds)
        #: The option (its position) of each row of the table, and its degree and kind as one number.
        self.row, self.keys = instance.rows_by_degree()
        self.table = instance.option_table(self.row, self.keys)
        busy = least_busy(instance, costs) if busy is None else busy
        whole = float(busy.sum())
        parts = np.rint(busy / whole * _PARTS).astype(np.int64) if whole > 0.0 else np.zeros(costs.units, np.int64)
        self.pairs, self.positions = all_stage_pairs(costs, cover, positions, parts)
        one_hot = (instance.kind == np.arange(instance.kinds)[:, None]).astype(float)
        of_kind = instance.of_units(one_hot).astype(np.int32)
        most = min(instance.devices, self.limits.copies[1] or ANY_NUMBER, 2**20)
        if not instance.held:
            most = min(most, instance.microbatches)
        most_held = min(max(instance.held, most), 2**20)
        allowed = [r for r in instance.copies if r <= most]
        after = np.zeros(most + 3, dtype=np.int64)
        for copies in reversed(allowed):
            after[: copies + 1] = copies

        def sums(values: Floats) -> Floats:
            """Over each ideal, of an entry a unit, 0 where it is not supported."""
            of_ideals: Floats = ideal_sums(cover, self.positions, np.where(np.isfinite(values), values, 0.0))
            return of_ideals

        by_kind, options = quickest_rows(instance, self.table, self.keys), instance.options
        quickest = by_kind[:, instance.kind]
        weights, sharded, stash, memory, *fewest = sums(np.stack([
            instance.least(options.weights), instance.least(options.sharded),
            *(instance.of_units(np.where(quickest >= 0, of[quickest], 0.0))
              for of in (self.table.stash, self.table.memory)),
            *(instance.least(options.stash * y + options.memory) for y in (1, 2)),
        ]))  # fmt: skip
        of_ideals = np.ascontiguousarray(ideal_sums(cover, self.positions, of_kind).T)
        self.like = like_stages(of_ideals)
        smallest = np.zeros((0, 0, 0))
        few = instance.kinds <= _FEW_KINDS or self.like.tells
        if not few and len(instance.degrees) * most_held * max(len(positions), instance.units) <= _LARGEST_TABLE:
            smallest = sums(smallest_bytes(instance, self.table, self.keys, most_held + 1))
        transfers = least_transfers(self.pairs, costs, cover, self.positions, instance.degrees)
        self.terms = PlanTerms(
            self.table, of_ideals,
            np.array(instance.degrees, dtype=np.int64), after, instance.devices, most, instance.capacity,
            Exchanges(_PERIODS[instance.exchange], instance.traffic, instance.microbatches), sums(busy),
            transfers, reaching(transfers) if self.wide else np.zeros((0, 0), dtype=np.uint64), weights,
            sharded, stash, memory, alike_weights(self.table, self.keys), smallest, np.stack(fewest),
            bounds_of(self.limits, costs.units, goal, instance.held, most_held),
        )  # fmt: skip
        self._kept = kept_swaps(self.table, by_kind, most_held + 1)

    @property
    def wide(self) -> bool:
        """Whether there are many ideals a unit."""
        return len(self.positions) > _WIDE * self.instance.units

    @cached_property
    def reached(self) -> Reached:
        """Room for the states of a question."""
        rows = (len(self.positions) * self.terms.bounds.layers, self.terms.most_copies + 1)
        return Reached(np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int64))

    @cached_property
    def listed(self) -> list[ListedStages]:
        """Stages that matter for loads up to ``most_listed``, and room for those of a question."""
        ideals = 0 if len(self.knapsacks.stages.inside) else len(self.positions)
        return [room_to_list(ideals), room_to_list(ideals)]

    @cached_property
    def scratch(self) -> Scratch:
        """Room for what is known while a question is answered."""
        return scratch_for(self.terms, self.pairs)

    @cached_property
    def knapsacks(self) -> Knapsacks:
        """What questions keep for those to come."""
        stages = kept_stages(self.pairs, len(self.instance.degrees))
        return Knapsacks(workspace(self.table), self._kept, self.like, stages)

    def fewest(self, limits: SearchLimits, within: float) -> PlanResult:
        """The plan with the fewest devices, stages or copies within a load."""
        answer = self._plan_within(min(within, self.ceiling()), limits)
        if answer is None or (answer[0] is None and not answer[1]):
            return PlanResult(None, 0.0, False, questions=1)
        plan, exact = answer[0], answer[1] and not self.unsure
        bound = np.inf if plan is None else 0.0 if not exact else float(self._amount(plan))
        return PlanResult(plan, bound, exact, questions=1)

    def _amount(self, plan: Plan) -> int:
        """What the goal counts."""
        match self.goal:
            case "devices_used":
                return plan.devices
            case "stages_used":
                return len(plan.stages)
        return sum(stage.copies for stage in plan.stages)

    def of_devices(self, devices: int) -> PlanTable:
        """The same for no more devices than there are here."""
        knapsacks = self.knapsacks
        out = copy(self)
        out.most_listed = -np.inf
        for room in ("reached", "scratch", "listed"):
            out.__dict__.pop(room, None)
        out.__dict__["knapsacks"] = knapsacks
        out.instance = replace(self.instance, devices=devices)
        out.terms = self.terms._replace(devices=devices, most_copies=min(self.terms.most_copies, devices))
        return out

    def best(
        self, limits: SearchLimits, within: float, known: Plan | None, near: float, asked: AskedLoads | None = None
    ) -> PlanResult:  # fmt: skip
        """The plan with the least largest load; ``asked``: what is known of loads, and is added to."""
        devices = self.instance.devices
        lowest = float(self.terms.weight[-1]) / devices * (1.0 - 1e-12)

        def ask(load: float) -> tuple[Plan | None, bool] | None:
            answer = self._plan_within(load, limits)
            if asked is not None and answer is not None:
                asked.add(load, devices, answer[0], not self.unsure)
            return answer

        if asked is not None:
            lowest, earlier = max(lowest, asked.refuted(devices)), asked.plan(devices)
            known = earlier if known is None or (earlier is not None and earlier.value < known.value) else known
        shortcut = partial(self._over_cheap_cuts, limits) if self.wide else None
        found = least_load(ask, limits, lowest, self.ceiling(), within, known, near, devices, shortcut)
        assert found.plan is None or found.plan.stages  # which are worked out here, or never
        return found

    def _over_cheap_cuts(self, limits: SearchLimits) -> Plan | None:
        """A plan whose stages end where that is cheap, once a question has listed many stages."""
        number = self.listed[1].number[0]
        if len(self.positions) < _MANY_TO_CUT or 0 <= number < _MANY_LISTED:
            return None
        cut = self.terms.transfers.ahead + self.terms.transfers.behind
        rows = cheapest_cuts(self.terms.weight, cut)
        if len(rows) == len(self.positions):
            return None
        positions = self.positions[rows]
        few = PlanTable(self.instance, self.costs, self.cover, positions, self.goal)
        return few.best(_of_others(limits), np.inf, None, _NEAR).plan

    def ceiling(self) -> float:
        """A load that no stage exceeds."""
        slowest = np.zeros(self.instance.kinds)
        np.maximum.at(slowest, self.instance.options.kind, self.instance.options.time)
        heaviest = np.zeros(self.instance.kinds)
        np.maximum.at(heaviest, self.instance.options.kind, self.instance.options.weights)
        count = np.bincount(self.instance.kind, minlength=self.instance.kinds)
        exchange = self.instance.traffic * max(1.0, float(max(self.instance.copies)))
        edges = float((self.instance.input_cost + self.instance.output_cost).max(axis=0, initial=0.0).sum())
        return 1.0000001 * float((count * (slowest + exchange * heaviest)).sum() + edges) + _SMALLEST

    def _plan_within(self, load: float, limits: SearchLimits) -> tuple[Plan | None, bool] | None:
        """A plan within a load, or none and whether that is sure; None where a limit was reached before."""
        given_up, begin, chunk = 0, 0, _CHUNK if kernels_run_compiled() else 1
        load = max(load, _SMALLEST)
        if load > self.most_listed:
            self.listed[0].number[0] = -1
        room = (self.reached, self.knapsacks, self.scratch, tuple(self.listed))
        while begin < len(self.positions) - 1:
            began = time.monotonic()
            within(self.pairs, self.terms, load, *room, begin, begin + chunk)
            given_up += int(self.scratch.seen[2])
            if limits.passed:
                return None
            begin += chunk
            chunk = 2 * chunk if time.monotonic() - began < _LISTENING_S / 4 else max(1, chunk // 2)
        layers, (fewest, _) = self.terms.bounds.layers, self.limits.stages
        last = self.reached.devices[-layers:]
        if layers > 1:
            last = np.where(np.arange(layers)[:, None] >= fewest, last, NEVER)
        last = np.where(np.arange(last.shape[1]) >= self.limits.copies[0], last, NEVER)
        self.unsure = given_up > 0
        if int(last.min(initial=NEVER)) >= NEVER:
            return None, not given_up
        if self.listed[1].number[0] >= 0:
            self.most_listed = load
            self.listed.reverse()
        layer, copies = self._chosen(last)
        return self._traced(load, len(self.reached.devices) - layers + int(layer), int(copies)), True

    def _chosen(self, last: Integers32) -> tuple[int, int]:
        """The layer and the copies of the state that is best by the goal; of equal ones that with fewest devices."""
        layers, copies = np.nonzero(last < NEVER)
        devices = last[layers, copies]
        first = {"stages_used": layers, "copies_used": copies}.get(self.goal, devices)
        at = np.lexsort((devices, first))[0]
        return int(layers[at]), int(copies[at])

    def _traced(self, load: float, row: int, copies: int) -> Plan:
        reached, layers = self.reached, self.terms.bounds.layers
        stages: list[tuple[int, int, int, int, int]] = []
        while row:
            if not self.terms.bounds.every:
                # What was reached with fewer copies stands for more of them.
                copies = int(np.flatnonzero(reached.devices[row, : copies + 1] == reached.devices[row, copies])[0])
            base, g, own = as_reached(int(reached.how[row, copies]))
            in_flight = -(-(self.instance.held or copies) // own)
            stages.append((base // layers, row // layers, g, own, in_flight))
            copies, row = copies - own, base
        largest = float(largest_load(self.pairs, self.terms, self.knapsacks.space, np.array(stages), load))
        assert largest < np.inf, _DISAGREE
        devices = sum(self.instance.degrees[g] * own for _, _, g, own, _ in stages)
        return Plan.traced(lambda: tuple(self._stage(*stage, load) for stage in stages), largest, devices)

    def _stage(self, base: int, goal: int, g: int, copies: int, in_flight: int, load: float) -> PlannedStage:
        """The stage between two ideals, with options that stay within the load."""
        exchange = float(times_sent(self.terms.exchange, copies))
        return self.stage_with_options(base, goal, g, copies, in_flight, exchange, load)

    def stage_with_options(self, *asked: *tuple[int, int, int, int, int, float, float]) -> PlannedStage:
        """The stage between two ideals that sends its weights so often, with options that stay within the load."""
        stage = self.stage_within(*asked)
        assert stage is not None, _DISAGREE
        return stage

    def stage_within(
        self, base: int, goal: int, g: int, copies: int, in_flight: int, exchange: float, load: float
    ) -> PlannedStage | None:
        """The same; None where no options do."""
        terms, options = self.terms, self.instance.options
        units = between(self.cover, self.positions, base, goal)
        count = (terms.of_kind[goal] - terms.of_kind[base]).astype(np.int64)
        edges = self._edges(base, goal)[g]
        room = load * copies - edges
        share = float(terms.sharded[g, goal] - terms.sharded[g, base]) / copies
        demand = Demand(np.flatnonzero(count), count, g, in_flight, exchange, room, terms.capacity - share)
        question = (terms.table, demand, self.knapsacks.space)
        if time_within(*question)[0] != YES:
            return None
        taken = options_within(*question)
        inside = np.zeros(self.instance.units, dtype=np.bool_)
        inside[units] = True
        nodes = np.flatnonzero(inside[self.instance.unit])
        by_kind = nodes[np.argsort(self.instance.kind[nodes], kind="stable")]  # as options come
        taken_rows = np.flatnonzero(taken)
        rows = self.row[np.repeat(taken_rows, taken[taken_rows])]
        chosen = dict(zip(by_kind.tolist(), rows.tolist(), strict=True))
        time = float(options.time[rows].sum()) + edges
        sync = exchange * float(options.weights[rows].sum())
        memory = float(
            (options.stash[rows] * in_flight + options.memory[rows]).sum() + options.sharded[rows].sum() / copies
        )
        return PlannedStage(nodes, copies, self.instance.degrees[g], in_flight, (time + sync) / copies, memory, chosen)

    def _edges(self, base: int, goal: int) -> Floats:
        paid = np.zeros(self.pairs.limit.shape)
        mark = np.zeros(self.pairs.input_cost.shape[2], dtype=np.int32)
        for j in range(int(self.pairs.cuts.start[base]), int(self.pairs.cuts.start[base + 1])):
            mark[self.pairs.cuts.edge[j]] = self.pairs.cuts.code[j]
        edge_costs(self.pairs, base, goal, mark, False, paid)
        by_degree: Floats = np.maximum(paid[0], 0.0)
        return by_degree


def least_busy(instance: PlanInstance, costs: StageCostModel) -> Floats:
    """u: the seconds that a unit keeps devices busy at least, all devices of a copy together."""
    out: Floats = (costs.work[: len(instance.degrees)] * np.array(instance.degrees)[:, None]).min(axis=0)
    return out
