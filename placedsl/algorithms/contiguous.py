"""Throughput of contiguous placements: when the dynamic program over ideals applies, and running it.

Exact where every rule of the spec is one that the program knows.  Where there are further rules, it solves
the problem without them: the value is then a bound, and its placement the answer if it happens to satisfy them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placedsl.algorithms.ideal_dp import DeviceClasses, best_chain, device_classes
from placedsl.algorithms.ideals import Ideals, chain, ideals
from placedsl.algorithms.simple_bound import simple_bound
from placedsl.expressions import Provided
from placedsl.graph.contraction import Quotient, contract
from placedsl.graph.graph import Integers
from placedsl.graph.order import topological
from placedsl.problem import Problem

#: The most ideals that are enumerated, and the most table entries (ideals x device counts), by default.
MOST_IDEALS = 1_000_000
MOST_ENTRIES = 40_000_000


@dataclass(frozen=True)
class Fit:
    """Whether the dynamic program answers this problem.

    ``against`` says why it does not apply at all; ``beyond`` names rules that it leaves out (it then
    gives a bound).  ``ideals`` is their number, or None when there are more than the budget.
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
    """What a run gave: device of each node (None: nothing fits), its value, a proven bound of the problem
    that was solved, and whether the search was complete."""

    placement: Integers | None
    value: float
    bound: float
    complete: bool
    message: str = ""


def structure(problem: Problem) -> list[str]:
    """Why the problem is not one of finding the best pipeline, in the user's words."""
    against = []
    goal = problem.objectives[0].body
    if not (isinstance(goal, Provided) and goal.name == "time_per_sample"):
        against.append(f"it minimises time_per_sample, not {problem.objectives[0].name}")
    if problem.schedule != "pipedream":
        against.append(f"it knows schedule pipedream, not {problem.schedule}")
    if problem.own_formulations:
        against.append("it does not look at formulations, and the spec has its own")
    if problem.rule("contiguous") is None:
        against.append("it needs 'contiguous': pieces that need not be contiguous are no chain of ideals")
    return against


def left_out(problem: Problem) -> list[str]:
    """The rules and further objectives that the dynamic program does not look at."""
    known = ("memory", "contiguous", "convex", "colocated")
    out = [r.name for r in problem.rules if r.built_in not in known]
    out += [f"variable {name}" for name in problem.variables]
    for further in problem.objectives[1:2]:
        if not (isinstance(further.body, Provided) and further.body.name == "devices_used"):
            out.append(f"then {further.name}")
    return out + [f"then {o.name}" for o in problem.objectives[2:]]


def fits(problem: Problem, most: int = MOST_IDEALS) -> Fit:
    """Look at a problem without solving it; counts the ideals."""
    against = structure(problem)
    beyond = left_out(problem)
    quotient, classes = pipeline_of(problem)
    lattice = None
    if not against:
        lattice = ideals(quotient.units, quotient.before, quotient.after, most_ideals(classes, most))
        if lattice is None:
            against.append(
                f"the graph has more than {most_ideals(classes, most):,} ideals, the sets that the search is over"
            )
    return Fit(tuple(against), tuple(beyond), None if lattice is None else lattice.count, quotient.units)


def most_ideals(classes: DeviceClasses, most: int) -> int:
    """The budget for ideals: fewer where a state has many device counts."""
    states = int(np.prod([c + 1 for c in classes.counts], dtype=float))
    return max(1, min(most, MOST_ENTRIES // states))


def pipeline_of(problem: Problem) -> tuple[Quotient, DeviceClasses]:
    """The contracted graph with contiguity required, and the classes of like devices."""
    limited = problem.rule("memory") is not None
    memory = problem.device_memory if limited else np.full(len(problem.machine.devices), np.inf)
    classes = device_classes(problem.interchangeable(), memory)
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
    """The best cut of one topological order into contiguous pieces: quick, and good as a start."""
    quotient, classes = pipeline_of(problem)
    order = topological(quotient.units, quotient.before, quotient.after)
    if order is None or most_ideals(classes, MOST_IDEALS) <= quotient.units:
        return Found(None, np.inf, simple_bound(problem), True)
    return _found(problem, quotient, classes, chain(order), np.inf, None, None, exhaustive=False)


def solve(
    problem: Problem,
    *,
    deadline: float | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[Integers, float, float], None] | None = None,
    most: int = MOST_IDEALS,
) -> Found:
    """Run the dynamic program; ``progress`` hears of (placement, value, bound) of the start.

    ``bound`` is that of the problem with the rules that the program knows.
    """
    quotient, classes = pipeline_of(problem)
    lattice = ideals(quotient.units, quotient.before, quotient.after, most_ideals(classes, most))
    if lattice is None:
        message = f"there are more than {most_ideals(classes, most):,} ideals"
        return Found(None, np.inf, simple_bound(problem), False, message)
    start = _found(problem, quotient, classes, chain(lattice.order), np.inf, deadline, stop, exhaustive=False)
    if start.placement is not None and progress is not None:
        progress(start.placement, start.value, start.bound)
    if not start.complete:
        return start
    full = _found(problem, quotient, classes, lattice, start.value, deadline, stop, exhaustive=True)
    if full.placement is None and start.placement is not None:
        # Nothing better than the start within rounding: the start is optimal when the search was complete.
        return Found(start.placement, start.value, start.value if full.complete else start.bound, full.complete)
    return full


def _found(
    problem: Problem,
    quotient: Quotient,
    classes: DeviceClasses,
    lattice: Ideals,
    at_most: float,
    deadline: float | None,
    stop: Callable[[], bool] | None,
    *,
    exhaustive: bool,
) -> Found:
    result = best_chain(quotient, lattice, classes, at_most=at_most, deadline=deadline, stop=stop)
    proven = exhaustive and result.complete
    placement = None if result.device is None else result.device[quotient.unit_of_node]
    bound = result.value if proven else simple_bound(problem)
    return Found(placement, result.value, bound, result.complete)
