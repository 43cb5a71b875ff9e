"""A formulation: decision variables, what they provide, and rows, before it meets a problem.

Read from the files in ``models/``; grounded by :mod:`placedsl.program`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placedsl.diagnostics import Diagnostic, InputError, Span
from placedsl.expressions import Expression, Sort, provided_names
from placedsl.problem import Problem, Variable


@dataclass(frozen=True)
class Definition:
    """``provides name(slots) = body``."""

    name: str
    slots: tuple[str, ...]
    sorts: tuple[Sort, ...]
    body: Expression
    span: Span


@dataclass(frozen=True)
class NamedRule:
    """A row family of the formulation; ``label`` is its number in the paper."""

    name: str
    label: str
    body: Expression
    span: Span


@dataclass(frozen=True)
class Formulation:
    """One program of a paper.

    ``parallelism`` are the kinds of parallelism that it is for.

    ``tight`` holds, by variable, the rows that keep it from being larger than its meaning; they are
    added only where some other row or an objective would reward a larger value.  ``always`` are variables that a spec
    declares: they and their rows are there even where no quantity rests on them.

    ``own``: the spec writes or extends it.
    """

    name: str
    schedules: tuple[str, ...]
    parallelism: tuple[str, ...]
    variables: Mapping[str, Variable]
    provides: Mapping[str, Definition]
    rules: tuple[NamedRule, ...]
    tight: Mapping[str, tuple[NamedRule, ...]]
    span: Span
    always: frozenset[str] = frozenset()
    own: bool = False


def choose(problem: Problem, formulations: Iterable[Formulation]) -> Formulation:
    """The formulation that provides every objective under the problem's schedule, and if possible all constraints."""
    wanted, asked = _asked(problem)
    fitting = [f for f in formulations if problem.schedule in f.schedules and f.parallelism == problem.parallelism]
    enough = [f for f in fitting if wanted <= f.provides.keys()]
    for formulation in enough:
        if asked <= formulation.provides.keys():
            return formulation
    if enough:
        return enough[0]
    provided = sorted({n for f in fitting for n in f.provides} - {"on"})
    span = problem.objectives[0].span
    missing = ", ".join(sorted(wanted - {n for f in fitting for n in f.provides}))
    among = "".join(f" with parallelism {kind}" for kind in problem.parallelism)
    message = f"no formulation provides {missing or 'this'} under schedule {problem.schedule}{among}"
    raise InputError([Diagnostic(message, span, "provided there: " + ", ".join(provided))])


def passed_over(problem: Problem, formulations: Iterable[Formulation], chosen: Formulation) -> list[str]:
    """Why formulations that the spec writes itself are not taken, a sentence each."""
    wanted, asked = _asked(problem)
    out = []
    for formulation in formulations:
        if formulation is chosen or not formulation.own:
            continue
        missing = (wanted - formulation.provides.keys()) or (asked - formulation.provides.keys())
        if problem.schedule not in formulation.schedules:
            cure = f"for another schedule; if it is for this one, write 'schedule {problem.schedule}' within its braces"
            out.append(f"formulation '{formulation.name}' is not taken: it is {cure}")
        elif formulation.parallelism != problem.parallelism:
            wanted_kinds = ", ".join(problem.parallelism) or "none"
            out.append(f"formulation '{formulation.name}' is not taken: the parallelism asked for is {wanted_kinds}")
        elif missing:
            said = ", ".join(sorted(missing))
            out.append(f"formulation '{formulation.name}' is not taken: it does not provide {said}")
    return out


def _asked(problem: Problem) -> tuple[set[str], set[str]]:
    """The quantities that the objectives ask for, and those that anything asks for."""
    wanted = {n for o in problem.objectives for n in provided_names(o.body)}
    return wanted, wanted | {n for r in problem.rules for n in provided_names(r.body)}
