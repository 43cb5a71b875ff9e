"""A formulation: decision variables, what they provide, and rows, before it meets a problem.

Read from the files in ``models/``; grounded by :mod:`placedsl.grounding`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from placedsl.diagnostics import Diagnostic, InputError, Span
from placedsl.problem.execution import Execution
from placedsl.problem.expression_walks import provided_names
from placedsl.problem.expressions import Expression, Sort
from placedsl.problem.problem import Problem, Variable
from placedsl.records import dataclass


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


#: Conditions on an execution model that hold together: for some of its choices the values that they may have.
Scope = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Formulation:
    """One program of a paper.

    ``scopes`` says which execution models it is for: those that one of them holds for.

    ``tight`` holds, by variable, the rows that keep it from being larger than its meaning; they are
    added only where some other row or an objective would reward a larger value.  ``always`` are variables that a spec
    declares: they and their rows are there even where no quantity rests on them.

    ``own``: the spec writes or extends it.
    """

    name: str
    scopes: tuple[Scope, ...]
    variables: Mapping[str, Variable]
    provides: Mapping[str, Definition]
    rules: tuple[NamedRule, ...]
    tight: Mapping[str, tuple[NamedRule, ...]]
    span: Span
    always: frozenset[str] = frozenset()
    own: bool = False

    def lacks(self, problem: Problem) -> frozenset[str]:
        """The choices of the problem's execution model that it is not for; none where it is for the model."""
        chosen = choices(problem.execution)
        wrong = [frozenset(a for a, values in scope.items() if chosen[a] not in values) for scope in self.scopes]
        return min(wrong, key=len, default=frozenset(chosen))


#: What ``under`` calls the kinds of parallelism of an execution model.
_PARALLELISM: Mapping[tuple[str, ...], str] = {
    (): "none", ("data",): "data", ("data", "tensor"): "plan", ("data", "tensor", "chunks"): "chunks",
    ("data", "tensor", "clusters"): "clusters",
}  # fmt: skip


def choices(execution: Execution) -> Mapping[str, str]:
    """What an execution model chooses, by the names that ``under`` uses."""
    return {
        "run": execution.run, "order": execution.order, "communication": execution.communication,
        "transfers": execution.transfers,
        "parallelism": _PARALLELISM[execution.parallelism], "streams": execution.streams,
    }  # fmt: skip


def choose(problem: Problem, formulations: Iterable[Formulation]) -> Formulation:
    """The formulation that provides every objective under the problem's schedule, and if possible all constraints."""
    wanted, asked = _asked(problem)
    fitting = [f for f in formulations if not f.lacks(problem)]
    enough = [f for f in fitting if wanted <= f.provides.keys()]
    for formulation in enough:
        if asked <= formulation.provides.keys():
            return formulation
    if enough:
        return enough[0]
    provided = sorted({n for f in fitting for n in f.provides} - {"on"})
    span = problem.objectives[0].span
    missing = ", ".join(sorted(wanted - {n for f in fitting for n in f.provides}))
    among = "".join(f" with parallelism {kind}" for kind in problem.execution.parallelism)
    message = f"no formulation provides {missing or 'this'} under schedule {problem.execution.name}{among}"
    raise InputError([Diagnostic(message, span, "provided there: " + ", ".join(provided))])


def passed_over(problem: Problem, formulations: Iterable[Formulation], chosen: Formulation) -> list[str]:
    """Why formulations that the spec writes itself are not taken, a sentence each."""
    wanted, asked = _asked(problem)
    name = problem.execution.name
    out = []
    for formulation in formulations:
        if formulation is chosen or not formulation.own:
            continue
        missing = (wanted - formulation.provides.keys()) or (asked - formulation.provides.keys())
        lacks = formulation.lacks(problem)
        if lacks == {"streams"}:
            out.append(f"formulation '{formulation.name}' is not taken: it does not say what devices stream")
        elif lacks - {"parallelism"}:
            cure = f"for another schedule; if it is for this one, write 'schedule {name}' within its braces"
            out.append(f"formulation '{formulation.name}' is not taken: it is {cure}")
        elif lacks:
            kinds = ", ".join(problem.execution.parallelism) or "none"
            out.append(f"formulation '{formulation.name}' is not taken: the parallelism asked for is {kinds}")
        elif missing:
            said = ", ".join(sorted(missing))
            out.append(f"formulation '{formulation.name}' is not taken: it does not provide {said}")
    return out


def _asked(problem: Problem) -> tuple[set[str], set[str]]:
    """The quantities that the objectives ask for, and those that anything asks for."""
    wanted = {n for o in problem.objectives for n in provided_names(o.body)}
    if problem.execution.streams != "none":
        wanted |= {"streamed"}  # one that does not know it says of loads what they are not
    return wanted, wanted | {n for r in problem.constraints for n in provided_names(r.body)}
