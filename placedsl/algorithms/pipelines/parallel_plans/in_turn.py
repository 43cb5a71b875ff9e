"""The plan with the least largest load whose stages hold several chunks of the model, in turn.

With S stages chunk k of the model (from 0) is in stage k mod S, and all stages have as many copies.  What a stage holds
of each chunk at once depends on S and on its place, so that S and the number of copies are given to each search.
"""

from __future__ import annotations

import numpy as np

from placedsl.algorithms.ideals.chain_cover import chain_cover
from placedsl.algorithms.ideals.enumeration import ideals
from placedsl.algorithms.pipelines.parallel_plans.even_chunks import Held, first_plan, layouts, least_load_of_work
from placedsl.algorithms.pipelines.parallel_plans.in_turn_kernel import (
    edges_of,
    fits,
    reach_in_turn,
)
from placedsl.algorithms.pipelines.parallel_plans.in_turn_terms import (
    InTurnQuestion,
    InTurnScratch,
    InTurnStates,
    InTurnTerms,
    StageWork,
    price,
)
from placedsl.algorithms.pipelines.parallel_plans.instance import Plan, PlanInstance, PlannedStage
from placedsl.algorithms.pipelines.parallel_plans.load_thresholds import PlanResult, least_load
from placedsl.algorithms.pipelines.parallel_plans.options import YES
from placedsl.algorithms.pipelines.parallel_plans.question_kernel import times_sent
from placedsl.algorithms.pipelines.parallel_plans.search import PlanTable
from placedsl.algorithms.pipelines.search_limits import SearchLimits
from placedsl.algorithms.stages.cut_edges_kernel import all_stages
from placedsl.algorithms.stages.stage_pairs import between, ideal_sums
from placedsl.arrays import Booleans, Floats, Integers, Integers32

#: More ideals than this are not planned over, by the number of chunks: states are tuples of them.
_MOST_IDEALS, _FEWEST = {2: 130, 3: 80}, 60
#: States of one number of stages, and answers about stages that are kept.
_STATES, _ANSWERS = 1 << 15, 1 << 20
#: Where chunks may begin: so many ways at most; and numbers that say what chunks of some stages take at least.
_ENDS, _NUMBERS = 1_000_000, 30_000_000


def most_ideals(chunks: int) -> int:
    """More ideals than this are not planned over."""
    return _MOST_IDEALS.get(chunks, _FEWEST)


def best_plan(
    instance: PlanInstance, chunks: int, held: Held, limits: SearchLimits | None = None, within: float = np.inf
) -> PlanResult:
    """The plan whose largest load is least.  ``within``: a largest load that plans may have."""
    limits = limits or SearchLimits()
    if within < 0.0:
        return PlanResult(None, within, True)
    costs = instance.stage_costs()
    if not np.isfinite(costs.work).any(axis=0).all() or costs.units < chunks:
        return PlanResult(None, np.inf, True)
    cover = chain_cover(costs.units, costs.before, costs.after)
    if cover is None:
        return PlanResult(None, 0.0, False, True)
    lowest = least_load_of_work(instance, chunks)
    if lowest == np.inf:
        return PlanResult(None, within, True)
    told = limits.told
    known = first_plan(
        instance, chunks, held, within, lambda: limits.passed, lambda plan: told(plan, lowest) if told else None
    )
    walked = ideals(cover, np.ones(costs.units, dtype=np.int64), most=most_ideals(chunks), deadline=limits.deadline)
    if not walked.complete:
        return PlanResult(known, lowest, False, walked.too_many)
    table = _InTurnTable(PlanTable(instance, costs, cover, walked.positions, "time_per_sample"), chunks, held, limits)
    lowest = max(lowest, table.lowest)
    if known is None:
        first = table.ask(min(within, table.plain.ceiling()))
        if first is None or first[0] is None:
            return PlanResult(None, within if first == (None, True) else lowest, first == (None, True))
        known = first[0]
    return least_load(table.ask, limits, lowest, table.plain.ceiling(), within, known)


class _InTurnTable:
    """The ideals of an instance with their sums, and the questions that are asked of them."""

    def __init__(self, table: PlanTable, chunks: int, held: Held, limits: SearchLimits) -> None:
        self.plain, self.chunks, self.held, self.limits = table, chunks, held, limits
        instance, flat, pairs = table.instance, table.terms, table.pairs
        count, degrees = len(pairs.weight), len(instance.degrees)
        inside, edges = np.zeros((count, count), dtype=np.bool_), np.zeros((count, count, degrees))
        all_stages(pairs, inside, edges)
        units = np.ones(instance.units, dtype=np.int64)
        size = ideal_sums(table.cover, table.positions, units)
        # A tensor that one ideal divides lies in two chunks only where these follow one another.
        cut = np.bincount(pairs.cuts.edge, minlength=len(instance.producer)) > 1
        long = np.flatnonzero(cut)
        made, read = self._ends_of(long)
        readers = np.bincount(instance.reads[0], minlength=len(instance.producer))[long].astype(np.int64)
        costs = np.ascontiguousarray(instance.input_cost[:, long]), np.ascontiguousarray(instance.output_cost[:, long])
        short = _without(edges, made, read, readers, *costs)
        self.terms = InTurnTerms(
            inside, edges, short, np.ascontiguousarray(pairs.unit_sum[0, :degrees]), pairs.unsupported[:degrees],
            flat.weight, size, flat.sharded, flat.table, flat.of_kind, flat.degree, instance.capacity,
            instance.producer[long], made, read,
            readers, *costs, flat.bounds.of_kinds, flat.bounds.fewest, flat.bounds.most, flat.bounds.in_flight,
        )  # fmt: skip
        self.room = 2 * _NUMBERS
        self.layouts = [_Layout(self, *pair) for pair in layouts(instance, chunks)]
        # Stages of one device each are the quickest to look through, and often the best.
        self.layouts.sort(key=lambda layout: -layout.copies * layout.stages)
        deepest = max((layout.stages for layout in self.layouts), default=1)
        shape = (deepest + 1, _STATES)
        self.states = InTurnStates(
            np.zeros(deepest + 1, dtype=np.int64), np.zeros((*shape, chunks), dtype=np.int32),
            *(np.zeros(shape, dtype=np.int32) for _ in range(3)),
        )  # fmt: skip
        nodes, moments = len(instance.kind) + 1, max(2, deepest * chunks)
        exact = deepest * degrees * count ** (2 * chunks) < 2**62
        answers = _ANSWERS if exact else 1
        self.scratch = InTurnScratch(
            np.zeros(4 * _STATES, dtype=np.int32), np.zeros(chunks, dtype=np.int32), np.zeros(chunks),
            np.zeros((2, chunks)), np.zeros((2, chunks)), count * exact, np.zeros(answers, dtype=np.int64),
            np.zeros(answers, dtype=np.int64), np.lexsort((flat.table.time, table.keys)),
            np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64),
            np.zeros(nodes), np.zeros(nodes),
            np.zeros((nodes, moments)), np.zeros((nodes, moments)), np.zeros((nodes, moments)),
            np.zeros(2, dtype=np.int64),
        )  # fmt: skip

    def _ends_of(self, tensors: Integers) -> tuple[Booleans, Integers32]:
        """K x L: whether each ideal has the maker of these tensors, and how many of their readers."""
        plain, instance = self.plain, self.plain.instance
        made = np.zeros((len(tensors), instance.units), dtype=np.int32)
        made[np.arange(len(tensors)), instance.producer[tensors]] = 1
        read, place = np.zeros(made.shape, dtype=np.int32), np.full(len(instance.producer), -1)
        place[tensors] = np.arange(len(tensors))
        tensor, unit = instance.reads
        own = place[tensor] >= 0
        np.add.at(read, (place[tensor[own]], unit[own]), 1)
        made, read = (ideal_sums(plain.cover, plain.positions, of).T for of in (made, read))
        return np.ascontiguousarray(made > 0), np.ascontiguousarray(read)

    @property
    def lowest(self) -> float:
        """A load that every plan has."""
        return min((layout.lowest for layout in self.layouts), default=0.0) * (1.0 - 1e-9)

    def ask(self, load: float) -> tuple[Plan | None, bool] | None:
        """A plan within a load, or none and whether that is sure; None where a limit was reached before."""
        every, load = True, max(load, 1e-300)
        for layout in self.layouts:
            if load >= layout.lowest * (1.0 - 1e-9) and not layout.ready:
                self._prepare(layout)
            if self.limits.passed:
                return None
            if load < max(layout.lowest * (1.0 - 1e-9), layout.refuted):
                continue
            sure = layout.all_ends
            if not len(layout.ends):
                every &= sure
                continue
            question = layout.question(load)
            self.scratch.keys[:] = -1
            for ends in layout.able(question):
                found, certain = reach_in_turn(self.terms, question, ends, self.states, self.scratch)
                if self.limits.passed:
                    return None
                if found:
                    return self._traced(question), True
                sure &= certain
            if sure:
                layout.refuted = load
            every &= sure
        return None, every

    def _prepare(self, layout: _Layout) -> None:
        """What chunks take at least is kept while there is room for it."""
        layout.prepare()
        self.room -= layout.size
        if self.room < 0:
            layout.kept = None

    def _traced(self, question: InTurnQuestion) -> Plan:
        states, slot, out = self.states, 0, []
        for depth in range(question.stages, 0, -1):
            before = int(states.before[depth, slot])
            low, high = (states.at[d, s].copy() for d, s in ((depth - 1, before), (depth, slot)))
            out.append(self._stage(question, low, high, question.stages - depth, int(states.degree[depth, slot])))
            slot = before
        return Plan(tuple(out))

    def _stage(self, question: InTurnQuestion, low: Integers32, high: Integers32, place: int, g: int) -> PlannedStage:
        plain, instance, scratch, copies = self.plain, self.plain.instance, self.scratch, question.copies
        assert fits(self.terms, question, low, high, scratch, place, g) == YES, "a stage that fitted does so no longer"
        parts, option, row = list[Integers](), dict[int, int](), 0
        for base, goal in zip(low.tolist(), high.tolist(), strict=True):
            units = between(plain.cover, plain.positions, base, goal)
            nodes = np.flatnonzero(np.isin(instance.unit, units))
            # In the order of kinds, as the kernel takes them.
            for v in nodes[np.argsort(instance.kind[nodes], kind="stable")].tolist():
                option[v] = int(plain.row[scratch.by_time[scratch.row[row]]])
                row += 1
            parts.append(nodes)
        taken, moments = instance.options, question.held[place, : question.moments[place]]
        rows = list(option.values())
        edges = float(edges_of(self.terms, low, high, g, question.stages == 1))
        load = (float((taken.time[rows] + question.often * taken.weights[rows]).sum()) + edges) / copies
        stash = np.array([taken.stash[[option[v] for v in nodes.tolist()]].sum() for nodes in parts])
        memory = float(
            (moments * stash).sum(axis=1).max() + taken.memory[rows].sum() + taken.sharded[rows].sum() / copies
        )
        in_flight = tuple(moments.max(axis=0).tolist())[::-1]
        return PlannedStage(
            np.concatenate(parts), copies, instance.degrees[g], max(in_flight), load, memory, option,
            chunks=tuple(parts[::-1]), chunk_in_flight=in_flight,
        )  # fmt: skip


class _Layout:
    """So many stages of so many copies: what they hold, what they take at least, and where chunks may begin."""

    def __init__(self, table: _InTurnTable, copies: int, stages: int) -> None:
        plain, terms, chunks = table.plain, table.terms, table.chunks
        self.terms, self.copies, self.stages = terms, copies, stages
        self.devices = plain.instance.devices // copies
        self.often = float(times_sent(plain.terms.exchange, copies))
        widest = self.devices - (stages - 1) * plain.instance.degrees[0]
        self.able_degrees = [t for t in terms.degree.tolist() if t <= widest]
        self.alone, self.chunks, self.ceiling, self.of = stages == 1, chunks, plain.ceiling(), table.held
        self.refuted, self.all_ends, self.ready = 0.0, True, False
        #: A load that no plan of the layout is below.
        self.lowest = float(terms.weight[-1]) / (copies * self.devices)
        self.kept: StageWork | None = None

    @property
    def size(self) -> int:
        """How many numbers say what chunks take at least."""
        return 4 * self.chunks * (self.stages + 1) * len(self.terms.weight) ** 2

    def prepare(self) -> None:
        """What is held, where chunks may begin, and a better bound."""
        self.ready = True
        known = [self.of(self.copies, self.stages, place) for place in range(self.stages)]
        self.held = np.zeros((self.stages, max(map(len, known)), self.chunks), dtype=np.int64)
        for place, own in enumerate(known):
            self.held[place, : len(own)] = np.array(own)[:, ::-1]
        self.moments = np.array([len(own) for own in known], dtype=np.int64)
        self.most = np.array([held[held.sum(axis=1).argmax()] for held in self.held], dtype=float)
        degrees = len(self.terms.degree)
        self.price = np.array([[price(self.terms, g, 1, self.often, mean) for g in range(degrees)]
                               for mean in self.most.mean(axis=1).tolist()])  # fmt: skip
        self.ends, self.all_ends = _chunk_ends(self.terms, self.chunks, self.stages)
        if self.size > _NUMBERS:
            self.ends, self.all_ends = self.ends[:0], False
        if not len(self.ends):
            return
        best = -1.0
        for long in (True, False) if len(self.terms.readers) and not self.alone else (True,):
            work = self._worked(long)
            each = [work.rest[:, c, self.stages, self.ends[:, c], self.ends[:, c + 1]] for c in range(self.chunks)]
            sums: Floats = np.sum(each, axis=0)  # prices x ends
            lowest = self._lowest(work, sums, self.ceiling)
            if lowest > best:
                self.kept, self.long, self.sums, best = work, long, sums, lowest
        self.lowest = max(self.lowest, best)

    def _worked(self, long: bool) -> StageWork:
        return StageWork(
            self.terms, self.copies, self.often, self.able_degrees, self.most, alone=self.alone, long=long
        )  # fmt: skip

    def _lowest(self, work: StageWork, sums: Floats, ceiling: float) -> float:
        """A load that no plan of the layout is below."""
        low, high = 0.0, ceiling
        if not self._passes(sums, self._capacities(work, high)[1]).any():
            return np.inf
        for _ in range(50):
            middle = (low + high) / 2.0
            passes = self._passes(sums, self._capacities(work, middle)[1]).any()
            low, high = (low, middle) if passes else (middle, high)
        return low

    def _capacities(self, work: StageWork, load: float) -> tuple[Floats, Floats]:
        return work.capacities(load * self.copies, self.terms.capacity, self.devices)

    def _passes(self, sums: Floats, capacity: Floats) -> Booleans:
        """Per ends: whether all chunks together are within what the stages can do."""
        return np.asarray((sums <= capacity[:, self.stages, self.devices, None]).all(axis=0), dtype=np.bool_)

    def question(self, load: float) -> InTurnQuestion:
        """Whether there is a plan within a load."""
        work = self._worked(self.long) if self.kept is None else self.kept
        own, capacity = self._capacities(work, load)
        return InTurnQuestion(
            load, self.copies, self.stages, self.devices, self.often, self.held, self.moments, work.block, work.rest,
            own, capacity, self.price,
        )  # fmt: skip

    def able(self, question: InTurnQuestion) -> Integers:
        """The ends with which there may be a plan, even ones first."""
        return self.ends[self._passes(self.sums, question.capacity)]


def _without(
    edges: Floats, made: Booleans, read: Integers32, readers: Integers, input_cost: Floats, output_cost: Floats
) -> Floats:
    """The transfers of stages without those of some tensors."""
    out = edges.copy()
    for e in range(len(readers)):
        here = made[None, :, e] & ~made[:, None, e]
        reads = read[None, :, e] - read[:, None, e]
        sends, brings = here & (reads < readers[e]), ~here & (reads > 0)
        out -= sends[:, :, None] * output_cost[:, e] + brings[:, :, None] * input_cost[:, e]
    return np.maximum(out, 0.0)


def _chunk_ends(terms: InTurnTerms, chunks: int, stages: int) -> tuple[Integers, bool]:
    """Where chunks may begin, a row each, the last chunk first and the whole graph last; whether those are all."""
    last = len(terms.weight) - 1
    apart = terms.inside & (terms.size[None] - terms.size[:, None] >= stages)
    rows = np.zeros((1, 1), dtype=np.int64)
    for more in range(chunks - 1):
        left = np.flatnonzero(terms.size[last] - terms.size >= stages * (chunks - 1 - more))
        row, goal = np.nonzero(apart[rows[:, -1]][:, left])
        if len(row) > _ENDS:
            return np.zeros((0, chunks + 1), dtype=np.int64), False
        rows = np.concatenate((rows[row], left[goal][:, None]), axis=1)
    rows = rows[apart[rows[:, -1], last]]
    rows = np.concatenate((rows, np.full((len(rows), 1), last)), axis=1)
    even = np.arange(chunks + 1) / chunks * terms.weight[last]
    return rows[np.argsort(np.abs(terms.weight[rows] - even).sum(axis=1), kind="stable")], True
