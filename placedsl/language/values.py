"""Values for the parameters of a spec, each checked on its own and without any graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from placedsl.diagnostics import Diagnostic, UsageError
from placedsl.language import parameters, syntax
from placedsl.language.checking import Checker
from placedsl.language.elaborate import no_words
from placedsl.language.given import Given


def wrong_values(
    statements: Sequence[syntax.Statement], given: Given, values: Iterable[tuple[str, str]]
) -> list[Diagnostic]:
    """What is wrong with these names and texts, beside what is wrong with the parameters without them."""
    declared = [s for s in statements if isinstance(s, syntax.Param)]
    already = set(_found(declared, replace(given, texts={})))
    out: list[Diagnostic] = []
    for name, text in values:
        try:
            out += [d for d in _found(declared, replace(given, texts={name: text})) if d not in already]
        except UsageError as problem:
            out.append(Diagnostic(str(problem).removeprefix("--set ")))
    return list(dict.fromkeys(out))


def _found(declared: list[syntax.Param], given: Given) -> list[Diagnostic]:
    checker = Checker(no_words(), {}, [], {})
    parameters.read(checker, declared, given)
    return checker.found
