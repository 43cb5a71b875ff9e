"""The members that there are for a problem, and how the cores are shared out."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from placedsl.algorithms.partitions import routed_search, stage_annealing
from placedsl.algorithms.partitions import short_annealing as local_search
from placedsl.algorithms.partitions.bounds import relaxation, superblocks
from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.instance import PartitionUnits, partition_units
from placedsl.algorithms.pipelines import large_neighbourhood_search as pipeline_search
from placedsl.algorithms.supports import Supports, costs_by_device, reasons_against
from placedsl.arrays import Integers
from placedsl.planner.portfolio.neighbourhood_members import around_pipelines, around_splits, in_turn
from placedsl.planner.portfolio.portfolio import Member, PlannerChannel
from placedsl.problem.problem import Problem
from placedsl.processes.priority import step_back

#: A search that for so many seconds of a processor, and half of those that it had, was not the one with the best
#: placement lets others go first.
_STALE_S, _STALE_SHARE = 5.0, 0.5
#: Seconds that annealing and bounds have before what helps less often starts.
LATER_S = 2.0
#: Superblocks that a program is asked for at most.
_ALL_STAGES = 4
#: A pipeline of more units than this is long: where its boundaries can lie comes before what superblocks load.
_LONG = 400
#: With more operators than this prices of sets say little.
_MOST_PRICED = 5_000
#: The seeds of two searches of one run lie this far apart.
_SEEDS_APART = 7919
#: The number of the first search on a cluster: no machine has as many of its own, so that all seeds differ.
FIRST_FURTHER = 1_000
#: So many searches for thresholds of the partition bound differ enough to be run side by side.
_MOST_THRESHOLDS = 16


class _Leave:
    """Steps back once others, or nobody, find better placements."""

    def __init__(self, channel: PlannerChannel) -> None:
        self.channel, self.last, self.stepped = channel, time.process_time(), False

    def after(self, value: float, better: bool) -> None:
        """A step is done; ``value`` is the best of this search."""
        now = time.process_time()
        if better and value <= self.channel.best:
            self.last = now
        if not self.stepped and now - self.last > max(_STALE_S, _STALE_SHARE * now):
            self.stepped = True
            step_back()


def search_splits(channel: PlannerChannel, units: PartitionUnits, start: Integers | None, seed: int) -> None:
    """Search for splits for ever, and say each better one.

    It steps back for nobody: the bound needs the best value, which may be a minute's search away.
    """
    from placedsl.algorithms.partitions.search import run, search_from

    search = search_from(units.instance, start, seed)
    if start is None and np.isfinite(search.value):
        channel.report(units.placement(search.best), -np.inf)
    for better in run(search):
        if better:
            channel.report(units.placement(search.best), -np.inf)


def search_routed_splits(channel: PlannerChannel, problem: Problem, start: Integers | None, seed: int) -> None:
    """Search for splits whose tensors go from device to device, for ever, and say each better one."""
    from placedsl.algorithms.partitions.routed_search import begin, run

    search = begin(problem, start, seed)
    if start is None and np.isfinite(search.value):
        channel.report(search.placement, -np.inf)
    leave = _Leave(channel)
    for better in run(search):
        leave.after(search.value, better)
        if better:
            channel.report(search.placement, -np.inf)


def search_pipelines(channel: PlannerChannel, problem: Problem, start: Integers | None, seed: int) -> None:
    """Search for contiguous pipelines, and say each better one; its value as a bound once it is proven the best."""
    from placedsl.algorithms.pipelines.large_neighbourhood_search import begin, run

    search = begin(problem, start, seed)
    leave = _Leave(channel)
    for better in run(search):
        leave.after(np.inf if search.best is None else search.best.value, better)
        if better and search.best is not None:
            channel.report(search.best.placement, -np.inf)
    if search.proven and search.best is not None:
        channel.report(search.best.placement, search.best.value)


def prove_bounds(channel: PlannerChannel, problem: Problem) -> None:
    """Say ever better lower bounds, until the best placement is proven or there is no more to be had."""
    from placedsl.algorithms.partitions.bounds.streams import proven_bounds

    for bound in proven_bounds(problem, upper=lambda: channel.best, exchange=channel):
        channel.report(None, bound.value, by=bound.by, certificate=bound.certificate)


def prove_threshold(channel: PlannerChannel, problem: Problem, share: float) -> None:
    """Say ever better partition bounds, from thresholds at this share of what is open between bound and value."""
    from placedsl.algorithms.partitions.bounds.partition import partition_bounds

    for bound in partition_bounds(
        problem, upper=lambda: channel.best, over=lambda: False, lower=lambda: channel.bound, share=share,
        exchange=channel,
    ):  # fmt: skip
        channel.report(None, bound.value, by=bound.by, certificate=bound.certificate)


def _prices_prove_more(problem: Problem) -> bool:
    """Whether prices of sets are a better bound than superblocks and boundaries are: graphs have to be small enough for
    them, and stages more than the superblocks of a program."""
    return len(problem.machine.devices) > _ALL_STAGES and problem.graph.nodes <= _MOST_PRICED


def prove_superblocks(channel: PlannerChannel, problem: Problem, part: str = "") -> None:
    """Say ever better lower bounds of pipelines of like devices, from quick to strong.

    ``part``: "two", "four" or "boundaries" for one of them alone.
    """
    from placedsl.algorithms.partitions.bounds.boundaries import boundary_bounds
    from placedsl.algorithms.partitions.bounds.boundary_positions import position_bounds
    from placedsl.algorithms.partitions.bounds.superblock_program import pipeline_of
    from placedsl.algorithms.partitions.bounds.superblocks import prove_superblocks as prove

    def told(bound: Bound | None, placement: Integers | None = None) -> None:
        if bound is None:
            channel.report(placement, -np.inf)
        else:
            channel.report(placement, bound.value, by=bound.by, certificate=bound.certificate)

    pipeline = pipeline_of(problem)
    if pipeline is None:
        return
    patient, known = _prices_prove_more(problem), max(pipeline.simple, channel.bound)
    best, behind = known, False

    def proven(blocks: int) -> None:
        nonlocal behind
        if patient and not behind:
            step_back()
            behind = True
        prove(problem, lambda: channel.best, lambda: False, told, blocks=(blocks,), patient=patient)

    def boundaries() -> None:
        nonlocal best
        for bound in boundary_bounds(pipeline, known, lambda: channel.best, lambda: False):
            told(bound)
            best = bound.value

    def positions() -> None:
        if best > known:  # stages follow one another
            for bound in position_bounds(pipeline, best, lambda: channel.best, lambda: False):
                told(bound)

    steps: dict[str, Callable[[], None]] = {
        "two": partial(proven, 2), "four": partial(proven, _ALL_STAGES),
        "boundaries": boundaries, "positions": positions,
    }  # fmt: skip
    names: tuple[str, ...]
    if part:
        names = ("boundaries", "positions") if part == "boundaries" else (part,)
    elif len(pipeline.work) > _LONG:
        names = ("boundaries", "positions", "two", "four")
    elif pipeline.devices <= _ALL_STAGES:  # each superblock is one
        names = ("two", "four", "boundaries", "positions")
    else:
        names = ("two", "boundaries", "four", "positions")
    for name in names:
        steps[name]()


def search_stages(channel: PlannerChannel, problem: Problem, start: Integers | None, seed: int) -> None:
    """Search for contiguous pipelines by annealing, for ever, and say each better one."""
    from placedsl.algorithms.partitions.stage_annealing import begin, run
    from placedsl.algorithms.pipelines.solve import sliced

    if start is None and len(set(problem.interchangeable().tolist())) > 1:
        start = sliced(problem).placement
    search = begin(problem, start, seed)
    if search.value < channel.best:
        channel.report(search.placement, -np.inf)
    leave = _Leave(channel)
    for better in run(search):
        leave.after(search.value, better)
        if better:
            channel.report(search.placement, -np.inf)


def searchers(workers: int) -> int:
    """How many of so many cores (0: all there are) search while a solver has the others; one at least."""
    return max(1, (workers or os.cpu_count() or 1) // 2)


@dataclass(frozen=True)
class MemberRow:
    """What may run beside a solver: a name, what it supports, and its members for a run.

    ``members``  of a problem, the best placement (None: none), the cores (0: all) and the seed
    ``fits``     whether it is for a problem that it supports
    ``further``  what else it does where there are more machines, in this order: of a problem, what the best placement
                 is by then, and the seed
    """

    name: str
    supports: Supports
    members: Callable[[Problem, Integers | None, int, int], list[Member]]
    fits: Callable[[Problem], bool] = lambda _: True
    further: Callable[[Problem, Callable[[], Integers | None], int], Iterator[Member]] = lambda *_: iter(())


def _pipelines(problem: Problem, start: Integers | None, _workers: int, seed: int) -> list[Member]:
    known = not reasons_against(problem, stage_annealing.SUPPORTS) and stage_annealing.fits(problem)
    later = LATER_S if known and not pipeline_search.fits_a_step(problem) else 0.0
    return [Member("the search for pipelines", search_pipelines, (problem, start, seed), later)]


def _splits(problem: Problem, start: Integers | None, workers: int, seed: int) -> list[Member]:
    units = partition_units(problem)
    device = None if start is None else units.device_of(start)
    seeds = [seed + _SEEDS_APART * i for i in range(searchers(workers))]
    return [Member(f"search {i + 1}", search_splits, (units, device, own)) for i, own in enumerate(seeds)]


def _routed_splits(problem: Problem, start: Integers | None, workers: int, seed: int) -> list[Member]:
    if costs_by_device(problem) or not routed_search.fits(problem):
        return []  # the searches above know all costs; or there are too many ways
    seeds = [seed + _SEEDS_APART * i for i in range(searchers(workers))]
    return [Member(f"search {i + 1}", search_routed_splits, (problem, start, own)) for i, own in enumerate(seeds)]


def _stages(problem: Problem, start: Integers | None, _workers: int, seed: int) -> list[Member]:
    return [Member("annealing of stages", search_stages, (problem, start, seed))]


def _superblocks(problem: Problem, _start: Integers | None, _workers: int, _seed: int) -> list[Member]:
    later = LATER_S if _prices_prove_more(problem) else 0.0
    return [Member("the bound by superblocks", prove_superblocks, (problem,), later)]


def _bound(problem: Problem, _start: Integers | None, _workers: int, _seed: int) -> list[Member]:
    return [Member("the partition bound", prove_bounds, (problem,))]


def further_seeds(seed: int) -> Iterator[tuple[int, int]]:
    """Numbers and seeds of searches beyond those of this machine; they depend on the seed of the run alone."""
    for i in itertools.count(FIRST_FURTHER):
        yield i + 1, seed + _SEEDS_APART * i


def _further_pipelines(problem: Problem, start: Callable[[], Integers | None], seed: int) -> Iterator[Member]:
    kind = "the search for pipelines"
    own = (
        Member(f"{kind} {number}", search_pipelines, (problem, start(), own), kind=kind)
        for number, own in further_seeds(seed)
    )
    return in_turn(own, around_pipelines, problem)


def _further_splits(problem: Problem, start: Callable[[], Integers | None], seed: int) -> Iterator[Member]:
    units = partition_units(problem)

    def own() -> Iterator[Member]:
        for number, own in further_seeds(seed):
            known = start()
            device = None if known is None else units.device_of(known)
            yield Member(f"search {number}", search_splits, (units, device, own), kind="search for splits")

    return in_turn(own(), around_splits, units)


def _further_routes(problem: Problem, start: Callable[[], Integers | None], seed: int) -> Iterator[Member]:
    if costs_by_device(problem) or not routed_search.fits(problem):
        return
    for number, own in further_seeds(seed):
        arguments = (problem, start(), own)
        yield Member(f"search {number}", search_routed_splits, arguments, kind="search for splits over routes")


def _further_stages(problem: Problem, start: Callable[[], Integers | None], seed: int) -> Iterator[Member]:
    kind = "annealing of stages"
    for number, own in further_seeds(seed):
        yield Member(f"{kind} {number}", search_stages, (problem, start(), own), kind=kind)


def _parts_of_superblocks(problem: Problem, _start: object, _seed: int) -> Iterator[Member]:
    for part in ("boundaries", "four", "two"):
        words = "the bound by boundaries" if part == "boundaries" else f"the bound by {part} superblocks"
        yield Member(words, prove_superblocks, (problem, part))


def _thresholds(problem: Problem, _start: object, _seed: int) -> Iterator[Member]:
    kind = "the partition bound from a threshold"
    for number in range(1, _MOST_THRESHOLDS + 1):
        yield Member("the partition bound", prove_threshold, (problem, _spread(number)), kind=kind)


def _spread(number: int) -> float:
    """The number's bits behind the point, the last one first: 1/2, 1/4, 3/4, 1/8, 5/8, 3/8, ….  Wherever the sequence
    ends, its numbers lie about as far apart as they can."""
    return int(f"{number:b}"[::-1], 2) / float(2 ** number.bit_length())


#: Searches where they know all that a problem asks for, bounds where they hold.
MEMBERS: tuple[MemberRow, ...] = (
    MemberRow("annealing of stages", stage_annealing.SUPPORTS, _stages, stage_annealing.fits, _further_stages),
    MemberRow("the search for pipelines", pipeline_search.SUPPORTS, _pipelines, further=_further_pipelines),
    MemberRow("searches for splits", local_search.SUPPORTS, _splits, further=_further_splits),
    MemberRow("searches for splits over routes", routed_search.SUPPORTS, _routed_splits, further=_further_routes),
    MemberRow("the bound by superblocks", superblocks.SUPPORTS, _superblocks, superblocks.fits, _parts_of_superblocks),
    MemberRow("the partition bound", relaxation.SUPPORTS, _bound, further=_thresholds),
)


def beside(problem: Problem) -> tuple[str, ...]:
    """The names of what may run beside a solver for this problem."""
    routed = not costs_by_device(problem)
    rows = (row for row in MEMBERS if routed or row.supports is not routed_search.SUPPORTS)
    return tuple(row.name for row in rows if not reasons_against(problem, row.supports) and row.fits(problem))


def members_for(problem: Problem, start: Integers | None, workers: int, seed: int) -> list[Member]:
    """What may run beside a solver for this problem."""
    rows = (row for row in MEMBERS if not reasons_against(problem, row.supports) and row.fits(problem))
    return [member for row in rows for member in row.members(problem, start, workers, seed)]


def further_members(problem: Problem, start: Callable[[], Integers | None], seed: int) -> Iterator[Member]:
    """What may run on further machines, the most useful first: one of each kind in turn, as long as there are any."""
    rows = [row for row in MEMBERS if not reasons_against(problem, row.supports) and row.fits(problem)]
    kinds = [row.further(problem, start, seed) for row in rows]
    while kinds:
        for kind in list(kinds):
            member = next(kind, None)
            if member is None:
                kinds.remove(kind)
            else:
                yield member
