"""The members for one sample's latency: searches for placements and orders, and lower bounds."""

from __future__ import annotations

import dataclasses
import os
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np

from placedsl.cost.expressions import OwnValues
from placedsl.expressions import Provided
from placedsl.graph.graph import Integers
from placedsl.portfolio.dataflow_members import bound_dataflow, search_dataflow
from placedsl.portfolio.members import searchers
from placedsl.portfolio.portfolio import Link, Member
from placedsl.problem import Problem

#: The seeds of two searches of one run lie this far apart.
_SEEDS_APART = 7919
#: Rules that searches know; random schedules of calls for a start.
_KNOWN, _STARTS = ("memory", "sequential", "congestion", "colocated"), 50
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
    if (method, solver) != ("auto", "auto") or len(problem.objectives) > 1:
        return False
    return columns(problem) > _MOST_COLUMNS


def columns(problem: Problem) -> int:
    """How many columns a program would have, about."""
    nodes, tensors, devices = problem.graph.nodes, problem.graph.tensors, len(problem.machine.devices)
    if problem.schedule == "calls":
        return (nodes + 2 * tensors) * devices * problem.pieces
    return nodes * devices + tensors * devices * devices


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


def members_for_a_start(problem: Problem, seed: int) -> list[Member]:
    """A search that leaves out what it does not know, where the spec asks for more than searches know.

    What it finds counts where it happens to keep that as well; no bound of it does.
    """
    if problem.variables or problem.own_formulations or problem.schedule not in ("calls", "dataflow"):
        return []
    kept = tuple(rule for rule in problem.rules if rule.built_in in _KNOWN)
    goal = replace(problem.objectives[0], name="latency", body=Provided("latency", (), problem.objectives[0].span))
    simple = replace(problem, rules=kept, objectives=(goal,), soft=())
    return [] if against(simple) else [Member("a search for a start", search_a_start, (simple, seed))]


def search_a_start(link: Link, problem: Problem, seed: int) -> None:
    """Say many schedules, good and bad ones; where none of them will do, the ever better ones of a search."""
    if problem.schedule == "calls":
        from placedsl.algorithms.calls import answer_of, calls_of, latency_of
        from placedsl.algorithms.calls_start import filled

        calls, rng = calls_of(problem), np.random.default_rng(seed)
        for _ in range(_STARTS):
            place = filled(calls, rng)
            if place is not None and np.isfinite(latency_of(calls, place)):
                answer = answer_of(calls, place)
                link.say(answer.placement, -np.inf, answer.values)
        with suppress(_EndedError):
            search_calls(_UntilFound(link), problem, seed)
        return
    from placedsl.algorithms.dataflow.arrays import flow_of
    from placedsl.algorithms.dataflow.kernel import schedule, values_of
    from placedsl.algorithms.dataflow.starts import starts

    flow = flow_of(problem)
    for order in starts(flow):
        _, times = schedule(flow, order)
        link.say(order.device, -np.inf, values_of(times))
    with suppress(_EndedError):
        search_dataflow(_UntilFound(link), problem, None, seed)


class _EndedError(Exception):
    """A start has been found."""


class _UntilFound:
    """A line to the planner until that has a placement; bounds are those of another problem, and are not told."""

    best = np.inf

    def __init__(self, link: Link) -> None:
        self.link = link

    def say(self, placement: Integers | None, bound: float, values: OwnValues | None = None) -> None:  # noqa: ARG002
        """Tell of a placement."""
        if self.link.best < np.inf:
            raise _EndedError
        if placement is not None:
            self.link.say(placement, -np.inf, values)


def _searches(number: int, seed: int) -> list[tuple[str, int]]:
    """Names and seeds of searches."""
    return [(f"search {i + 1}", seed + _SEEDS_APART * i) for i in range(number)]
