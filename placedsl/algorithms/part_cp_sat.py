"""A part of a split solved by CP-SAT: small enough to be handed over directly, many times a second."""

from __future__ import annotations

from typing import Any

import numpy as np

from placedsl.algorithms.neighbourhood import Crossing, Freed, part_of
from placedsl.algorithms.split_kernel import Split
from placedsl.graph.graph import Integers

#: The largest load is this many units of the integer model: rounding is far below what a search can tell.
_GRID = 20_000_000
#: So fine that what rounding adds up to lies within the evaluator's tolerance.
_MEMORY_GRID = 2.0**40


def solve_part(
    split: Split, device: Integers, value: float, freed: Freed, effort: float, seed: int
) -> tuple[Integers | None, bool]:
    """A split no worse than ``value`` that differs in the freed units only (None: none was found), and whether
    that is the last word on them.

    ``effort`` is CP-SAT's deterministic time, about that many seconds: the same on any machine.
    """
    from ortools.sat.python import cp_model

    part = part_of(split, device, freed)
    model: Any = cp_model.CpModel()
    on = {(u, d): model.new_bool_var("") for u, choices in part.choices.items() for d in choices}
    terms: list[list[Any]] = [[] for _ in part.load]
    weights: list[list[int]] = [[] for _ in part.load]
    unit = _GRID / value

    def pays(d: int, literal: Any, cost: float) -> None:
        terms[d].append(literal)
        weights[d].append(round(cost * unit))

    for u, choices in part.choices.items():
        model.add_exactly_one(on[u, d] for d in choices)
        for d in choices:
            pays(d, on[u, d], float(split.work[d, u]))
            model.add_hint(on[u, d], int(d == device[u]))
    for crossing in part.crossings:
        pays(crossing.device, _crosses(model, on, crossing), crossing.cost)
    # Each term is rounded by half a unit at most: what is as good must not be cut off.
    largest = model.new_int_var(0, _GRID + max(map(len, terms)) // 2 + 1, "")
    for d, fixed in enumerate(part.load):
        if terms[d]:
            model.add(cp_model.LinearExpr.weighted_sum(terms[d], weights[d]) + round(fixed * unit) <= largest)
            _memory(cp_model, model, on, split, d, part.held[d])
    model.minimize(largest)
    solver: Any = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers, parameters.random_seed = 1, seed % 2**31
    parameters.max_deterministic_time = effort
    # See solvers/cp_sat.py: this presolve step is wrong in 9.15.
    parameters.presolve_inclusion_work_limit = 0
    status = solver.solve(model)
    final = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, final
    out = device.copy()
    for (u, d), literal in on.items():
        if solver.boolean_value(literal):
            out[u] = d
    return out, final


def _crosses(model: Any, on: dict[tuple[int, int], Any], crossing: Crossing) -> Any:
    """A literal that is true when the device holds some units of the edge and not all."""
    here = [on.get((u, crossing.device)) for u in crossing.units]
    known = [literal for literal in here if literal is not None]
    if crossing.outside or len(known) < len(here):
        # Some unit is elsewhere in any case: whoever comes in pays.
        if len(known) == 1:
            return known[0]
        crosses = model.new_bool_var("")
        for literal in known:
            model.add_implication(literal, crosses)
        return crosses
    if crossing.inside:
        if len(known) == 1:
            return ~known[0]
        crosses = model.new_bool_var("")
        for literal in known:
            model.add_bool_or(literal, crosses)
        return crosses
    crosses = model.new_bool_var("")
    # Round a cycle: if one is in and one is out, somewhere an in is followed by an out.
    for literal, following in zip(known, [*known[1:], known[0]], strict=True):
        model.add_bool_or(~literal, following, crosses)
    return crosses


def _memory(cp_model: Any, model: Any, on: dict[tuple[int, int], Any], split: Split, d: int, held: float) -> None:
    """Memory, where it could be exceeded; what fits is never cut off."""
    capacity = float(split.capacity[d])
    here = [(literal, float(split.memory[u])) for (u, e), literal in on.items() if e == d]
    if not here or held + sum(size for _, size in here) <= capacity:
        return
    grain = _MEMORY_GRID / max(capacity, 1e-300)
    sizes = [int(np.floor(size * grain)) for _, size in here]
    limit = int(np.ceil((capacity - held) * grain))
    model.add(cp_model.LinearExpr.weighted_sum([literal for literal, _ in here], sizes) <= limit)
