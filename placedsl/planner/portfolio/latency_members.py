"""The members for one sample's latency: searches for placements and orders, and lower bounds."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from placedsl.algorithms.exchange import Key
from placedsl.algorithms.supports import PLACING, reasons_against
from placedsl.arrays import Integers
from placedsl.planner.portfolio.operator_scheduling_members import bound_dataflow, search_dataflow
from placedsl.planner.portfolio.portfolio import Member, PlannerChannel
from placedsl.planner.portfolio.throughput_members import FIRST_FURTHER, further_seeds, searchers
from placedsl.problem.expressions import Provided
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values

#: The seeds of two searches of one run lie this far apart.
_SEEDS_APART = 7919
#: So many processes of further machines refine blocks at most: more of them are seldom refined at a time.
_MOST_BOUNDS = 16
#: Constraints that searches know; random schedules of calls for a start.
_KNOWN, _STARTS = PLACING | {"sequential", "congestion"}, 50
#: A program with more columns than this is not made unasked: solvers hardly get through its first relaxation.
_MOST_COLUMNS = 8_000
#: Seconds at most, and the share of the run, for schedules with one call an accelerator where there may be several.
_SINGLE, _SINGLE_SHARE = 20.0, 0.2


def search_calls(channel: PlannerChannel, problem: Problem, seed: int) -> None:
    """Search for splits into calls for ever, and say each better one."""
    from placedsl.algorithms.subgraph_calls.search import run, search_problem

    search = search_problem(problem, None, seed)
    for better in run(search):
        if better and search.value < channel.best and (answer := search.answer) is not None:
            channel.report(answer.placement, -np.inf, answer.values)


def bound_calls(channel: PlannerChannel, problem: Problem, left: float | None) -> None:
    """Say ever better lower bounds, and the placements that are found on the way; waits for no search.

    ``left``: the seconds of the run: parts that would take too many of them are given up.
    """
    from placedsl.algorithms.subgraph_calls.bounds.ideal_dp import proven_bounds

    deadline = None if left is None else time.monotonic() + left
    if problem.execution.slots > 1:
        single = replace(problem, execution=replace(problem.execution, slots=1))
        seconds = _SINGLE if left is None else min(_SINGLE, _SINGLE_SHARE * left)
        for _, answer in proven_bounds(single, upper=lambda: channel.best, deadline=time.monotonic() + seconds):
            if answer is not None:
                channel.report(answer.placement, -np.inf, answer.values)
    for bound, answer in proven_bounds(problem, upper=lambda: channel.best, deadline=deadline):
        if answer is None:
            channel.report(None, bound)
        else:
            channel.report(answer.placement, bound, answer.values)


def against(problem: Problem) -> list[str]:
    """Why no search knows all that the problem asks for, in the user's words; empty where one does."""
    # These bring compiled kernels: not for every run.
    if problem.execution.run == "subgraph_calls":
        from placedsl.algorithms.subgraph_calls import instance as calls

        return reasons_against(problem, calls.SUPPORTS)
    from placedsl.algorithms.operator_scheduling.list_scheduling import listing

    return reasons_against(problem, listing.SUPPORTS)


def alone(problem: Problem, method: str | None, solver: str | None) -> bool:
    """Whether searches are left to themselves: nothing else is asked for, and a program would be too large to help."""
    if (method, solver) != ("auto", "auto") or len(problem.objectives) > 1:
        return False
    return columns(problem) > _MOST_COLUMNS


def columns(problem: Problem) -> int:
    """How many columns a program would have, about."""
    nodes, tensors, devices = problem.graph.nodes, problem.graph.tensors, len(problem.machine.devices)
    if problem.execution.run == "subgraph_calls":
        return (nodes + 2 * tensors) * devices * problem.execution.slots
    return nodes * devices + tensors * devices * devices


def members_for_one_sample(
    problem: Problem, workers: int, seed: int, left: float | None, *, alone: bool
) -> list[Member]:
    """Searches and bounds that know all that the problem asks for, for a run of so many seconds.

    ``alone``: no solver takes any of the cores.
    """
    if against(problem):
        return []
    # The bounds have a core of their own: searches that share it find no more, and what is proven comes later.
    number = max(1, (workers or os.cpu_count() or 1) - 1) if alone else searchers(workers)
    if problem.execution.run == "subgraph_calls":
        members = [Member(name, search_calls, (problem, own)) for name, own in _searches(number, seed)]
        return [*members, Member("dynamic programming over ideals", bound_calls, (problem, left))]
    members = [Member(name, search_dataflow, (problem, None, own)) for name, own in _searches(number, seed)]
    return [*members, Member("the bounds of times and work", bound_dataflow, (problem, left))]


def further_members_for_one_sample(problem: Problem, seed: int) -> Iterator[Member]:
    """For further machines searches with other seeds, and of schedules the bounds of blocks in turn with them."""
    if against(problem):
        return
    calls = problem.execution.run == "subgraph_calls"
    for number, own in further_seeds(seed):
        if calls:
            yield Member(f"search {number}", search_calls, (problem, own), kind="search for calls")
        else:
            yield Member(f"search {number}", search_dataflow, (problem, None, own), kind="search for schedules")
            if (turn := number - FIRST_FURTHER) <= _MOST_BOUNDS:
                yield Member(
                    "the bounds of times and work", bound_dataflow, (problem, None, turn), kind="bounds of blocks"
                )


def members_for_a_start(problem: Problem, seed: int) -> list[Member]:
    """A search that leaves out what it does not know, where the spec asks for more than searches know.

    What it finds counts where it happens to keep that as well; no bound of it does.
    """
    if problem.variables or problem.has_user_formulations or not problem.execution.one_sample:
        return []
    kept = tuple(rule for rule in problem.constraints if rule.equivalent in _KNOWN)
    goal = replace(problem.objectives[0], name="latency", body=Provided("latency", (), problem.objectives[0].span))
    simple = replace(problem, constraints=kept, objectives=(goal,), soft_constraints=())
    return [] if against(simple) else [Member("a search for a start", search_a_start, (simple, seed))]


def search_a_start(channel: PlannerChannel, problem: Problem, seed: int) -> None:
    """Say many schedules, good and bad ones; where none of them will do, the ever better ones of a search."""
    if problem.execution.run == "subgraph_calls":
        from placedsl.algorithms.subgraph_calls.initial_placements import fill_accelerators
        from placedsl.algorithms.subgraph_calls.instance import call_instance, call_placement, latency_of

        instance, rng = call_instance(problem), np.random.default_rng(seed)
        for _ in range(_STARTS):
            place = fill_accelerators(instance, rng)
            if place is not None and np.isfinite(latency_of(instance, place)):
                answer = call_placement(instance, place)
                channel.report(answer.placement, -np.inf, answer.values)
        with suppress(_EndedError):
            search_calls(_UntilFound(channel), problem, seed)
        return
    from placedsl.algorithms.operator_scheduling.instance import scheduling_instance
    from placedsl.algorithms.operator_scheduling.schedule_kernel import schedule_of, values_of
    from placedsl.algorithms.operator_scheduling.search.initial_orders import initial_orders

    scheduling = scheduling_instance(problem)
    for sequence in initial_orders(scheduling):
        _, times = schedule_of(scheduling, sequence)
        channel.report(sequence.device, -np.inf, values_of(times))
    with suppress(_EndedError):
        search_dataflow(_UntilFound(channel), problem, None, seed)


class _EndedError(Exception):
    """A start has been found."""


class _UntilFound:
    """A line to the planner until that has a placement; bounds are those of another problem, and are not told."""

    best, bound = np.inf, -np.inf
    placement: Integers | None = None

    def __init__(self, channel: PlannerChannel) -> None:
        self.channel = channel

    def report(
        self, placement: Integers | None, bound: float, values: Values | None = None, by: str = "",
        certificate: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Tell of a placement."""
        del bound, by, certificate  # of another problem
        if self.channel.best < np.inf:
            raise _EndedError
        if placement is not None:
            self.channel.report(placement, -np.inf, values)

    def tell(self, found: Mapping[Key, float]) -> None:
        """Of another problem as well."""

    def heard(self) -> Mapping[Key, float]:
        """Nothing."""
        return {}


def _searches(number: int, seed: int) -> list[tuple[str, int]]:
    """Names and seeds of searches."""
    return [(f"search {i + 1}", seed + _SEEDS_APART * i) for i in range(number)]
