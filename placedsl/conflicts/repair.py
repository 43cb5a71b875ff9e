"""What would repair a problem without a placement: rules that give way, one at a time and as little as possible.

For each rule of a conflict the others stay as they are, and its instances are elastic: a comparison of numbers may be
missed by some amount, anything else may be left out.  A solver makes that least; how much it is in the end, the
evaluator says of the placement.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from placedsl import expressions as core
from placedsl.conflicts.dimensions import dimension_of
from placedsl.conflicts.feasibility import Feasibility, restricted
from placedsl.cost.evaluate import evaluate
from placedsl.cost.expressions import placed
from placedsl.diagnostics import InputError
from placedsl.instances import Instance, instances
from placedsl.lowering.bounds import activity, tighten
from placedsl.lowering.lower import lower
from placedsl.problem import Problem, Rule
from placedsl.program.build import build
from placedsl.program.program import GlobalConstraint, Implication, Integers, Objective, Program, RowBlock
from placedsl.request import solvers_for
from placedsl.solvers.interface import Budget
from placedsl.solvers.isolated import run_here, run_isolated
from placedsl.solvers.outcome import gap, heard_by_nobody
from placedsl.solvers.registry import get
from placedsl.units import CANONICAL, DATA, NUMBER, Dimension, parse_quantity, show

#: Up to this relative distance from its bound an amount counts as the least: fewer digits are shown.
_SAME = 1e-4
#: By this share, at most, a later instance is dearer than the first.
_NUDGE = 2e-5


def repairs(asked: Feasibility, rules: Sequence[Rule], cured: Collection[str]) -> tuple[str, ...]:
    """For each rule in turn what is enough, in words; ``cured`` names the rules without which there is a placement."""
    out = []
    for rule in rules:
        text = _elastic(asked, rule) if asked.left != 0.0 else ""
        if text or rule.name in cured:
            out.append(text or f"drop {rule.name}")
    return tuple(out)


def _elastic(asked: Feasibility, rule: Rule) -> str:
    """The least that a rule must give way while all others hold; empty where that is not to be had."""
    problem = asked.problem
    parts = instances(problem, rule)
    if any(_is_structure(part.body) for part in parts) or (rule.built_in == "colocated" and len(parts) == 1):
        return ""
    names = {f"{rule.name}#{i}": part for i, part in enumerate(parts)}
    others = tuple(r for r in problem.rules if r.name != rule.name)
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
                placement = [int(d) for d in grounded.placement(outcome.incumbent)]
                if evaluate(replace(whole, rules=others), placement).violations:
                    continue
                least = gap(outcome.objective, outcome.bound) <= _SAME
                return told(whole, rule, names, placement) + ("" if least else " (less may be enough)")
            if outcome.termination == "infeasible":
                return ""
    except InputError:
        return ""  # a rule whose numbers have no bounds cannot be made elastic
    return ""


def told(problem: Problem, rule: Rule, parts: dict[str, Instance], placement: Sequence[int]) -> str:
    """How far a placement misses the instances of a rule, each rounded up, in words."""
    amounts, dropped = [], []
    only = replace(problem, rules=tuple(r for r in problem.rules if r.name in parts))
    for violation in evaluate(only, placement).violations:
        part = parts.get(violation.rule)
        if part is None:
            continue
        if not _is_amount(part.body):
            dropped.append(part.label)
            continue
        assert isinstance(part.body, core.Comparison)
        amount = at_least(violation.amount, dimension_of(part.body, problem))
        where = part.elements[0][2] if rule.built_in == "memory" else -1
        if where >= 0:
            amounts.append(f"{amount} more on {problem.machine.devices[where].name}")
        else:
            way = {"<=": "more", ">=": "less"}.get(part.body.operator, "of difference")
            amounts.append(f"{amount} {way}" + (f" for {part.label}" if part.label else ""))
    texts = [f"{rule.name}: " + ", ".join(amounts)] if amounts else []
    if dropped:
        which = [label for label in dropped if label]
        texts.append(f"drop {rule.name}" + (f" for {'; '.join(which)}" if which else ""))
    return " and ".join(texts)


def at_least(value: float, dimension: Dimension) -> str:
    """A value with its unit, readable and not smaller than it is."""
    dimension = dimension if dimension in CANONICAL else NUMBER
    text, step = show(value, dimension), 1.0 + (1e-4 if dimension == DATA else 1e-6)
    wanted = value
    while parse_quantity(text).value < value:
        wanted *= step
        text = show(wanted, dimension)
    return text


def _is_structure(body: core.Expression) -> bool:
    """Contiguity and convexity, of which there is no more and less."""
    stack: list[core.Expression | core.SetExpression | core.Binder] = [body]
    while stack:
        part = stack.pop()
        if isinstance(part, core.SetProperty):
            return True
        stack.extend(core.children(part))
    return False


def _is_amount(body: core.Expression) -> bool:
    """A comparison of numbers that can be missed by an amount."""
    return (
        isinstance(body, core.Comparison)
        and body.of == "number"
        and body.operator in ("<=", ">=", "==")
        and placed(body)
    )


def softened(program: Program, parts: dict[str, Instance]) -> Program | None:
    """The program in which the instances by these names are elastic, and how much they give is minimised.

    None when there is nothing in it that could give way.
    """
    rigid = [b for b in program.rows if b.origin.name not in parts]
    lower_bound, upper_bound = tighten(program.lower, program.upper, program.integer, rigid)
    count = program.columns
    low, high, integer = [program.lower], [program.upper], [program.integer]
    column: list[int] = []
    weight: list[float] = []

    def add(most: float, whole: bool, cost: float) -> int:
        nonlocal count
        low.append(np.zeros(1))
        high.append(np.full(1, most))
        integer.append(np.full(1, whole))
        column.append(count)
        # Of amounts that are as small, those of the first instances: every solver then says the same.
        weight.append(cost * (1.0 + _NUDGE * len(weight) / len(parts)))
        count += 1
        return count - 1

    last = {b.origin.name: i for i, b in enumerate(program.rows) if b.origin.name in parts}
    slack = {name: i for name, i in last.items() if _is_amount(parts[name].body) and program.rows[i].rows == 1}
    largest = max((_scale(program.rows[i]) for i in slack.values()), default=1.0)
    dropping = {name: add(1.0, True, 1.0) for name in parts if name not in slack}
    rows: list[RowBlock] = []
    constraints: list[GlobalConstraint] = []
    for i, original in enumerate(program.rows):
        block, name = original, original.origin.name
        if slack.get(name) == i:
            least, most = activity(block.row, block.column, block.coefficient, 1, lower_bound, upper_bound)
            for sign, bound, end in ((-1.0, block.upper, most), (1.0, block.lower, least)):
                if np.isfinite(bound[0]) and (end - bound)[0] * sign < 0:
                    block = _with(block, add(abs(float((end - bound)[0])), False, 1.0 / largest), sign)
            rows.append(block)
        elif name in dropping:
            constraints.append(_under(block, dropping[name]))
        else:
            rows.append(block)
    for constraint in program.constraints:
        name = constraint.origin.name
        given_way = name in dropping and isinstance(constraint, Implication)
        constraints.append(_also_under(constraint, dropping[name]) if given_way else constraint)
    if not column:
        return None
    goal = Objective("repair", np.array(column, dtype=np.int64), np.array(weight))
    return replace(
        program, lower=np.concatenate(low), upper=np.concatenate(high), integer=np.concatenate(integer),
        rows=tuple(rows), constraints=tuple(constraints), objectives=(goal,),
    )  # fmt: skip


def _scale(block: RowBlock) -> float:
    bounds = np.concatenate((block.lower, block.upper))
    return max(float(np.abs(bounds[np.isfinite(bounds)]).max(initial=0.0)), float(np.abs(block.coefficient).max()))


def _with(block: RowBlock, column: int, coefficient: float) -> RowBlock:
    """A block of one row with a further column."""
    return replace(
        block, row=_more(block.row, 0), column=_more(block.column, column),
        coefficient=np.concatenate((block.coefficient, np.full(1, coefficient))),
    )  # fmt: skip


def _more(values: Integers, value: int) -> Integers:
    return np.concatenate((values, np.full(1, value, dtype=np.int64)))


def _under(block: RowBlock, column: int) -> Implication:
    """The rows of a block hold where a 0/1 column is zero."""
    every = np.arange(block.rows)
    return Implication(block.origin, every, np.full(block.rows, column), np.zeros(block.rows, dtype=bool), block)


def _also_under(constraint: GlobalConstraint, column: int) -> GlobalConstraint:
    """An implication whose rows hold only where, further, a 0/1 column is zero."""
    assert isinstance(constraint, Implication)
    every = np.arange(constraint.rows.rows)
    return replace(
        constraint, literal_row=np.concatenate((constraint.literal_row, every)),
        literal_column=np.concatenate((constraint.literal_column, np.full(len(every), column))),
        literal_value=np.concatenate((constraint.literal_value, np.zeros(len(every), dtype=bool))),
    )  # fmt: skip
