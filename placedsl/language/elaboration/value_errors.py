"""Values for the parameters of a spec, each checked on its own and without any graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from placedsl.diagnostics import Diagnostic, UsageError
from placedsl.language.checking.checker import Checker
from placedsl.language.elaboration import parameters
from placedsl.language.elaboration.elaborate import no_words
from placedsl.language.elaboration.external_values import ExternalValues
from placedsl.language.syntax import statements as syntax


def wrong_values(
    statements: Sequence[syntax.Statement], external: ExternalValues, values: Iterable[tuple[str, str]]
) -> list[Diagnostic]:
    """What is wrong with these names and texts, beside what is wrong with the parameters without them."""
    declared = [s for s in statements if isinstance(s, syntax.Param)]
    already = set(_found(declared, replace(external, texts={})))
    out: list[Diagnostic] = []
    for name, text in values:
        try:
            out += [d for d in _found(declared, replace(external, texts={name: text})) if d not in already]
        except UsageError as problem:
            out.append(Diagnostic(str(problem).removeprefix("--set ")))
    return list(dict.fromkeys(out))


def _found(declared: list[syntax.Param], external: ExternalValues) -> list[Diagnostic]:
    checker = Checker(no_words(), {}, [], {})
    parameters.read(checker, declared, external)
    return checker.found
