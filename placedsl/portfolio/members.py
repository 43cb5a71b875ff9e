"""The members that there are for a problem, and how the cores are shared out."""

from __future__ import annotations

import os

import numpy as np

from placedsl.algorithms import local_search, pipeline_search
from placedsl.algorithms.split import Units, units_of
from placedsl.graph.graph import Integers
from placedsl.portfolio.portfolio import Link, Member
from placedsl.problem import Problem

#: The seeds of two searches of one run lie this far apart.
_SEEDS_APART = 7919


def search_splits(link: Link, units: Units, start: Integers | None, seed: int) -> None:
    """Search for splits for ever, and say each better one."""
    from placedsl.algorithms.split_search import begin, run

    search = begin(units.split, start, seed)
    if start is None and np.isfinite(search.value):
        link.say(units.placement(search.best), -np.inf)
    for better in run(search):
        if better:
            link.say(units.placement(search.best), -np.inf)


def search_pipelines(link: Link, problem: Problem, start: Integers | None, seed: int) -> None:
    """Search for contiguous pipelines, and say each better one; its value as a bound once it is proven the best."""
    from placedsl.algorithms.pipeline_search import begin, run

    search = begin(problem, start, seed)
    for better in run(search):
        if better and search.best is not None:
            link.say(search.best.placement, -np.inf)
    if search.proven and search.best is not None:
        link.say(search.best.placement, search.best.value)


def prove_bounds(link: Link, problem: Problem) -> None:
    """Say ever better lower bounds, until the best placement is proven or there is no more to be had."""
    from placedsl.algorithms.bounds import proven_bounds

    for bound in proven_bounds(problem, upper=lambda: link.best):
        link.say(None, bound)


def searchers(workers: int) -> int:
    """How many of so many cores (0: all there are) search while a solver has the others; one at least."""
    return max(1, (workers or os.cpu_count() or 1) // 2)


def members_for(problem: Problem, start: Integers | None, workers: int, seed: int) -> list[Member]:
    """What may run beside a solver for this problem: searches where they know all its rules, bounds where they hold."""
    from placedsl.algorithms.bounds.relaxation import fits  # brings compiled kernels: not for every run

    members = []
    if pipeline_search.fits(problem):
        members.append(Member("the search for pipelines", search_pipelines, (problem, start, seed)))
    if local_search.fits(problem):
        units = units_of(problem)
        device = None if start is None else units.device_of(start)
        seeds = [seed + _SEEDS_APART * i for i in range(searchers(workers))]
        members += [Member(f"search {i + 1}", search_splits, (units, device, own)) for i, own in enumerate(seeds)]
    if fits(problem):
        members.append(Member("the partition bound", prove_bounds, (problem,)))
    return members
