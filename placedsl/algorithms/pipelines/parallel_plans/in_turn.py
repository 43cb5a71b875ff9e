"""The plan with the least largest load whose stages hold several chunks of the model, in turn.

With S stages chunk k of the model (from 0) is in stage k mod S, and all stages have as many copies.  What a stage holds
of each chunk at once depends on S and on its place, so that S and the number of copies are given to each search.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from placedsl.algorithms.ideals.chain_cover import chain_cover
from placedsl.algorithms.ideals.enumeration import ideals
from placedsl.algorithms.pipelines.parallel_plans.in_turn_kernel import (
    edges_of,
    fits,
    least_rest,
    reach_in_turn,
)
from placedsl.algorithms.pipelines.parallel_plans.instance import Plan, PlanInstance, PlannedStage
from placedsl.algorithms.pipelines.parallel_plans.load_thresholds import PlanResult, least_load
from placedsl.algorithms.pipelines.parallel_plans.options import YES, OptionTable
from placedsl.algorithms.pipelines.parallel_plans.question_kernel import times_sent
from placedsl.algorithms.pipelines.parallel_plans.search import PlanTable
from placedsl.algorithms.pipelines.state_dp import SearchLimits
from placedsl.algorithms.stages.cut_edges_kernel import all_stages
from placedsl.algorithms.stages.stage_pairs import between, ideal_sums
from placedsl.arrays import Booleans, Floats, Integers, Integers32

#: More ideals than this are not planned over: all pairs of them are kept.
MOST_IDEALS = 600
#: States of one number of stages, and answers about stages that are kept.
_STATES, _ANSWERS = 1 << 15, 1 << 20
#: Samples of each chunk that a copy holds at once, by copies, stages and place: one tuple a moment.
Held = Callable[[int, int, int], tuple[tuple[int, ...], ...]]


class InTurnTerms(NamedTuple):
    """K ideals, c kinds, g degrees, L tensors that two ideals or more divide.

    ``inside``  K x K whether an ideal lies in another;  ``edges``  K x K x g seconds of a stage's transfers
    ``time``    g x K seconds of the quickest options;  ``unsupported``  g x K units without one
    ``weight``  K least seconds of devices;  ``size``  K units;  ``sharded``  g x K bytes
    ``table``, ``of_kind``, ``degree``, ``capacity``   options, K x c units by kind, g, bytes of a device
    ``made``    K x L whether the tensor's maker is in the ideal;  ``read``  K x L how many of its ``readers``
    ``input``, ``output``   g x L seconds
    ``of_kinds``, ``fewest``, ``most``, ``in_flight``   limits of the spec by kind
    """

    inside: Booleans
    edges: Floats
    time: Floats
    unsupported: Integers
    weight: Floats
    size: Integers
    sharded: Floats
    table: OptionTable
    of_kind: Integers32
    degree: Integers
    capacity: float
    made: Booleans
    read: Integers32
    readers: Integers
    input: Floats
    output: Floats
    of_kinds: bool
    fewest: Integers
    most: Integers
    in_flight: Integers


class InTurnQuestion(NamedTuple):
    """Whether plans stay within a load.  S stages, m moments.

    ``often``  how often all copies of a stage together send their weights per sample
    ``held``   S x m x chunks samples that a copy holds, the last chunk first;  ``moments``  S: how many there are
    ``rest``   (S + 1) x K x K the least seconds of devices of so many blocks between two ideals, with their transfers
    ``saved``  the most of these that chunks of one stage save together
    """

    load: float
    copies: int
    stages: int
    devices: int
    often: float
    held: Integers
    moments: Integers
    rest: Floats
    saved: float


class InTurnStates(NamedTuple):
    """States by number of stages: ``at``  ideals of the chunks, ``used``  devices of a copy of each stage together,
    ``before``, ``degree``   the state before the last stage, and the position of the stage's degree."""

    number: Integers
    at: Integers32
    used: Integers32
    before: Integers32
    degree: Integers32


class InTurnScratch(NamedTuple):
    """Room for questions.  ``by_time``  rows of the options, of each kind and degree by time."""

    table: Integers32
    high: Integers32
    taken: Floats
    needed: Floats
    radix: int
    keys: Integers
    answers: Integers
    by_time: Integers
    chunk: Integers
    kind: Integers
    row: Integers
    rest_time: Floats
    spent_time: Floats
    rest_bytes: Floats
    spent_bytes: Floats


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
    walked = ideals(cover, np.ones(costs.units, dtype=np.int64), most=MOST_IDEALS, deadline=limits.deadline)
    if not walked.complete:
        return PlanResult(None, 0.0, False, walked.too_many)
    table = _InTurnTable(PlanTable(instance, costs, cover, walked.positions, "time_per_sample"), chunks, held, limits)
    return least_load(table.ask, limits, table.lowest, table.plain.ceiling(), within)


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
        long = self.long = np.flatnonzero(cut)
        self._known: dict[tuple[int, int], tuple[Floats, float]] = {}
        made, read = self._ends_of(long)
        tensor = instance.reads[0]
        self.terms = InTurnTerms(
            inside, edges, np.ascontiguousarray(pairs.unit_sum[0, :degrees]), pairs.unsupported[:degrees], flat.weight,
            size, flat.sharded, flat.table, flat.of_kind, flat.degree, instance.capacity, made, read,
            np.bincount(tensor, minlength=len(instance.producer))[long].astype(np.int64),
            np.ascontiguousarray(instance.input_cost[:, long]), np.ascontiguousarray(instance.output_cost[:, long]),
            flat.bounds.of_kinds, flat.bounds.fewest, flat.bounds.most, flat.bounds.in_flight,
        )  # fmt: skip
        self.pairs = [*self._pairs()]
        deepest = max((stages for _, stages in self.pairs), default=1)
        shape = (deepest + 1, _STATES)
        self.states = InTurnStates(
            np.zeros(deepest + 1, dtype=np.int64), np.zeros((*shape, chunks), dtype=np.int32),
            *(np.zeros(shape, dtype=np.int32) for _ in range(3)),
        )  # fmt: skip
        nodes, moments = (
            len(instance.kind) + 1,
            max(self._moments(*pair)[0].shape[1] for pair in self.pairs or [(1, 1)]),
        )
        key, time_ = table._key, flat.table.time
        exact = deepest * degrees * count ** (2 * chunks) < 2**62
        self.scratch = InTurnScratch(
            np.zeros(4 * _STATES, dtype=np.int32), np.zeros(chunks, dtype=np.int32), np.zeros(chunks),
            np.zeros(chunks), count * exact,
            np.zeros(_ANSWERS if exact else 1, dtype=np.int64), np.zeros(_ANSWERS if exact else 1, dtype=np.int64),
            np.lexsort((time_, key)), np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64),
            np.zeros(nodes, dtype=np.int64), np.zeros(nodes), np.zeros(nodes), np.zeros((nodes, moments)),
            np.zeros((nodes, moments)),
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

    def _pairs(self) -> Iterator[tuple[int, int]]:
        """Numbers of copies and stages that plans may have, those with most devices first."""
        instance, limits = self.plain.instance, self.plain.limits
        for copies in instance.copies:
            most = min(instance.devices // (copies * instance.degrees[0]), instance.units // self.chunks)
            for stages in range(1, most + 1):
                rounds = not instance.held and instance.microbatches % (copies * stages)
                low, high = limits.copies
                fewest, largest = limits.stages
                wrong = copies * stages < low or (high is not None and copies * stages > high)
                if not (rounds or wrong or stages < fewest or (largest is not None and stages > largest)):
                    yield copies, stages

    def _moments(self, copies: int, stages: int) -> tuple[Integers, Integers]:
        """S x m x chunks samples held at once, and S: how many moments there are."""
        known = [self.held(copies, stages, place) for place in range(stages)]
        out = np.zeros((stages, max(map(len, known)), self.chunks), dtype=np.int64)
        for place, moments in enumerate(known):
            out[place, : len(moments)] = np.array(moments)[:, ::-1]
        return out, np.array([len(moments) for moments in known], dtype=np.int64)

    def _rest(self, copies: int, stages: int) -> tuple[Floats, float]:
        """``rest`` and ``saved`` of a question."""
        widest = self.plain.instance.devices // copies - (stages - 1) * self.plain.instance.degrees[0]
        key = copies, stages
        if key not in self._known:
            terms, count = self.terms, len(self.terms.weight)
            degrees = [g for g, t in enumerate(terms.degree.tolist()) if t <= widest]
            often = float(times_sent(self.plain.terms.exchange, copies))
            weights = self.plain.terms.weights
            block = np.full((count, count), np.inf)
            for g in degrees:
                own = terms.time[g] + often * weights[g]
                able = (terms.unsupported[g][None] == terms.unsupported[g][:, None]) & terms.inside
                alone = terms.edges[:, :, g] if stages > 1 else 0.0
                busy = float(terms.degree[g]) * (own[None] - own[:, None] + alone) * (1.0 - 1e-9)
                block = np.where(able, np.minimum(block, busy), block)
            np.fill_diagonal(block, np.inf)
            rest = np.zeros((stages + 1, count, count))
            least_rest(block, rest)
            self._known[key] = rest, self._saved(degrees) if stages > 1 else 0.0
        return self._known[key]

    def _saved(self, degrees: list[int]) -> float:
        """Seconds of devices that chunks of one stage save together at most, over all stages.

        A tensor with one reader saves what both of its ends cost, where these are in two chunks of the stage that has
        its maker: of those that one unit makes, no more than one block of each other chunk can read.
        """
        terms, plain = self.terms, self.plain
        each = (terms.degree[degrees, None] * (terms.input[degrees] + terms.output[degrees])).max(axis=0)
        several = terms.readers > 1
        out = float((each * terms.readers)[several].sum())
        maker = plain.instance.producer[self.long]
        for unit in np.unique(maker[~several]).tolist():
            own = np.flatnonzero(~several & (maker == unit))
            read = terms.read[:, own] * each[own]
            # The largest block reads all; blocks are no heavier than what a device can do, which questions limit.
            out += (self.chunks - 1) * float((read[-1]).sum())
        return out

    @property
    def lowest(self) -> float:
        """A load that every plan has."""
        return float(self.terms.weight[-1]) / self.plain.instance.devices * (1.0 - 1e-12)

    def ask(self, load: float) -> tuple[Plan | None, bool] | None:
        """A plan within a load, or none and whether that is sure; None where a limit was reached before."""
        sure, load = True, max(load, 1e-300)
        for copies, stages in sorted(self.pairs, key=lambda pair: -pair[0] * pair[1]):
            devices = self.plain.instance.devices // copies
            if self.terms.weight[-1] > load * copies * devices * (1.0 + 1e-9):
                continue
            held, moments = self._moments(copies, stages)
            often = float(times_sent(self.plain.terms.exchange, copies))
            rest, saved = self._rest(copies, stages)
            question = InTurnQuestion(load, copies, stages, devices, often, held, moments, rest, saved)
            self.scratch.keys[:] = -1
            for ends in self._ends(stages):
                found, certain = reach_in_turn(self.terms, question, ends, self.states, self.scratch)
                if self.limits.passed:
                    return None
                if found:
                    return self._traced(question), True
                sure &= certain
        return None, sure

    def _ends(self, stages: int) -> Iterator[Integers]:
        """Where chunks may begin, the last chunk first; even ones first."""
        terms, last = self.terms, len(self.terms.weight) - 1
        able = [k for k in range(1, last) if stages <= terms.size[k] <= terms.size[-1] - stages]
        own = np.abs(terms.weight[able] / max(float(terms.weight[-1]), 1e-300) * self.chunks % 1.0 - 0.5)
        able = [able[k] for k in np.argsort(-own, kind="stable").tolist()]
        for chosen in itertools.permutations(able, self.chunks - 1):
            ends = (0, *chosen, last)
            if all(terms.inside[a, b] and terms.size[b] - terms.size[a] >= stages for a, b in itertools.pairwise(ends)):
                yield np.array(ends, dtype=np.int64)

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
