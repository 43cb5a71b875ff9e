"""``schedule``: what times mean, and which quantities there are for that reason.

Under the first four samples follow one another, and what counts is the time per sample.  ``calls`` and ``dataflow`` say
how one sample runs, and what counts is its latency; ``docs/language/latency.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from placedsl.diagnostics import nearest
from placedsl.language import syntax
from placedsl.language.checking import Checker
from placedsl.language.imports import first_at
from placedsl.language.parameters import bare_names
from placedsl.problem import TOLD

THROUGHPUT = ("pipedream", "gpipe", "overlapped", "duplex")
SCHEDULES = (*THROUGHPUT, *TOLD)
#: What only a schedule of one sample speaks of, and nobody names by chance.
_TELLING = frozenset(("latency", "sequential", "congestion"))
_MOST_PIECES = 1_000


@dataclass(frozen=True)
class Schedule:
    """The schedule's name, and how many calls an accelerator has at most (schedule ``calls``)."""

    name: str
    pieces: int = 1


def schedule(
    checker: Checker, statements: Sequence[syntax.Schedule], given: str | None, spoken: frozenset[str]
) -> Schedule:
    """The schedule of a spec; one that is ``given`` (and exists) replaces it.

    Where the spec says none, it is ``dataflow`` if it speaks (``spoken``: names) of latency, ``sequential`` or
    ``congestion``, else ``pipedream``.
    """
    for extra in statements[1:]:
        checker.error(extra.name, "there is a second 'schedule'", first_at(extra.at, statements[0].at))
    if not statements:
        return Schedule(given or ("dataflow" if spoken & _TELLING else "pipedream"))
    name, pieces = statements[0].name, 1
    if name.text not in SCHEDULES:
        checker.error(name, f"there is no schedule '{name.text}'", nearest(name.text, SCHEDULES))
    for number, entry in enumerate(statements[0].block):
        if name.text != "calls":
            checker.error(entry.name, f"schedule {name.text} takes no '{entry.name.text}'", "calls { pieces = 2 } does")
        elif entry.name.text != "pieces":
            checker.error(
                entry.name, f"schedule calls has no '{entry.name.text}'", nearest(entry.name.text, ["pieces"])
            )
        elif number:
            checker.error(entry.name, "'pieces' is given twice")
        else:
            pieces = checker.integer(entry.value, 1, _MOST_PIECES, "the number of pieces") or 1
    return Schedule(given or name.text, pieces if given in (None, "calls") else 1)


def spoken_of(goals: Iterable[syntax.Minimize], blocks: Iterable[syntax.Subject], own: Iterable[str]) -> frozenset[str]:
    """The names in objectives and constraints that the spec does not define itself."""
    names: set[str] = set()
    for goal in goals:
        names |= bare_names(goal.objectives)
    for block in blocks:
        for rule in block.rules:
            names |= bare_names(rule.body) if rule.body is not None else {rule.name.text}
    return frozenset(names.difference(own))
