"""The conflict of a problem without a placement: which rules of the spec cannot hold together."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placedsl.diagnosis.infeasibility.feasibility import Feasibility, restricted
from placedsl.diagnosis.infeasibility.minimal_subset import minimal
from placedsl.diagnosis.infeasibility.parameter_repairs import NONE, Parameters
from placedsl.diagnosis.infeasibility.repair import repairs
from placedsl.diagnosis.infeasibility.solver_core import core
from placedsl.diagnostics import Diagnostic, LimitError, Span
from placedsl.evaluation.constraint_instances import Instance, instances
from placedsl.grounding.build import build
from placedsl.grounding.contradictions import false_instances
from placedsl.planner.request import Request, resolve
from placedsl.problem.formulation import Formulation, choose
from placedsl.problem.problem import Constraint, Problem

#: Seconds that ``solve`` spends on a conflict after it has found that there is no placement, and on its instances.
SHORT, LONG = 20.0, 60.0


@dataclass(frozen=True)
class Member:
    """A rule of a conflict, by its name and its place in the spec (None: it holds in every spec).

    ``instances`` are those that are in the conflict, ``total`` is how many the rule has (0: they were not looked
    at, or the rule is a whole).  ``cures``: without this rule the problem has a placement (None: not known).
    """

    name: str
    span: Span | None
    instances: tuple[str, ...] = ()
    total: int = 0
    cures: bool | None = None


@dataclass(frozen=True)
class Conflict:
    """Rules that cannot hold together.

    ``smallest``: none of the members can be spared (and none of the instances, where they are told); if not, ``late``
    says that the time limit was the reason, and not what solvers can decide.  ``never``: it is one rule that no
    placement satisfies, as the data alone show.  ``repair``: changes that give a placement, each of which is enough by
    itself; ``unfinished``: the time was over before all were tried.  ``diagnostics`` are the errors that ``never``
    amounts to, in the spec's own lines.
    """

    members: tuple[Member, ...]
    smallest: bool
    never: bool = False
    repair: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    late: bool = False
    unfinished: bool = False


#: So many instances that can never hold are named in an error.
_LISTED = 3

#: What is always asked: nodes are on devices that support them.
_SUPPORTED = Member("supported", None)


def find(
    problem: Problem,
    formulations: Callable[[], Iterable[Formulation]],
    request: Request | None = None,
    *,
    infeasible: bool = False,
    by_instance: bool = False,
    isolated: bool = True,
    progress: Callable[[str], None] = lambda _: None,
    parameters: Parameters = NONE,
) -> Conflict | None:
    """The conflict of a problem, or None when it has a placement.

    ``request``: the solver, the time limit in seconds, threads and seed.  ``infeasible``: a solver has said so already.
    ``by_instance``: tell which instances of the rules.  ``progress`` hears what is being done, in words.
    ``parameters``: those of the spec, another value of which may repair it.  LimitError when the time was over before
    anything is known.
    """
    request = resolve(problem, request or Request())
    deadline = None if request.time_limit is None else time.monotonic() + request.time_limit
    if problem.execution.options is not None:
        from placedsl.diagnosis.infeasibility.plan_conflict import UndecidedError, conflict_of_plans

        with contextlib.suppress(UndecidedError):
            return conflict_of_plans(problem, deadline, progress)
    asked = Feasibility(problem, choose(problem, formulations()), request, deadline, isolated, progress=progress)
    asked.begins("stating the constraints")
    nowhere = tuple(f"v={problem.graph.names[v]}" for v in np.flatnonzero(np.isinf(problem.time).all(axis=1)))
    if nowhere:
        return Conflict((Member("supported", None, nowhere, problem.graph.nodes),), True, True)
    alone = _never(asked)
    if alone is not None:
        return alone
    asked.begins("is there a placement?")
    if not infeasible:
        held = asked.together(problem.constraints)
        if held is None:
            raise LimitError("the limit was reached before it was known whether there is a placement")
        if held:
            return None
    asked.begins("which constraints conflict?")
    rules, smallest = minimal(problem.constraints, asked.together)
    if infeasible and len(rules) == len(problem.constraints) and asked.together(rules):
        return None
    members = [Member(rule.name, rule.span) for rule in rules]
    cures = {rule.name: asked.together([r for r in problem.constraints if r is not rule]) for rule in rules}
    repair, unfinished = repairs(asked, rules, {name for name, cured in cures.items() if cured}, parameters)
    if by_instance and smallest:
        asked.begins("which of their instances conflict?")
        members, smallest = _by_instance(asked, rules)
    elif smallest and asked.together(rules, supported=False):
        members.append(_SUPPORTED)
    members = [replace(m, cures=cures.get(m.name)) for m in members]
    return Conflict(tuple(members), smallest, repair=repair, late=asked.left == 0.0, unfinished=unfinished)


def _never(asked: Feasibility) -> Conflict | None:
    """A rule that no placement satisfies, found while grounding it."""
    problem = asked.problem
    suspects = {origin.name for origin, _ in build(problem, asked.formulation).never}
    for rule in problem.constraints:
        if rule.name not in suspects:
            continue
        texts = false_instances(problem, asked.formulation, rule)
        if texts:
            listed = ", ".join(texts[:_LISTED]) + (f" and {len(texts) - _LISTED} more" if len(texts) > _LISTED else "")
            told = (Diagnostic(f"{listed} is false whatever the placement", rule.span),)
            which = tuple(text.removeprefix(rule.name)[1:-1] for text in texts)
            total = len(instances(problem, rule)) if which != ("",) else 0
            shown = tuple(w for w in which if w)
            return Conflict((Member(rule.name, rule.span, shown, total),), True, True, diagnostics=told)
    return None


def _by_instance(asked: Feasibility, rules: Sequence[Constraint]) -> tuple[list[Member], bool]:
    """The rules with their instances that cannot hold together, and whether none of these can be spared."""
    problem = restricted(asked.problem, rules)
    split = {rule.name: instances(problem, rule) for rule in rules}
    of: dict[str, Instance] = {}
    parts: list[Constraint] = []
    for rule in rules:
        several = len(split[rule.name]) > 1
        for number, instance in enumerate(split[rule.name]):
            name = f"{rule.name}#{number}" if several else rule.name
            parts.append(instance.as_rule(name) if several else rule)
            of[name] = instance
    inner = replace(asked, problem=problem, known=list(asked.known), fixed_order=True)
    few = core(inner, parts)
    found, smallest = minimal(few if inner.together(few) is False else parts, inner.together)
    asked.known += inner.known[len(asked.known) :]
    out = []
    for rule in rules:
        own = tuple(of[p.name].label for p in found if of[p.name].rule.name == rule.name)
        total = len(split[rule.name])
        out.append(Member(rule.name, rule.span, own, total) if total > 1 else Member(rule.name, rule.span))
    if smallest and inner.together(found, supported=False):
        out.append(_SUPPORTED)
    return out, smallest
