"""What would repair a problem without a placement, each by itself: what can be bought or set, and rules that give way.

For each rule of a conflict the others stay as they are, and its instances are elastic: a comparison of numbers may be
missed by some amount, anything else may be left out.  A solver makes that least; how much it is in the end, the
evaluator says of the placement.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from placedsl.budget import Budget
from placedsl.diagnosis.infeasibility.elastic_constraints import is_amount, is_structure, softened
from placedsl.diagnosis.infeasibility.feasibility import Feasibility, restricted
from placedsl.diagnosis.infeasibility.hardware_repairs import hardware_repairs
from placedsl.diagnosis.infeasibility.parameter_repairs import NONE, Parameters, parameter_repairs
from placedsl.diagnostics import InputError
from placedsl.evaluation.constraint_instances import Instance, instances
from placedsl.evaluation.evaluate import evaluate
from placedsl.grounding.build import build
from placedsl.lowering.continuous_refinement import refined
from placedsl.lowering.lower import lower
from placedsl.planner.request import solvers_for
from placedsl.problem import expressions as core
from placedsl.problem.problem import Constraint, Problem
from placedsl.problem.values import Values
from placedsl.solvers.isolated import run_here, run_isolated
from placedsl.solvers.outcome import gap, heard_by_nobody
from placedsl.solvers.registry import get
from placedsl.tolerances import EVALUATION
from placedsl.units import CANONICAL, DATA, NUMBER, Dimension, parse_quantity, show

#: Seconds for repairs that can be bought or set, at most, and the share of what is left.
_MOST_SECONDS, _SHARE = 60.0, 0.4
#: Up to this relative distance from its bound an amount counts as the least: fewer digits are shown.
_LEAST_GAP = 1e-4


def repairs(
    asked: Feasibility, rules: Sequence[Constraint], cured: Collection[str], parameters: Parameters = NONE
) -> tuple[tuple[str, ...], bool]:
    """What is enough, in words, and whether the time was over before all was tried.

    First stands what can be bought or set, then for each rule in turn how far it must give way.

    ``cured`` names the rules without which there is a placement.
    """
    limit = _MOST_SECONDS if asked.left is None else min(_MOST_SECONDS, asked.left * _SHARE)
    bought = replace(asked, deadline=time.monotonic() + limit)
    by_parameter = list(parameter_repairs(bought, parameters))
    changed = {change for one in by_parameter for change in one.changed}
    out = [*(one.text for one in by_parameter), *hardware_repairs(bought, rules, changed)]
    late = bought.left == 0.0
    for rule in rules:
        asked.progress(f"what would repair it? {rule.name}")
        text = _elastic(asked, rule) if asked.left != 0.0 else ""
        if text or rule.name in cured:
            out.append(text or f"drop {rule.name}")
    return tuple(out), late or asked.left == 0.0


def _elastic(asked: Feasibility, rule: Constraint) -> str:
    """The least that a rule must give way while all others hold; empty where that is not to be had."""
    problem = asked.problem
    parts = instances(problem, rule)
    if any(is_structure(part.body) for part in parts) or (rule.built_in == "colocated" and len(parts) == 1):
        return ""
    names = {f"{rule.name}#{i}": part for i, part in enumerate(parts)}
    others = tuple(r for r in problem.constraints if r.name != rule.name)
    elastic = tuple(part.as_rule(name) for name, part in names.items())
    # A colocation is loosened here, not dropped.
    whole = restricted(problem, others + elastic, fixed_order=True)
    try:
        grounded = build(whole, asked.formulation)
        program = softened(grounded.program, names)
        if program is None or any(origin.name in names for origin, _ in grounded.never):
            return ""
        for name in solvers_for(problem, asked.request.solver):
            features = get(name).features
            linear = lower(program, native=features.native, integral=features.integers_only).program
            budget = Budget(asked.left, workers=asked.request.workers or 0, seed=asked.request.seed or 0)
            outcome = (run_isolated if asked.isolated else run_here)(name, linear, budget, heard_by_nobody)
            if outcome.termination == "interrupted":
                raise KeyboardInterrupt
            if outcome.incumbent is not None:
                exact = refined(program, 0, (), outcome.incumbent)
                point = outcome.incumbent if exact is None else exact
                placement, values = [int(d) for d in grounded.placement(point)], grounded.values(point)
                if evaluate(replace(whole, constraints=others), placement, values).violations:
                    continue
                least = gap(outcome.objective, outcome.bound) <= _LEAST_GAP
                return _required_change(whole, rule, names, placement, values) + (
                    "" if least else " (less may be enough)"
                )
            if outcome.termination == "infeasible":
                return ""
    except InputError:
        return ""  # a rule whose numbers have no bounds cannot be made elastic
    return ""


def _required_change(
    problem: Problem, rule: Constraint, parts: dict[str, Instance], placement: Sequence[int], values: Values
) -> str:
    """How far a placement misses the instances of a rule, each rounded up, in words."""
    amounts, dropped, of_family = list[str](), list[str](), dict[str, float]()
    only = replace(problem, constraints=tuple(r for r in problem.constraints if r.name in parts))
    for violation in evaluate(only, placement, values).violations:
        part = parts.get(violation.rule)
        if part is None:
            continue
        if not is_amount(part.body):
            dropped.append(part.label)
            continue
        assert isinstance(part.body, core.Comparison)
        amount = at_least(violation.amount, part.body.dimension)
        where = part.elements[0][2] if rule.built_in == "memory" else -1
        if where >= 0 and problem.execution.data_parallelism is not None:
            # Those that share samples with it hold as much, and devices of a family are alike.
            family = problem.machine.devices[where].family
            of_family[family] = max(of_family.get(family, 0.0), violation.amount)
        elif where >= 0:
            amounts.append(f"{amount} more on {problem.machine.devices[where].name}")
        else:
            way = {"<=": "more", ">=": "less"}.get(part.body.operator, "of difference")
            amounts.append(f"{amount} {way}" + (f" for {part.label}" if part.label else ""))
    amounts += [f"{at_least(missing, DATA)} more on each {family}" for family, missing in of_family.items()]
    texts = [f"{rule.name}: " + ", ".join(amounts)] if amounts else []
    if dropped:
        which = [label for label in dropped if label]
        texts.append(f"drop {rule.name}" + (f" for {'; '.join(which)}" if which else ""))
    return " and ".join(texts)


def at_least(value: float, dimension: Dimension) -> str:
    """A value with its unit, readable and not smaller than it is, but for what rounding errs by."""
    dimension = dimension if dimension in CANONICAL else NUMBER
    text, step = show(value, dimension), 1.0 + (1e-4 if dimension == DATA else 1e-6)
    wanted = value
    while parse_quantity(text).value < value * (1.0 - EVALUATION):
        wanted *= step
        text = show(wanted, dimension)
    return text
