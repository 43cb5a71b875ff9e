"""Throughput of contiguous placements: when the dynamic program over ideals applies, and running it.

Exact where every rule of the spec is one that the program knows.  Where there are further rules, it solves
the problem without them: the value is then a bound, and its placement the answer if it happens to satisfy them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from placedsl.algorithms import ideal_dp
from placedsl.algorithms.chains import chains
from placedsl.algorithms.gpipe import best_sum
from placedsl.algorithms.grouped import best_grouped, classes_of, grouped
from placedsl.algorithms.ideals import count
from placedsl.algorithms.simple_bound import simple_bound
from placedsl.algorithms.stages import (
    DeviceClasses,
    Stages,
    after_computation,
    beside_computation,
    both_ways,
    device_classes,
)
from placedsl.algorithms.threshold import Pipeline
from placedsl.expressions import Provided
from placedsl.graph.contraction import Quotient, contract
from placedsl.graph.graph import Integers
from placedsl.problem import Problem

#: More ideals than this are not counted.
MOST_COUNTED = 1_000_000_000


_TOO_MANY = "more than {:,} ideals, the sets that the search is over, matter here"

#: What a stage costs under each schedule.
_STAGES: dict[str, Callable[[Quotient, DeviceClasses], Stages]] = {
    "pipedream": after_computation, "overlapped": beside_computation, "duplex": both_ways,
}  # fmt: skip


def _stages(problem: Problem, quotient: Quotient, classes: DeviceClasses) -> Stages:
    # Under gpipe the sum of both passes still makes good starts.
    return _STAGES.get(problem.schedule, after_computation)(quotient, classes)


@dataclass(frozen=True)
class Fit:
    """Whether the dynamic program answers this problem.

    ``against`` says why it does not apply at all; ``beyond`` names rules that it leaves out (it then
    gives a bound).  ``ideals`` is their number, or None when there are too many to be counted.
    """

    against: tuple[str, ...]
    beyond: tuple[str, ...]
    ideals: int | None
    units: int

    @property
    def exact(self) -> bool:
        """It solves the problem as it stands."""
        return not self.against and not self.beyond


@dataclass(frozen=True, eq=False)
class Found:
    """What a run gave: device of each node (None: nothing fits), its value, a proven bound of the problem that was
    solved, whether the search was complete, and whether no placement that good has fewer devices.  ``copies``: how many
    devices share what is on each device, where several may."""

    placement: Integers | None
    value: float
    bound: float
    complete: bool
    fewest: bool = False
    message: str = ""
    copies: Mapping[int, int] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, dict[tuple[int, ...], float]]:
        """The spec's variables: how many devices share what is on each, where several may."""
        return {"copies": {(d,): float(number) for d, number in self.copies.items()}} if self.copies else {}


def structure(problem: Problem) -> list[str]:
    """Why the problem is not one of finding the best pipeline, in the user's words."""
    against = []
    goal = problem.objectives[0].body
    if not (isinstance(goal, Provided) and goal.name == "time_per_sample"):
        against.append(f"it minimises time_per_sample, not {problem.objectives[0].name}")
    if problem.schedule not in (*_STAGES, "gpipe"):
        against.append(f"it does not know schedule {problem.schedule}")
    if problem.replication is not None and problem.machine.levels > 1:
        against.append("it does not know parallelism on clusters within clusters")
    if problem.own_formulations:
        against.append("it does not look at formulations, and the spec has its own")
    if problem.rule("contiguous") is None:
        against.append("it needs 'contiguous': pieces that need not be contiguous are no chain of ideals")
    return against


def left_out(problem: Problem) -> list[str]:
    """The rules and further objectives that the dynamic program does not look at."""
    known = ("memory", "contiguous", "convex", "colocated")
    out = [r.name for r in problem.rules if r.built_in not in known]
    out += [f"variable {name}" for name in problem.variables if name != "copies" or problem.replication is None]
    if problem.machine.levels > 1:
        out.append("clusters within clusters")
    for further in problem.objectives[1:2]:
        if not (isinstance(further.body, Provided) and further.body.name == "devices_used"):
            out.append(f"then {further.name}")
    return out + [f"then {o.name}" for o in problem.objectives[2:]]


def fits(problem: Problem) -> Fit:
    """Look at a problem without solving it; counts the ideals."""
    against = structure(problem)
    quotient, _ = pipeline_of(problem)
    number = None
    if not against:
        cover = chains(quotient.units, quotient.before, quotient.after)
        number = None if cover is None else count(cover, MOST_COUNTED)
    return Fit(tuple(against), tuple(left_out(problem)), number, quotient.units)


def most_stored(classes: DeviceClasses, most: int | None = None) -> int:
    """The budget for ideals that are stored: fewer where a state has many device counts."""
    return min(ideal_dp.MOST_IDEALS if most is None else most, ideal_dp.MOST_ENTRIES // classes.states)


def pipeline_of(problem: Problem) -> tuple[Quotient, DeviceClasses]:
    """The contracted graph with contiguity required, and the classes of like devices."""
    limited = problem.rule("memory") is not None
    memory = problem.device_memory if limited else np.full(len(problem.machine.devices), np.inf)
    nested = problem.machine.levels > 1  # not looked at
    kinds = problem.interchangeable(clustered=False) if nested else classes_of(problem)
    classes = device_classes(kinds, memory)
    sample = [members[0] for members in classes.devices]
    graph = problem.graph
    quotient = contract(
        memory=graph.memory,
        work=problem.time.T[sample],
        groups=problem.colocation_groups(),
        before=problem.before,
        after=problem.after,
        tensor_producer=graph.tensor_producer,
        read_tensor=graph.edge_tensor,
        read_node=graph.edge_target,
        transfer=problem.transfer.T[sample],
    )
    return quotient, classes


def sliced(problem: Problem) -> Found:
    """The best cut of a few topological orders into contiguous pieces: quick, and good as a start."""
    quotient, classes = pipeline_of(problem)
    found = ideal_dp.sliced(_stages(problem, quotient, classes))
    placement = None if found.device is None else found.device[quotient.unit_of_node]
    return Found(placement, found.value, simple_bound(problem), False)


def solve(
    problem: Problem,
    *,
    deadline: float | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[Integers, float, float], None] | None = None,
    most: int | None = None,
    at_most: float = np.inf,
) -> Found:
    """Run the dynamic program; ``progress`` hears of (placement, value, bound) of the start.

    ``bound`` is that of the problem with the rules that the program knows.  Only values below ``at_most`` are of
    interest (gpipe heeds no such limit): where there are none, a complete run finds no placement.
    """
    quotient, classes = pipeline_of(problem)
    bound = simple_bound(problem)

    def begun(device: Integers, value: float) -> None:
        if progress is not None:
            progress(device[quotient.unit_of_node], value, bound)

    stored = most_stored(classes, most)
    limits = ideal_dp.Limits(deadline, stop, stored)
    if grouped(problem) and problem.machine.levels <= 1:
        return _grouped(problem, quotient, classes, limits, bound, progress)
    if problem.schedule == "gpipe":
        found = best_sum(problem, quotient, classes, limits, begun)
    else:
        stages = _stages(problem, quotient, classes)
        found = ideal_dp.best_pipeline(stages, limits, at_least=bound, at_most=at_most, progress=begun)
        bound = max(bound, found.bound)
    placement = None if found.device is None else found.device[quotient.unit_of_node]
    message = _TOO_MANY.format(stored) if found.too_many else ""
    return Found(
        placement, found.value, found.value if found.complete else bound, found.complete, found.fewest, message
    )


def _grouped(
    problem: Problem,
    quotient: Quotient,
    classes: DeviceClasses,
    limits: ideal_dp.Limits,
    bound: float,
    progress: Callable[[Integers, float, float], None] | None,
) -> Found:
    """With clusters, or stages that several devices share."""

    def begun(pipeline: Pipeline) -> None:
        # Only where the placement alone says it all.
        if progress is not None and problem.replication is None:
            progress(pipeline.device[quotient.unit_of_node], pipeline.value, bound)

    found = best_grouped(problem, quotient, classes, _STAGES[problem.schedule], limits, bound, begun)
    placement = None if found.device is None else found.device[quotient.unit_of_node]
    message = _TOO_MANY.format(limits.most) if found.too_many else ""
    proven = found.value if found.complete else max(bound, found.bound)
    copies = {d: len(group) for d, group in found.groups.items()} if problem.replication is not None else {}
    return Found(placement, found.value, proven, found.complete, found.fewest, message, copies)
