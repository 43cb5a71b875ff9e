"""A first, not yet minimal, set of conflicting rules from a solver that can tell one: one run instead of many.

CP-SAT takes assumptions; HiGHS gives an irreducible system of the relaxation, where that is infeasible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placedsl.budget import Budget
from placedsl.diagnosis.infeasibility.elastic_constraints import guarded, is_structure
from placedsl.diagnosis.infeasibility.feasibility import Feasibility, restricted
from placedsl.grounding.build import build
from placedsl.lowering.lower import lower
from placedsl.planner.request import solvers_for
from placedsl.problem.problem import Constraint
from placedsl.solvers.isolated import run_here, run_isolated
from placedsl.solvers.outcome import heard_by_nobody
from placedsl.solvers.registry import get


def core(asked: Feasibility, rules: Sequence[Constraint]) -> list[Constraint]:
    """Of rules that cannot hold together, those that a solver's refutation rests on; all where it does not tell.

    Rules that are built in, and those about sets of nodes as a whole, are held fast and stay in.
    """
    part = restricted(asked.problem, rules, fixed_order=asked.fixed_order)
    free = [r.name for r in rules if not r.built_in and not is_structure(r.body)]
    known = [(n, get(n).features) for n in solvers_for(part, asked.request.solver)]
    able = [n for n, features in known if features.assumptions or features.relaxed_core]
    if not able or len(free) < 2:
        return list(rules)
    name, features = able[0], get(able[0]).features
    grounded = build(part, asked.formulation)
    if grounded.never:
        return list(rules)
    program, columns = guarded(grounded.program, free)
    lowered = lower(program, native=features.native, integral=features.integers_only).program
    assumed = replace(lowered, assumed_zero=np.array(list(columns.values()), dtype=np.int64))
    # Half of the time, for what comes out has to be made smaller.
    limit = None if asked.left is None else asked.left / 2
    # With one thread a core is small: with several, whichever refutes first gives one.
    budget = Budget(limit, workers=1, seed=asked.request.seed or 0)
    outcome = (run_isolated if asked.isolated else run_here)(name, assumed, budget, heard_by_nobody)
    if outcome.termination == "interrupted":
        raise KeyboardInterrupt
    if outcome.termination != "infeasible":
        return list(rules)
    kept = {n for n, column in columns.items() if column in outcome.core}
    return [r for r in rules if r.name in kept or r.name not in columns]
