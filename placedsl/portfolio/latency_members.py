"""The members for one sample's latency: searches for placements and orders, and lower bounds."""

from __future__ import annotations

import dataclasses
import os
import time

import numpy as np

from placedsl.portfolio.dataflow_members import bound_dataflow, search_dataflow
from placedsl.portfolio.members import searchers
from placedsl.portfolio.portfolio import Link, Member
from placedsl.problem import Problem

#: The seeds of two searches of one run lie this far apart.
_SEEDS_APART = 7919
#: A program with more columns than this is not made unasked: solvers hardly get through its first relaxation.
_MOST_COLUMNS = 8_000
#: Seconds at most, and the share of the run, for schedules with one call an accelerator where there may be several.
_SINGLE, _SINGLE_SHARE = 20.0, 0.2


def search_calls(link: Link, problem: Problem, seed: int) -> None:
    """Search for splits into calls for ever, and say each better one."""
    from placedsl.algorithms.calls_search import begin, run

    search = begin(problem, None, seed)
    for better in run(search):
        if better and search.value < link.best and (answer := search.answer) is not None:
            link.say(answer.placement, -np.inf, answer.values)


def bound_calls(link: Link, problem: Problem, left: float | None) -> None:
    """Say ever better lower bounds, and the placements that are found on the way; waits for no search.

    ``left``: the seconds of the run: parts that would take too many of them are given up.
    """
    from placedsl.algorithms.bounds.calls import proven_bounds

    deadline = None if left is None else time.monotonic() + left
    if problem.pieces > 1:
        single = dataclasses.replace(problem, pieces=1)
        seconds = _SINGLE if left is None else min(_SINGLE, _SINGLE_SHARE * left)
        for _, answer in proven_bounds(single, upper=lambda: link.best, deadline=time.monotonic() + seconds):
            if answer is not None:
                link.say(answer.placement, -np.inf, answer.values)
    for bound, answer in proven_bounds(problem, upper=lambda: link.best, deadline=deadline):
        if answer is None:
            link.say(None, bound)
        else:
            link.say(answer.placement, bound, answer.values)


def against(problem: Problem) -> list[str]:
    """Why no search knows all that the problem asks for, in the user's words; empty where one does."""
    # These bring compiled kernels: not for every run.
    if problem.schedule == "calls":
        from placedsl.algorithms import calls

        return calls.fits(problem)
    from placedsl.algorithms.dataflow import listing

    return list(listing.fits(problem))


def alone(problem: Problem, method: str | None, solver: str | None) -> bool:
    """Whether searches are left to themselves: nothing else is asked for, and a program would be too large to help."""
    nodes, tensors, devices = problem.graph.nodes, problem.graph.tensors, len(problem.machine.devices)
    if (method, solver) != ("auto", "auto") or len(problem.objectives) > 1:
        return False
    if problem.schedule == "calls":
        return (nodes + 2 * tensors) * devices * problem.pieces > _MOST_COLUMNS
    return nodes * devices + tensors * devices * devices > _MOST_COLUMNS


def members_for_one_sample(
    problem: Problem, workers: int, seed: int, left: float | None, *, alone: bool
) -> list[Member]:
    """Searches and bounds that know all that the problem asks for, for a run of so many seconds.

    ``alone``: no solver takes any of the cores.
    """
    if against(problem):
        return []
    number = (workers or os.cpu_count() or 1) if alone else searchers(workers)
    if problem.schedule == "calls":
        members = [Member(name, search_calls, (problem, own)) for name, own in _searches(number, seed)]
        return [*members, Member("dynamic programming over ideals", bound_calls, (problem, left))]
    members = [Member(name, search_dataflow, (problem, None, own)) for name, own in _searches(number, seed)]
    return [*members, Member("the bounds of times and work", bound_dataflow, (problem, left))]


def _searches(number: int, seed: int) -> list[tuple[str, int]]:
    """Names and seeds of searches."""
    return [(f"search {i + 1}", seed + _SEEDS_APART * i) for i in range(number)]
