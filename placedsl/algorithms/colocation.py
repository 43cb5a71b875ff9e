"""A problem with more nodes held together: what searches and baselines make smaller problems with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placedsl.arrays import Integers
from placedsl.diagnostics import InputError
from placedsl.evaluation.evaluate import quantities_of
from placedsl.evaluation.expressions import Compiler
from placedsl.evaluation.problem_data import ProblemData
from placedsl.graph.order import renumbered
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.problem import Constraint, Problem
from placedsl.records import dataclass

#: A constraint that says more pairs of nodes share a device is left a formula.
_MOST_PAIRS = 200_000


def with_colocation(problem: Problem, labels: Integers, reason: str) -> Problem:
    """The same problem where nodes with one label (n of them) share a device; ``reason`` is no attribute's name.

    Its placements are placements of the problem itself, so that its values are reached and its bounds prove nothing.
    """
    goal = problem.objectives[0]
    rule = Constraint(reason, "colocated", reason, goal.body, goal.span)
    return replace(problem, groups={**problem.groups, reason: labels}, constraints=(*problem.constraints, rule))


def with_implied_colocation(problem: Problem) -> Problem:
    """The same problem, where formulas that only say that nodes share a device are known as such.

    These are ``together(s)``, and ``(v on d) == (w on d)`` for all devices d and some pairs of nodes v, w, which need
    not depend on the placement.  Their formulas are still what the evaluator checks.  Where a device holds several
    chunks of the model, nodes that share it may be in several of these.
    """
    if problem.execution.chunks > 1:
        return problem
    said = {i: found for i, rule in enumerate(problem.constraints)
            if not rule.built_in and not rule.groups and (found := _pairs_said(rule.body))}  # fmt: skip
    if not said:
        return problem
    data = ProblemData(problem)
    compiler = Compiler(data, quantities_of(data, [-1] * problem.graph.nodes))
    constraints, groups = list(problem.constraints), dict(problem.groups)
    for i, pairs in said.items():
        labels = _labels(compiler, pairs, problem.graph.nodes)
        if labels is not None:
            key = f"constraint {i + 1}"
            constraints[i], groups[key] = replace(constraints[i], groups=key), labels
    return replace(problem, constraints=tuple(constraints), groups=groups)


@dataclass(frozen=True)
class _Pairs:
    """Two nodes share a device, for all values of the binders."""

    binders: tuple[core.Binder, ...]
    left: core.Expression
    right: core.Expression


def _pairs_said(body: core.Expression) -> list[_Pairs]:
    """What a formula says when it only says that nodes share a device; else nothing."""
    out = []
    for binders, part in _parts((), body):
        match part:
            case core.Comparison(
                operator="==", of="truth",
                left=core.Provided(name="on", arguments=(left, core.Slot(name=device))),
                right=core.Provided(name="on", arguments=(right, core.Slot(name=other))),
            ) if device == other:  # fmt: skip
                rest = _without(binders, device)
                known = rest is not None and not any(map(_decided, (*rest, left, right)))
                if rest is None or not known or device in walks.free_slots(left) | walks.free_slots(right):
                    return []
                out.append(_Pairs(rest, left, right))
            case _:
                return []
    return out


def _decided(node: core.Expression | core.Binder) -> bool:
    return any(isinstance(part, core.Provided | core.Decision) for part in walks.every(node))


def _parts(
    binders: tuple[core.Binder, ...], body: core.Expression
) -> list[tuple[tuple[core.Binder, ...], core.Expression]]:
    match body:
        case core.Forall(binders=own, body=inner):
            return _parts((*binders, *own), inner)
        case core.Logic(operator="and", parts=parts):
            return [found for part in parts for found in _parts(binders, part)]
    return [(binders, body)]


def _without(binders: tuple[core.Binder, ...], device: str) -> tuple[core.Binder, ...] | None:
    """The binders but that of the device, which has to range over all devices; None where it does not."""
    own = [b for b in binders if b.slots == (device,) and isinstance(b.set, core.NamedSet) and b.set.name == "devices"]
    rest = [binder for binder in binders if binder not in own]
    if len(own) != 1 or any(device in walks.free_slots(binder) for binder in rest):
        return None
    condition = own[0].condition  # it may be about the others
    if condition is None:
        return tuple(rest)
    if not rest or device in walks.free_slots(condition):
        return None
    before = rest[-1].condition
    both = condition if before is None else core.Logic("and", (before, condition), condition.span)
    return (*rest[:-1], replace(rest[-1], condition=both))


def _labels(compiler: Compiler, said: Sequence[_Pairs], nodes: int) -> Integers | None:
    """n labels 0.., the same for nodes that share a device; None where there are too many pairs to look at."""
    label = list(range(nodes))

    def root(node: int) -> int:
        while label[node] != node:
            label[node] = label[label[node]]
            node = label[node]
        return node

    seen = 0
    try:
        for pairs in said:
            with compiler.bound(pairs.binders) as loop:
                left, right = compiler.position(pairs.left), compiler.position(pairs.right)
            env = compiler.environment()
            for _ in loop(env):
                seen += 1
                if seen > _MOST_PAIRS:
                    return None
                label[root(left(env))] = root(right(env))
    except InputError:
        return None  # an element that is not there: told of where the formula is grounded
    return renumbered(np.array([root(node) for node in range(nodes)], dtype=np.int64))
