"""The members that there are for a problem, and how the cores are shared out."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from placedsl.algorithms import local_search
from placedsl.algorithms.split import Units, units_of
from placedsl.graph.graph import Integers
from placedsl.portfolio.portfolio import Member, Say
from placedsl.problem import Problem

#: The seeds of two searches of one run lie this far apart.
_SEEDS_APART = 7919


def search_splits(say: Say, units: Units, start: Integers | None, seed: int) -> None:
    """Search for splits for ever, and say each better one."""
    from placedsl.algorithms.split_search import begin, run

    search = begin(units.split, start, seed)
    if start is None and np.isfinite(search.value):
        say(units.placement(search.best), -np.inf)
    for better in run(search):
        if better:
            say(units.placement(search.best), -np.inf)


def searchers(workers: int) -> int:
    """How many of so many cores (0: all there are) search while a solver has the others; one at least."""
    return max(1, (workers or os.cpu_count() or 1) // 2)


def members_for(problem: Problem, start: Integers | None, workers: int, seed: int) -> list[Member]:
    """What may run beside a solver for this problem; nothing where no search knows all its rules."""
    if not local_search.fits(problem):
        return []
    units = units_of(problem)
    device = None if start is None else units.device_of(start)
    search: Callable[..., None] = search_splits
    seeds = [seed + _SEEDS_APART * i for i in range(searchers(workers))]
    return [Member(f"search {i + 1}", search, (units, device, own)) for i, own in enumerate(seeds)]
