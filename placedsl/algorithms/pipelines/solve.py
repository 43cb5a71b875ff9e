"""Throughput, or peak memory, of contiguous placements: when the dynamic program over ideals applies, and running it.

Exact where every rule of the spec is one that the program knows.  Where there are further rules, it solves
the problem without them: the value is then a bound, and its placement the answer if it happens to satisfy them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil, isfinite
from typing import TYPE_CHECKING, get_args

import numpy as np

from placedsl.algorithms.ideals.chain_cover import chain_cover
from placedsl.algorithms.ideals.enumeration import count_ideals
from placedsl.algorithms.kernels import begun_plainly
from placedsl.algorithms.pipelines import state_dp
from placedsl.algorithms.pipelines.device_groups import best_with_device_groups, classes_of, uses_device_groups
from placedsl.algorithms.pipelines.placement_result import PlacementResult
from placedsl.algorithms.pipelines.search_limits import MOST_IDEALS, SearchLimits
from placedsl.algorithms.presolve.attached import attached, first_relaxation, said
from placedsl.algorithms.simple_bounds import simple_bound, streamed_bound
from placedsl.algorithms.stages.stage_costs import (
    STAGE_COSTS,
    DeviceClasses,
    StageCostModel,
    StageCosts,
    device_classes,
    memory_costs,
    stage_costs,
)
from placedsl.algorithms.supports import PLACING, Supports, ignored, reasons_against
from placedsl.algorithms.units import placement_units
from placedsl.arrays import Floats, Integers
from placedsl.graph.contraction import Quotient
from placedsl.problem.execution import Execution, Order
from placedsl.problem.expressions import Provided
from placedsl.problem.problem import Problem
from placedsl.records import dataclass
from placedsl.tolerances import EQUAL_COSTS

if TYPE_CHECKING:
    from placedsl.algorithms.pipelines.bottleneck_search import BottleneckResult, GroupedPipeline
    from placedsl.algorithms.pipelines.room import RoomResult
    from placedsl.algorithms.presolve.attached import Relaxation

#: More ideals than this are not counted.
MOST_COUNTED = 1_000_000_000


_TOO_MANY = "more than {:,} ideals, the sets that the search is over, matter here"

#: Both microbatch orders, under any communication whose stage costs are known.
SUPPORTS = Supports(
    objectives=("time_per_sample", "peak_memory"),
    executions=tuple(Execution(order=o, communication=c) for o in get_args(Order) for c in STAGE_COSTS),
    communications=tuple(STAGE_COSTS),
    requires=("contiguous",), constraints=PLACING | {"contiguous", "convex"},
    data_parallelism=True, relaxes=True, further=("devices_used",),
)  # fmt: skip
#: A contiguous split of any problem may be a start for those who go on from there, if stages have costs.
STARTS = Supports(
    communications=tuple(STAGE_COSTS), data_parallelism=True, variables=True, formulations=True, relaxes=True
)


def _minimises_memory(problem: Problem) -> bool:
    goal = problem.objectives[0].body
    return isinstance(goal, Provided) and goal.name == "peak_memory"


def _stage_costs(problem: Problem) -> StageCosts:
    # Under gpipe the sum of both passes still makes good starts.
    if _minimises_memory(problem):
        return memory_costs(problem.accelerators)
    return stage_costs(problem.execution.communication)


def _least(problem: Problem) -> float:
    """What the objective cannot undercut."""
    return 0.0 if _minimises_memory(problem) else max(simple_bound(problem), streamed_bound(problem))


@dataclass(frozen=True)
class Fit:
    """Whether the dynamic program answers this problem.

    ``against`` says why it does not apply at all; ``beyond`` names rules that it leaves out (it then
    gives a bound).  ``ideals`` is their number, or None when there are too many to be counted.  ``presolve``: what is
    done with operators that take no time, in words.
    """

    against: tuple[str, ...]
    beyond: tuple[str, ...]
    ideals: int | None
    units: int
    presolve: str = ""

    @property
    def exact(self) -> bool:
        """It solves the problem as it stands."""
        return not self.against and not self.beyond


def fits(problem: Problem) -> Fit:
    """Look at a problem without solving it; counts the ideals."""
    against = reasons_against(problem, SUPPORTS)
    known = None if against else attached(problem, SUPPORTS)
    quotient, _ = pipeline_of(problem if known is None else first_relaxation(known))
    return Fit(
        tuple(against), tuple(ignored(problem, SUPPORTS)), None if against else ideals_of(quotient), quotient.units,
        "" if known is None else said(known),
    )  # fmt: skip


def ideals_of(quotient: Quotient) -> int | None:
    """How many ideals there are, if they can be counted."""
    cover = chain_cover(quotient.units, quotient.before, quotient.after)
    return None if cover is None else count_ideals(cover, MOST_COUNTED)


def most_stored(classes: DeviceClasses, most: int | None = None) -> int:
    """The budget for ideals that are stored: fewer where a state has many device counts."""
    return min(MOST_IDEALS if most is None else most, state_dp.MOST_ENTRIES // classes.states)


def pipeline_of(problem: Problem) -> tuple[Quotient, DeviceClasses]:
    """The contracted graph with contiguity required, and the classes of like devices."""
    classes = device_classes(classes_of(problem), problem.memory_limits, problem.streaming)
    sample = [int(members[0]) for members in classes.devices]
    return placement_units(problem, contiguous=True, devices=sample), classes


def sliced(problem: Problem) -> PlacementResult:
    """The best cut of a few topological orders into contiguous pieces: quick, and good as a start."""
    quotient, classes = pipeline_of(problem)
    found = state_dp.sliced(_stage_costs(problem)(quotient, classes))
    placement = None if found.device is None else found.device[quotient.unit_of_node]
    return PlacementResult(placement, found.value, _least(problem), False)


def solve(
    problem: Problem,
    *,
    deadline: float | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[Integers, float, float], None] | None = None,
    most: int | None = None,
    at_most: float = np.inf,
) -> PlacementResult:
    """Run the dynamic program; ``progress`` hears of (placement, value, bound) of what is found on the way.

    ``bound`` is that of the problem with the rules that the program knows.  Only values below ``at_most`` are of
    interest (gpipe heeds no such limit): where there are none, a complete run finds no placement.  Operators without
    time are attached to others first, where that loses nothing.
    """
    run = partial(_solve, problem, deadline=deadline, stop=stop, progress=progress, most=most, at_most=at_most)
    return begun_plainly(run, problem.graph.nodes)


def _solve(
    problem: Problem,
    *,
    deadline: float | None,
    stop: Callable[[], bool] | None,
    progress: Callable[[Integers, float, float], None] | None,
    most: int | None,
    at_most: float,
) -> PlacementResult:
    known = attached(problem, SUPPORTS)
    if known is None:
        return searched(problem, deadline=deadline, stop=stop, progress=progress, most=most, at_most=at_most)
    if not known.open.any():
        return searched(known.problem, deadline=deadline, stop=stop, progress=progress, most=most, at_most=at_most)
    from placedsl.algorithms.pipelines.presolved import best_of

    least = _least(known.problem)

    def search(
        smaller: Problem, at_least: float, below: float, soon: bool, behind: Floats | None
    ) -> PlacementResult:  # fmt: skip
        return searched(
            smaller, deadline=deadline, stop=stop, most=most, at_most=below, at_least=at_least, fewest=not soon,
            behind=behind,
        )  # fmt: skip

    def found(better: PlacementResult) -> None:
        if progress is not None and better.placement is not None and problem.execution.data_parallelism is None:
            progress(better.placement, better.value, min(least, better.value))

    def room(smaller: Relaxation, below: float) -> RoomResult:
        return _with_room(smaller, below, SearchLimits(deadline, stop))

    several, states = len(problem.objectives) > 1, uses_device_groups(problem) or problem.execution.order == "gpipe"
    asked = None if several or states or _minimises_memory(problem) else room
    return best_of(known, search, asked, least, at_most, found, fewest=several)


def searched(
    problem: Problem,
    *,
    deadline: float | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[Integers, float, float], None] | None = None,
    most: int | None = None,
    at_most: float = np.inf,
    at_least: float = 0.0,
    fewest: bool = True,
    behind: Floats | None = None,
) -> PlacementResult:
    """The same over the units that there are; ``at_least``: a proven bound, where it may end if not ``fewest``.

    ``behind``: 2 x n memory beside that of the nodes, as :class:`placedsl.algorithms.presolve.attached.Relaxation` has.
    """
    quotient, classes = pipeline_of(problem)
    bound = max(at_least, _least(problem))

    def begun(device: Integers, value: float) -> None:
        if progress is not None:
            progress(device[quotient.unit_of_node], value, bound)

    stored = most_stored(classes, most)
    limits = SearchLimits(deadline, stop, stored)
    if uses_device_groups(problem) or (problem.execution.order == "gpipe" and not _minimises_memory(problem)):
        return _with_device_groups(problem, quotient, classes, limits, bound, progress, at_most, fewest=fewest)
    stages = _stages(problem, quotient, classes, behind)
    found = state_dp.best_pipeline(stages, limits, at_least=bound, at_most=at_most, fewest=fewest, progress=begun)
    bound = max(bound, found.bound)
    placement = None if found.device is None else found.device[quotient.unit_of_node]
    message = _TOO_MANY.format(stored) if found.too_many else ""
    return PlacementResult(
        placement, found.value, _proven(problem, found.value) if found.complete else bound, found.complete,
        found.fewest, message,
    )  # fmt: skip


def _stages(problem: Problem, quotient: Quotient, classes: DeviceClasses, behind: Floats | None) -> StageCostModel:
    stages = _stage_costs(problem)(quotient, classes)
    if behind is None or not behind.any():
        return stages
    beside = [np.bincount(quotient.unit_of_node, one, minlength=quotient.units) for one in behind]
    return replace(stages, behind=np.array(beside))


def _with_room(smaller: Relaxation, below: float, limits: SearchLimits) -> RoomResult:
    """:func:`with_room` for a relaxation, with the device of each node."""
    from placedsl.algorithms.pipelines.room import RoomResult, with_room

    problem, homes = smaller.problem, smaller.homes
    if not len(homes.unit):
        return RoomResult(False)
    quotient, classes = pipeline_of(problem)
    stages = _stages(problem, quotient, classes, smaller.behind)
    unit, reader = (quotient.unit_of_node[smaller.node[one]] for one in (homes.unit, homes.reader))
    # What leaves is paid in one load: where there are several, it is not known which of them is the largest.
    cost = homes.cost if stages.loads == 1 else np.zeros_like(homes.cost)
    found = with_room(stages, replace(homes, unit=unit, reader=reader, cost=cost), below, limits)
    return replace(found, device=None if found.device is None else found.device[quotient.unit_of_node])


def _proven(problem: Problem, value: float) -> float:
    """The bound of a run that found nothing lower: loads that are nearer than :data:`EQUAL_COSTS` are one to it.

    Bytes that later objectives are minimised within have to be known to the last one.
    """
    whole = _minimises_memory(problem) and len(problem.objectives) > 1 and isfinite(value)
    if not whole or value * EQUAL_COSTS < 0.5:
        return value
    return ceil(value * (1.0 - 2.0 * EQUAL_COSTS))


def _with_device_groups(
    problem: Problem,
    quotient: Quotient,
    classes: DeviceClasses,
    limits: SearchLimits,
    bound: float,
    progress: Callable[[Integers, float, float], None] | None,
    at_most: float,
    *,
    fewest: bool,
) -> PlacementResult:
    """With clusters, stages that several devices share, or two passes that each count."""

    def begun(pipeline: GroupedPipeline | BottleneckResult) -> None:
        # Only where the placement alone says it all.
        if progress is not None and problem.execution.data_parallelism is None and pipeline.device is not None:
            progress(pipeline.device[quotient.unit_of_node], pipeline.value, bound)

    memory = _minimises_memory(problem)
    if problem.execution.order == "gpipe" and not memory:
        from placedsl.algorithms.pipelines.gpipe import best_sum

        found = best_sum(problem, quotient, classes, limits, begun, fewest=len(problem.objectives) > 1)
    else:
        stages = _stage_costs(problem)
        found = best_with_device_groups(
            problem, quotient, classes, stages, limits, bound, begun, shared=not memory, fewest=fewest, at_most=at_most
        )
    value, placement = np.inf, None
    if found.device is not None:
        value, placement = found.value, found.device[quotient.unit_of_node]
    message = _TOO_MANY.format(limits.most) if found.too_many else ""
    proven = _proven(problem, value) if found.complete else max(bound, found.bound)
    copies = (
        {d: len(group) for d, group in found.groups.items()} if problem.execution.data_parallelism is not None else {}
    )
    return PlacementResult(placement, value, proven, found.complete, found.fewest, message, copies)
