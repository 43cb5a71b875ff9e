"""``solve { … }``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placedsl.budget import MOST
from placedsl.diagnostics import Span, nearest
from placedsl.language.checking.checker import Checker
from placedsl.language.elaboration import machine as deployment
from placedsl.language.elaboration.imports import first_at
from placedsl.language.elaboration.statement_entries import STATEMENTS
from placedsl.language.syntax import statements as syntax
from placedsl.problem.problem import Settings


def settings(checker: Checker, statements: Sequence[syntax.Solve]) -> Settings:
    """What the ``solve`` block pins."""
    known = STATEMENTS["solve"].entries
    words: dict[str, str] = {}
    places: dict[str, Span] = {}
    numbers: list[syntax.Entry] = []
    for extra in statements[1:]:
        checker.error(syntax.Word(extra.at, "solve"), "there is a second 'solve'", first_at(extra.at, statements[0].at))
    for entry in statements[0].block if statements else ():
        if entry.name.text in known and known[entry.name.text].dimension is None:
            match entry.value:
                case syntax.Name(name=word) | syntax.Text(value=word):
                    words[entry.name.text] = word
                    places[entry.name.text] = entry.value.at.span
                case _:
                    checker.error(entry.value, "a name is expected here")
        elif entry.name.text not in known:
            checker.error(entry.name, f"'solve' has no '{entry.name.text}'", nearest(entry.name.text, known))
        else:
            numbers.append(entry)
    values = deployment.entry_values(checker, tuple(numbers), "solve")
    given: dict[str, Any] = {}
    for name, (value, entry) in values.items():
        if name in ("workers", "seed") and not value.is_integer():
            checker.error(entry.value, f"'{name}' is a whole number")
        elif name in ("workers", "seed") and value > MOST[name]:
            checker.error(entry.value, f"'{name}' is {MOST[name]:,} at most")
        elif name == "gap" and value >= 1:
            checker.error(entry.value, "a gap is below 100%", "as in gap = 1%")
        elif name in ("workers", "time_limit") and not value:
            checker.error(entry.value, f"'{name}' cannot be zero")
        else:
            given[name] = int(value) if name in ("workers", "seed") else value
    given |= words
    given["places"] = places
    return Settings(**given)
