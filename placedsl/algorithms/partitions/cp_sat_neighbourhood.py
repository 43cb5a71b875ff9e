"""A neighbourhood of a partition solved by CP-SAT, built directly as a model: several neighbourhoods per second."""

from __future__ import annotations

from typing import Any

import numpy as np

from placedsl.algorithms.partitions.load_kernel import PartitionInstance
from placedsl.algorithms.partitions.neighbourhoods import FreeUnits, UndecidedCut, subproblem_of
from placedsl.arrays import Integers
from placedsl.solvers.cp_sat_parameters import reproducible

#: The largest load is this many units of the integer model: rounding is far below the improvements that count.
_GRID = 20_000_000
#: Steps of a memory limit: so fine that the sum of all rounding lies within the evaluator's tolerance.
_MEMORY_GRID = 2.0**40
#: Grid units of what is streamed, at most: far beyond the best value.
_MOST_STREAMED = 2**40


def solve_neighbourhood(
    instance: PartitionInstance, device: Integers, value: float, free: FreeUnits, effort: float, seed: int
) -> tuple[Integers | None, bool]:
    """Minimise the largest load over the free units.

    Returns a partition (u devices) whose largest load is at most ``value`` and that differs from ``device`` in free
    units only (None: none was found), and whether the subproblem is settled: that partition is optimal for it, or
    there is none.

    ``effort`` is a limit on CP-SAT's deterministic time, about seconds: the same on any machine.
    """
    from ortools.sat.python import cp_model

    subproblem = subproblem_of(instance, device, free)
    model: Any = cp_model.CpModel()
    on = {(u, d): model.new_bool_var("") for u, choices in subproblem.choices.items() for d in choices}
    terms: list[list[Any]] = [[] for _ in subproblem.load]
    weights: list[list[int]] = [[] for _ in subproblem.load]
    unit = _GRID / value

    def pays(d: int, literal: Any, cost: float) -> None:
        terms[d].append(literal)
        weights[d].append(round(cost * unit))

    for u, choices in subproblem.choices.items():
        model.add_exactly_one(on[u, d] for d in choices)
        for d in choices:
            pays(d, on[u, d], float(instance.work[d, u]))
            model.add_hint(on[u, d], int(d == device[u]))
    for cut in subproblem.undecided_cuts:
        pays(cut.device, _crosses(model, on, cut), cut.cost)
    # Each term is rounded by at most half a grid unit: equally good partitions must stay feasible.
    largest = model.new_int_var(0, _GRID + max(map(len, terms)) // 2 + 1, "")
    for d, used in enumerate(subproblem.memory_used):
        if instance.per_byte[d] > 0.0 and terms[d]:
            held = bool((~free.units & (device == d)).any())
            terms[d].append(_streamed(model, on, instance, d, used, held, unit))
            weights[d].append(1)
    for d, fixed in enumerate(subproblem.load):
        if terms[d]:
            model.add(cp_model.LinearExpr.weighted_sum(terms[d], weights[d]) + round(fixed * unit) <= largest)
            _memory(cp_model, model, on, instance, d, subproblem.memory_used[d])
    model.minimize(largest)
    solver: Any = cp_model.CpSolver()
    reproducible(solver.parameters, seed, effort, intervals=False)
    status = solver.solve(model)
    final = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, final
    out = device.copy()
    for (u, d), literal in on.items():
        if solver.boolean_value(literal):
            out[u] = d
    return out, final


def _streamed(
    model: Any,
    on: dict[tuple[int, int], Any],
    instance: PartitionInstance,
    d: int,
    used: float,
    held: bool,
    unit: float,
) -> Any:
    """How long a device streams what does not fit, in grid units; ``used``, ``held``: its fixed units' bytes, and
    whether there are any."""
    here = [(literal, float(instance.memory[u])) for (u, e), literal in on.items() if e == d]
    grid = float(instance.per_byte[d]) * unit
    room = float(instance.room[d])
    most = max(0.0, used + sum(size for _, size in here) - room) * grid
    streamed = model.new_int_var(0, min(int(most) + 1, _MOST_STREAMED), "")
    sizes = [int(np.floor(min(size * grid, _MOST_STREAMED))) for _, size in here]
    free = int(np.floor(np.clip((used - room) * grid, -_MOST_STREAMED, _MOST_STREAMED)))
    total = sum((size * literal for size, (literal, _) in zip(sizes, here, strict=True)), start=0)
    if room >= 0.0 or held:
        model.add(total + free <= streamed)
    else:
        # Even a unit of no bytes makes it stream.
        for literal, _ in here:
            model.add(total + free <= streamed).only_enforce_if(literal)
    return streamed


def _crosses(model: Any, on: dict[tuple[int, int], Any], cut: UndecidedCut) -> Any:
    """A literal that is true if the device holds some but not all units of the hyperedge."""
    here = [on.get((u, cut.device)) for u in cut.units]
    known = [literal for literal in here if literal is not None]
    if cut.outside or len(known) < len(here):
        # Some unit is on another device in any case: any unit here cuts the hyperedge.
        if len(known) == 1:
            return known[0]
        crosses = model.new_bool_var("")
        for literal in known:
            model.add_implication(literal, crosses)
        return crosses
    if cut.inside:
        if len(known) == 1:
            return ~known[0]
        crosses = model.new_bool_var("")
        for literal in known:
            model.add_bool_or(literal, crosses)
        return crosses
    crosses = model.new_bool_var("")
    # Around the cycle of units: if one is here and one is not, some unit here is followed by one that is not.
    for literal, following in zip(known, [*known[1:], known[0]], strict=True):
        model.add_bool_or(~literal, following, crosses)
    return crosses


def _memory(
    cp_model: Any,
    model: Any,
    on: dict[tuple[int, int], Any],
    instance: PartitionInstance,
    d: int,
    memory_used: float,
) -> None:
    """Add a device's memory limit if the free units could exceed it; rounding never excludes a placement that fits."""
    capacity = float(instance.capacity[d])
    here = [(literal, float(instance.memory[u])) for (u, e), literal in on.items() if e == d]
    if not here or memory_used + sum(size for _, size in here) <= capacity:
        return
    grain = _MEMORY_GRID / max(capacity, 1e-300)
    sizes = [int(np.floor(size * grain)) for _, size in here]
    limit = int(np.ceil((capacity - memory_used) * grain))
    model.add(cp_model.LinearExpr.weighted_sum([literal for literal, _ in here], sizes) <= limit)
