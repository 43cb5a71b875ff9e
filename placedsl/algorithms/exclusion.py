"""A problem whose devices that may hold nothing support nothing: what the searches know of ``not (v on d)``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.algorithms.colocation import with_implied_colocation
from placedsl.arrays import Booleans
from placedsl.diagnostics import InputError
from placedsl.evaluation.evaluate import quantities_of
from placedsl.evaluation.expressions import Compiler
from placedsl.evaluation.problem_data import ProblemData
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.problem import Problem

#: A constraint that says so of more pairs of a node and a device is left a formula.
_MOST_PAIRS = 200_000


def with_implied(problem: Problem) -> Problem:
    """The same problem, where formulas that only say that nodes share a device, or that devices hold nothing, are known
    as such; the formulas are still what the evaluator checks."""
    return with_implied_exclusion(with_implied_colocation(problem))


def with_implied_exclusion(problem: Problem) -> Problem:
    """The same problem, where formulas that only say that some devices hold nothing are known as such.

    These are ``forall v in nodes, d in …: not (v on d)``.  Such a device supports no node: its times are infinite.
    Beside other formulas they stay formulas, as no search looks at these, and a conflict of the two is told in the
    words of the spec.
    """
    said = {i: found for i, rule in enumerate(problem.constraints)
            if not rule.built_in and not rule.groups and (found := _said(rule.body)) is not None}  # fmt: skip
    if not said:
        return problem
    data = ProblemData(problem)
    compiler = Compiler(data, quantities_of(data, [-1] * problem.graph.nodes))
    out = np.zeros(len(problem.machine.devices), dtype=bool)
    known = {i: _devices(compiler, *pairs, problem) for i, pairs in said.items()}
    alone = all(rule.equivalent or known.get(i) is not None for i, rule in enumerate(problem.constraints))
    constraints = list(problem.constraints)
    for i, excluded in known.items():
        if excluded is not None and (alone or not excluded.any()):
            out |= excluded
            constraints[i] = replace(constraints[i], excludes=True)
    if not any(rule.excludes for rule in constraints):
        return problem
    return _without(replace(problem, constraints=tuple(constraints)), out)


def _without(problem: Problem, excluded: Booleans) -> Problem:
    """The same problem where some devices support nothing."""
    time = problem.time.copy()
    time[:, excluded] = np.inf
    sharing = problem.execution.data_parallelism
    if sharing is None or sharing.options is None:
        return replace(problem, time=time)
    options = sharing.options.time.copy()
    options[:, excluded] = np.inf
    priced = replace(sharing, options=replace(sharing.options, time=options))
    return replace(problem, time=time, execution=replace(problem.execution, data_parallelism=priced))


_Pairs = tuple[tuple[core.Binder, ...], core.Expression, core.Expression]


def _said(body: core.Expression) -> _Pairs | None:
    """The binders, the node and the device of ``forall …: not (v on d)``; None for other formulas."""
    binders: tuple[core.Binder, ...] = ()
    while isinstance(body, core.Forall):
        binders, body = (*binders, *body.binders), body.body
    match body:
        case core.Not(part=core.Provided(name="on", arguments=(core.Slot() as node, core.Slot() as device))):
            decided = (core.Provided, core.Decision)
            fixed = not any(isinstance(part, decided) for binder in binders for part in walks.every(binder))
            return (binders, node, device) if fixed else None
    return None


def _devices(
    compiler: Compiler,
    binders: tuple[core.Binder, ...],
    node: core.Expression,
    device: core.Expression,
    problem: Problem,
) -> Booleans | None:
    """The devices that no node may be on; None where one is excluded for some nodes alone, or for too many pairs."""
    pairs = np.zeros((problem.graph.nodes, len(problem.machine.devices)), dtype=bool)
    seen = 0
    try:
        with compiler.bound(binders) as loop:
            v, d = compiler.position(node), compiler.position(device)
        env = compiler.environment()
        for _ in loop(env):
            seen += 1
            if seen > _MOST_PAIRS:
                return None
            pairs[v(env), d(env)] = True
    except InputError:
        return None  # an element that is not there: told of where the formula is grounded
    whole = np.asarray(pairs.all(axis=0), dtype=bool)
    return whole if (whole == pairs.any(axis=0)).all() else None
