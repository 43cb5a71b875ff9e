"""Members that solve subproblems around the best placement of all, each another one: large neighbourhood search that
is shared out.

A search of its own goes on from its own best placement.  These go on from the planner's, and tell one another which
neighbourhoods of it they have begun.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from placedsl.algorithms.partitions.instance import PartitionUnits
from placedsl.algorithms.shared_neighbourhoods import SharedNeighbourhoods
from placedsl.arrays import Integers
from placedsl.planner.portfolio.portfolio import Member, PlannerChannel
from placedsl.problem.problem import Problem

#: Seconds between two looks for a first placement.
_LOOK_S = 0.1
#: What such a member is one of.
KIND = "subproblems of neighbourhoods"
#: Of so many each hears which neighbourhoods the others have begun; more of them would mostly hear.
MOST = 16


def around_splits(channel: PlannerChannel, units: PartitionUnits, seed: int) -> None:
    """Improve the planner's best split for ever, and say each better one."""
    from placedsl.algorithms.partitions.search import improve_around, search_from

    shared = SharedNeighbourhoods(channel)
    search = search_from(units.instance, units.device_of(_first(channel)), seed)
    if search.value < channel.best:  # even segments, which the search knows too
        channel.report(units.placement(search.best), -np.inf)
    if len(units.instance.capacity) < 2:
        return
    while search.value > 0.0:
        if channel.best < search.value and channel.placement is not None:
            search.take(units.device_of(channel.placement))
        if improve_around(search, shared):
            channel.report(units.placement(search.best), -np.inf)


def around_pipelines(channel: PlannerChannel, problem: Problem, seed: int) -> None:
    """Improve the planner's best pipeline, and say each better one; its value as a bound once it is proven the best."""
    from placedsl.algorithms.pipelines.large_neighbourhood_search import begin, improve_around, valued

    shared, in_vain = SharedNeighbourhoods(channel), 0
    search = begin(problem, _first(channel), seed)
    while not search.proven:
        placement = channel.placement
        if channel.best < search.value and placement is not None and search.take(valued(problem, placement)):
            in_vain = 0
        better = improve_around(search, in_vain, shared)
        in_vain = 0 if better else in_vain + 1
        if better and search.best is not None:
            channel.report(search.best.placement, -np.inf)
    if search.best is not None:
        channel.report(search.best.placement, search.best.value)


def in_turn(
    searches: Iterator[Member], work: Callable[..., None], problem: Problem | PartitionUnits
) -> Iterator[Member]:
    """Searches of their own, and after each of the first ones a member that improves the best placement of all.

    ``work``  of ``problem`` and the seed of the search before it
    """
    for number, member in enumerate(searches, start=1):
        yield member
        if number <= MOST:
            yield Member(f"{KIND} {number}", work, (problem, member.arguments[-1]), kind=KIND)


def _first(channel: PlannerChannel) -> Integers:
    """The planner's best placement, as soon as it has one."""
    while (placement := channel.placement) is None:
        time.sleep(_LOOK_S)
    return placement
