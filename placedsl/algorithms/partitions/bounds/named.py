"""The bounds by name: those of MTPP (Xie et al. 2023), and our own.  Each is a file that says what it proves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.partitions.bounds.bottleneck import bottleneck_bounds
from placedsl.algorithms.partitions.bounds.bound import Bound
from placedsl.algorithms.partitions.bounds.boundaries import boundary_bounds
from placedsl.algorithms.partitions.bounds.boundary_positions import position_bounds
from placedsl.algorithms.partitions.bounds.doubling import doubling_bounds
from placedsl.algorithms.partitions.bounds.flow import flow_bounds
from placedsl.algorithms.partitions.bounds.guess import best_guess_bounds, guess_bounds
from placedsl.algorithms.partitions.bounds.no_dag import no_dag_bounds
from placedsl.algorithms.partitions.bounds.partition import partition_bounds
from placedsl.algorithms.partitions.bounds.relaxation import SUPPORTS, relaxation, unit_in_words
from placedsl.algorithms.partitions.bounds.superblock_program import MOST_COLUMNS, Pipeline, alike, columns, pipeline_of
from placedsl.algorithms.partitions.bounds.superblocks import prove_superblocks
from placedsl.algorithms.partitions.bounds.work import work_bound
from placedsl.algorithms.simple_bounds import SIMPLE, simple_bound
from placedsl.algorithms.supports import reasons_against
from placedsl.problem.problem import Problem

Told = Callable[[Bound], None]


@dataclass(frozen=True)
class NamedBound:
    """A bound by name.

    ``meaning``   what it is, in words;  ``paper``: whether it is a row of MTPP's tables
    ``against``   why it is no bound of a problem, a clause each; empty where it is one
    ``run``       computes it: a problem, a value of a placement that is known (inf: none), seconds (None: no limit),
                  and who is told of increasing bounds; whether the last one is final
    """

    name: str
    meaning: str
    paper: bool
    against: Callable[[Problem], list[str]]
    run: Callable[[Problem, float, float | None, Told], bool]


def _largest_load(problem: Problem) -> list[str]:
    """Why the largest load is not what the problem minimises."""
    return reasons_against(problem, SUPPORTS)


def _work_of_one(problem: Problem) -> list[str]:
    """Why the simple bound is none."""
    goal = [reason for reason in reasons_against(problem, SUPPORTS) if "minimises" in reason]
    return goal or (["it is for pipelines of samples"] if problem.execution.one_sample else [])


def _alike(problem: Problem) -> list[str]:
    return [*_largest_load(problem), *alike(problem), *_unsupported(problem)]


def _unsupported(problem: Problem) -> list[str]:
    runs = np.isfinite(problem.time).all() or bool(alike(problem))
    return [] if runs else ["some operator runs on no device"]


def _pipeline(blocks: int) -> Callable[[Problem], list[str]]:
    """Why a program of so many superblocks (0: of as many as devices) is no bound, or is not stated."""

    def against(problem: Problem) -> list[str]:
        found = _alike(problem)
        devices = len(problem.machine.devices)
        number = blocks or devices
        if not found and (pipeline := pipeline_of(problem)) is not None and columns(pipeline, number) > MOST_COLUMNS:
            found.append(f"its program would have more than {MOST_COLUMNS:,} columns")
        return found

    return against


def _simple(problem: Problem, _upper: float, _seconds: float | None, told: Told) -> bool:
    told(Bound(simple_bound(problem), SIMPLE, {"kind": "simple"}))
    return True


def _work(problem: Problem, _upper: float, _seconds: float | None, told: Told) -> bool:
    told(work_bound(relaxation(problem)))
    return True


def _flow(problem: Problem, upper: float, seconds: float | None, told: Told) -> bool:
    relaxed = relaxation(problem)
    most = np.inf if seconds is None else seconds
    names, began = unit_in_words(problem, relaxed), time.monotonic()
    for bound in flow_bounds(relaxed, names, 0.0, lambda: upper, lambda: False, most):
        told(bound)
    return time.monotonic() - began < most


def _prices(problem: Problem, upper: float, seconds: float | None, told: Told) -> bool:
    deadline = np.inf if seconds is None else time.monotonic() + seconds
    for bound in partition_bounds(problem, upper=lambda: upper, over=lambda: time.monotonic() > deadline):
        told(bound)
    return time.monotonic() < deadline


def _superblocks(blocks: int) -> Callable[[Problem, float, float | None, Told], bool]:
    """So many superblocks (0: as many as devices)."""

    def run(problem: Problem, upper: float, seconds: float | None, told: Told) -> bool:
        def heard(bound: Bound | None, _placement: object) -> None:
            if bound is not None:
                told(bound)

        number = blocks or len(problem.machine.devices)
        return prove_superblocks(problem, lambda: upper, lambda: False, heard, blocks=(number,), seconds=seconds)

    return run


def _boundaries(
    bounds: Callable[[Pipeline, float, Callable[[], float], Callable[[], bool]], Iterator[Bound]],
) -> Callable[[Problem, float, float | None, Told], bool]:
    def run(problem: Problem, upper: float, seconds: float | None, told: Told) -> bool:
        pipeline, deadline = pipeline_of(problem), np.inf if seconds is None else time.monotonic() + seconds
        if pipeline is not None:
            for bound in bounds(pipeline, pipeline.simple, lambda: upper, lambda: time.monotonic() > deadline):
                told(bound)
        return time.monotonic() < deadline

    return run


def _consecutive(problem: Problem) -> list[str]:
    """Why stages have no boundaries."""
    alone = [] if problem.constraint("contiguous") is not None else ["it requires the 'contiguous' constraint"]
    return [*_alike(problem), *alone]


def _bottleneck(name: str) -> Callable[[Problem, float, float | None, Told], bool]:
    return lambda problem, _upper, seconds, told: bottleneck_bounds(problem, name, seconds, told)


#: All of them, those of the paper first.
NAMED: tuple[NamedBound, ...] = (
    NamedBound("simple", "the largest operator, or the even share of the work", True, _work_of_one, _simple),
    NamedBound("bottleneck-no-dag", "bottleneck without its order", True, _pipeline(3),
               _bottleneck("bottleneck-no-dag")),
    NamedBound("bottleneck-no-io", "bottleneck without transfers", True, _pipeline(3), _bottleneck("bottleneck-no-io")),
    NamedBound("bottleneck", "the cheapest stage with an even share of the work", True, _pipeline(3),
               _bottleneck("bottleneck")),
    NamedBound("guess", "one stage, those before and those after; the least over all stages", True, _pipeline(3),
               guess_bounds),
    NamedBound("exact", "the program of all stages", True, _pipeline(0), _superblocks(0)),
    NamedBound("guess-maximum", "as guess, and the largest over all stages", False, _pipeline(3), best_guess_bounds),
    NamedBound("work", "the best division of the work in fractions", False, _largest_load, _work),
    NamedBound("flow", "the cheapest set around one operator, by minimum cuts", False, _largest_load, _flow),
    NamedBound("doubling", "two devices that have as much longer, by a program", False, _pipeline(2), doubling_bounds),
    NamedBound("superblocks-2", "two superblocks of stages", False, _pipeline(2), _superblocks(2)),
    NamedBound("superblocks-4", "four superblocks of stages", False, _pipeline(4), _superblocks(4)),
    NamedBound("no-dag", "the cheapest set with an even share of the work", False, _pipeline(2),
               lambda problem, _upper, seconds, told: no_dag_bounds(problem, seconds, told)),
    NamedBound("boundaries", "what crosses the boundaries of stages, by minimum cuts", False, _consecutive,
               _boundaries(boundary_bounds)),
    NamedBound("positions", "where boundaries can lie, by minimum cuts for so much work", False, _consecutive,
               _boundaries(position_bounds)),
    NamedBound("prices", "prices of operators that no sets within the bound are worth", False, _largest_load, _prices),
)  # fmt: skip
#: By name.
BY_NAME = {one.name: one for one in NAMED}
