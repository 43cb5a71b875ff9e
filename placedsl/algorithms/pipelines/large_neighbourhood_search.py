"""Large-neighbourhood search for contiguous pipelines whose graph has too many ideals for the dynamic program.

A step fixes most of the best pipeline by colocation: the fixed units of a stage stay together.  Units near the borders
of a few neighbouring stages, the bottleneck among them, or near all borders are free, and the dynamic program finds the
best pipeline of this smaller problem.  How many units are free is set by the number of ideals that a step may have.
First pipelines come from coarse graphs, whose clusters of units are drawn at random.  Where the whole has no more
ideals than a step may have, the first step is the whole.

Each step is a problem of the same kind with further colocation, so the search supports the constraints that the dynamic
program supports.  Work is counted in ideals: one seed gives one sequence of pipelines, unless a step exceeds its time
limit and is abandoned.  How many steps are taken depends on the machine.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from placedsl.algorithms.colocation import with_colocation
from placedsl.algorithms.ideals.chain_cover import chain_cover
from placedsl.algorithms.ideals.enumeration import count_ideals
from placedsl.algorithms.pipelines import solve as contiguous
from placedsl.algorithms.shared_neighbourhoods import SharedNeighbourhoods
from placedsl.algorithms.stages.stage_costs import StageCostModel, after_computation
from placedsl.arrays import Booleans, Integers
from placedsl.evaluation.evaluate import evaluate
from placedsl.graph.order import csr, topological
from placedsl.problem.problem import Problem
from placedsl.tolerances import EQUAL_COSTS

#: The ideals of one step: at first, and at most.
_FIRST_IDEALS, _MOST_IDEALS = 2_000, 128_000
#: The same for parts that several processes share out.
_LEVELS = (2_000, 8_000, 32_000, 128_000)
#: Steps without improvement after which a step takes four times the ideals, or the pipeline is given up for a new one.
_IN_VAIN = 12
#: A new pipeline is improved on further only within this share of the best one.
_PROMISING = 0.02
#: How many units on either side of a border are free at first, and what changes that.
_REACH, _WIDER, _NARROWER = 8.0, 1.3, 0.7
#: Clusters a device that a coarse graph has at first, and what makes it coarser.
_CLUSTERS, _COARSER = 30.0, 0.7
#: Seconds after which a step is given up, and the next ones take fewer ideals.
_PATIENCE = 10.0
_HELD = "held together by the search"


SUPPORTS = replace(contiguous.SUPPORTS, data_parallelism=False, routes=True, relaxes=False)


@dataclass(frozen=True, eq=False)
class PipelinePlacement:
    """A contiguous placement, a device a node, and its value."""

    placement: Integers
    value: float


@dataclass
class PipelineSearch:
    """A search in progress: the best pipeline (None: none yet), and whether it is proven to be the best there is.

    ``ideals``: the most that a step takes.  ``reach``: how many units on either side of a border are free, by the
    number of neighbouring stages that are looked at.  ``clusters``: how many a coarse graph has, a device.
    """

    problem: Problem
    best: PipelinePlacement | None
    seed: int
    proven: bool = False
    ideals: int = _FIRST_IDEALS
    reach: dict[int, float] = field(default_factory=dict)
    clusters: float = _CLUSTERS
    rng: np.random.Generator = field(init=False)
    costs: StageCostModel = field(init=False)
    unit_of_node: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        quotient, classes = contiguous.pipeline_of(self.problem)
        # Loads serve to find the bottleneck stage only, so one communication model does for all.
        self.costs, self.unit_of_node = after_computation(quotient, classes), quotient.unit_of_node

    @property
    def value(self) -> float:
        """The value of the best pipeline, inf without one."""
        return np.inf if self.best is None else self.best.value

    def take(self, found: PipelinePlacement | None) -> bool:
        """Keep a pipeline that is better."""
        if found is None or found.value >= self.value * (1.0 - EQUAL_COSTS):
            return False
        self.best = found
        return True


def begin(problem: Problem, start: Integers | None, seed: int) -> PipelineSearch:
    """A search from a placement that satisfies everything, or from the best cut of a few orders, if there is one."""
    if start is None:
        start = contiguous.sliced(problem).placement
    if start is None:
        return PipelineSearch(problem, None, seed)
    return PipelineSearch(problem, valued(problem, start), seed)


def valued(problem: Problem, placement: Integers) -> PipelinePlacement:
    """A placement that satisfies everything, with its value."""
    return PipelinePlacement(placement, evaluate(problem, placement.tolist()).objectives[0])


def run(search: PipelineSearch) -> Iterator[bool]:
    """Search until the best pipeline is proven to be that; yields after each step whether it has become better."""
    if not np.isfinite(search.costs.least).all():
        return  # some unit runs nowhere
    if fits_a_step(search.problem):
        search.ideals = _MOST_IDEALS
        yield search.take(_solved(search, search.problem, search.value, whole=True))
        if search.proven:
            return
    if search.best is not None:
        yield from _improve(search, search.best)
    while not search.proven:
        start = _coarse_start(search)
        yield search.take(start)
        if start is not None and not search.proven:
            yield from _improve(search, start)
        if search.best is not None and not search.proven:
            yield from _improve(search, search.best)


def improve_around(search: PipelineSearch, in_vain: int, shared: SharedNeighbourhoods) -> bool:
    """Solve one part of the best pipeline anew, beside others who do so; whether that has become better.

    ``in_vain``: how many parts of this pipeline were solved in vain before: parts grow, and begin small again.
    """
    assert search.best is not None
    search.ideals = _LEVELS[in_vain // _IN_VAIN % len(_LEVELS)]
    found = _step(search, search.best, shared)
    shared.done()
    return search.take(found)


def _improve(search: PipelineSearch, pipeline: PipelinePlacement) -> Iterator[bool]:
    """Solve parts of a pipeline anew until that has been in vain for a while, each time with more ideals."""
    search.ideals, in_vain = _FIRST_IDEALS, 0
    while not search.proven:
        found = _step(search, pipeline)
        yield search.take(found)
        in_vain = in_vain + 1 if found is None else 0
        pipeline = found or pipeline
        if in_vain == _IN_VAIN:
            if search.ideals >= _MOST_IDEALS or pipeline.value > search.value * (1.0 + _PROMISING):
                return
            search.ideals, in_vain = 4 * search.ideals, 0


def _step(
    search: PipelineSearch, pipeline: PipelinePlacement, shared: SharedNeighbourhoods | None = None
) -> PipelinePlacement | None:
    """One part of a pipeline solved anew; a better pipeline, or None.  ``shared``: the line to others who do so."""

    def drawn() -> _Part | None:
        return _part(search, pipeline)

    part = drawn() if shared is None else shared.draw(pipeline.placement, drawn, _flags)
    return None if part is None else _solved(search, part.problem, pipeline.value, whole=bool(part.free.all()))


@dataclass(frozen=True, eq=False)
class _Part:
    """What is solved anew: the problem with the rest held together, and which units are free (u flags)."""

    problem: Problem
    free: Booleans


def _flags(part: _Part | None) -> Booleans:
    return np.zeros(0, dtype=bool) if part is None else part.free


def _part(search: PipelineSearch, pipeline: PipelinePlacement) -> _Part | None:
    """A part of a pipeline, drawn at random (None: nothing was free)."""
    costs, unit_of_node = search.costs, search.unit_of_node
    device = np.empty(costs.units, dtype=np.int64)
    device[unit_of_node] = pipeline.placement
    stage, worst = _in_order(costs, device)
    count = int(stage.max()) + 1
    width = min(count, 1 + int(search.rng.geometric(0.4)))
    first = worst - int(search.rng.integers(width))
    chosen = (stage >= first) & (stage < first + width)
    rank = _random_order(costs, search.rng)
    order = np.lexsort((rank, stage))
    # From the nearer end of its stage, in an order that keeps to precedence.
    starts = np.searchsorted(stage[order], np.arange(count + 1))
    place = np.empty(costs.units, dtype=np.int64)
    place[order] = np.arange(costs.units)
    depth = np.minimum(place - starts[stage], starts[stage + 1] - 1 - place)
    reach = search.reach.get(width, _REACH)
    while True:
        free = chosen & (depth < reach)
        labels = np.where(free, count + np.arange(costs.units), stage)
        part = with_colocation(search.problem, labels[unit_of_node], _HELD)
        if _small_enough(part, search.ideals):
            break
        if reach < 1.0:
            return None
        reach *= _NARROWER
    search.reach[width] = reach * _WIDER if reach < len(order) else reach
    return _Part(part, free)


def _solved(search: PipelineSearch, part: Problem, below: float, *, whole: bool) -> PipelinePlacement | None:
    """The best pipeline of a part below a value; that of the whole is the best there is."""
    found = contiguous.searched(part, most=search.ideals, at_most=below, deadline=time.monotonic() + _PATIENCE)
    if not found.complete:
        search.ideals = max(_FIRST_IDEALS // 4, search.ideals // 4)
    better = found.placement is not None and found.value < below * (1.0 - EQUAL_COSTS)
    search.proven = search.proven or (whole and found.complete)
    return PipelinePlacement(found.placement, found.value) if better and found.placement is not None else None


def fits_a_step(problem: Problem) -> bool:
    """Whether one step may take the whole problem."""
    return _small_enough(problem, _MOST_IDEALS)


def _small_enough(part: Problem, ideals: int) -> bool:
    quotient, _ = contiguous.pipeline_of(part)
    cover = chain_cover(quotient.units, quotient.before, quotient.after)
    return cover is not None and count_ideals(cover, ideals) is not None


def _in_order(costs: StageCostModel, device: Integers) -> tuple[Integers, int]:
    """The place of each unit's device in the pipeline, and the place of the one with the largest load."""
    used, at = np.unique(device, return_inverse=True)
    first, second = at[costs.before], at[costs.after]
    apart = first != second
    order = topological(len(used), first[apart], second[apart])
    assert order is not None  # it is a pipeline
    place = np.empty(len(used), dtype=np.int64)
    place[order] = np.arange(len(used))
    kind = {int(d): c for c, members in enumerate(costs.classes.devices) for d in members}
    loads = [costs.load(np.flatnonzero(at == i), kind[int(d)]) for i, d in enumerate(used)]
    return place[at], int(place[int(np.argmax(loads))])


def _random_order(costs: StageCostModel, rng: np.random.Generator) -> Integers:
    """Where each unit stands in a random topological order: any, or one that goes along branches."""
    units, along = costs.units, bool(rng.random() < 0.5)
    start, later = csr(costs.before, costs.after, units)
    waiting = np.bincount(costs.after, minlength=units).tolist()
    chance = rng.random(units).tolist()
    ready = [(chance[u], u) for u in range(units) if not waiting[u]]
    heapq.heapify(ready)
    place = np.empty(units, dtype=np.int64)
    for i in range(units):
        _, u = heapq.heappop(ready)
        place[u] = i
        for v in later[start[u] : start[u + 1]].tolist():
            waiting[v] -= 1
            if not waiting[v]:
                heapq.heappush(ready, (chance[v] - i if along else chance[v], v))
    return place


def _coarse_start(search: PipelineSearch) -> PipelinePlacement | None:
    """The best pipeline of the graph made coarse at random (None: it has none)."""
    devices = len(search.problem.machine.devices)
    search.ideals = _MOST_IDEALS
    while True:
        labels = _clusters(search, int(search.clusters * devices) + 1)
        part = with_colocation(search.problem, labels[search.unit_of_node], _HELD)
        if _small_enough(part, search.ideals):
            break
        search.clusters *= _COARSER
    return _solved(search, part, np.inf, whole=len(np.unique(labels)) == len(labels))


def _clusters(search: PipelineSearch, count: int) -> Integers:
    """A label for each unit, of about ``count``: in a random order units join the cluster of the last one before them.

    The last one, because all others before it are on no path between the two, so that a cluster is seldom on a cycle.
    """
    costs, rank = search.costs, _random_order(search.costs, search.rng)
    start, earlier = csr(costs.after, costs.before, costs.units)
    weight = costs.least / max(float(costs.least.sum()), 1e-300) + 1.0 / costs.units
    label = np.arange(costs.units)
    # Shares of work and of units: two in all.
    most, held, last = 4.0 / count, np.zeros(costs.units), int(np.argmin(rank))
    for u in np.argsort(rank).tolist():
        known = earlier[start[u] : start[u + 1]]
        # Where nothing comes before, with whatever came last.
        cluster = label[known[np.argmax(rank[known])]] if len(known) else last
        if held[cluster] + weight[u] <= most:
            label[u] = cluster
            held[cluster] += weight[u]
        last = label[u]
    return label
