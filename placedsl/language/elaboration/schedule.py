"""``schedule``: the execution model, by a shorthand or by a standard name and a block of choices.

Under a pipeline samples follow one another, and what counts is the time per sample.  The other runs are those of one
sample, and what counts is its latency; ``docs/language/schedule.md`` and ``docs/language/latency.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from placedsl.diagnostics import nearest
from placedsl.graph.graph import Graph
from placedsl.language.checking.checker import Checker
from placedsl.language.elaboration.imports import first_at
from placedsl.language.elaboration.parameters import bare_names
from placedsl.language.elaboration.statement_entries import schedule_entries
from placedsl.language.syntax import statements as syntax
from placedsl.machine.machine import Machine
from placedsl.machine.routes import between_accelerators
from placedsl.problem.execution import COMMUNICATIONS, SCHEDULES, SHORTHANDS, TRANSFERS, Execution

#: What only a schedule of one sample speaks of, and nobody names by chance.
_TELLING = frozenset(("latency", "sequential", "congestion"))
Word = TypeVar("Word", bound=str)
#: Of a microbatch order, and of subgraph calls: two names of one choice.
_COMMUNICATION, _TRANSFERS, _SLOTS = "communication", "transfers", ("slots", "pieces")


def schedule(
    checker: Checker, statements: Sequence[syntax.Schedule], given: str | None, spoken: frozenset[str]
) -> Execution:
    """The execution model of a spec; one that is ``given`` (a keyword) replaces it.

    Where the spec says none, operators are scheduled one by one if it speaks (``spoken``: names) of latency,
    ``sequential`` or ``congestion``; else samples run through a pipeline under 1F1B.
    """
    for extra in statements[1:]:
        checker.error(extra.name, "there is a second 'schedule'", first_at(extra.at, statements[0].at))
    instead = None if given is None else SCHEDULES[given]
    if not statements:
        return instead or SHORTHANDS["dataflow" if spoken & _TELLING else "pipedream"]
    stated = execution(checker, statements[0])
    if instead is None or instead.like(stated):
        return stated
    return instead if instead.one_sample else replace(instead, transfers=stated.transfers)


def with_transfers(
    execution: Execution, statements: Sequence[syntax.Schedule], machine: Machine, graph: Graph
) -> Execution:
    """The model with tensors that go from device to device, where the spec declares links between accelerators.

    What the spec says of ``transfers`` comes first.  Transfer times that a graph gives in place of sizes are those
    between RAM and a device.
    """
    said = any(entry.name.text == _TRANSFERS for statement in statements for entry in statement.block)
    if said or execution.one_sample or not np.isfinite(graph.tensor_bytes).all():
        return execution
    return replace(execution, transfers="direct") if between_accelerators(machine) else execution


def execution(checker: Checker, statement: syntax.Schedule) -> Execution:
    """The model that a statement describes; errors are reported, and what is wrong is left out."""
    name = statement.name
    model = SCHEDULES.get(name.text)
    if model is None:
        checker.error(name, f"there is no schedule '{name.text}'", nearest(name.text, SCHEDULES))
        return Execution()
    known = schedule_entries(name.text)
    seen: set[str] = set()
    for entry in statement.block:
        key = _SLOTS[0] if entry.name.text in _SLOTS else entry.name.text
        if not known:
            checker.error(entry.name, f"schedule {name.text} takes no '{entry.name.text}'", _hint(key))
        elif entry.name.text not in known:
            hint = _hint(key) or nearest(entry.name.text, known)
            checker.error(entry.name, f"schedule {name.text} has no '{entry.name.text}'", hint)
        elif key in seen:
            checker.error(entry.name, f"'{entry.name.text}' is given twice")
        elif key == _COMMUNICATION:
            word = _one_of(checker, key, COMMUNICATIONS, entry.value)
            model = model if word is None else replace(model, communication=word)
        elif key == _TRANSFERS:
            way = _one_of(checker, key, TRANSFERS, entry.value)
            model = model if way is None else replace(model, transfers=way)
        else:
            slots = checker.limited(entry.value, 1, "pieces", f"the number of {entry.name.text}")
            model = replace(model, slots=slots or 1)
        seen.add(key)
    return model


def _hint(key: str) -> str:
    """Which schedule has an entry of that name; empty where none has."""
    examples: Mapping[str, str] = {
        _SLOTS[0]: "calls { pieces = 2 } does", _COMMUNICATION: "1f1b { communication = overlapped } does",
        _TRANSFERS: "1f1b { transfers = direct } does",
    }  # fmt: skip
    return examples.get(key, "")


def _one_of(checker: Checker, entry: str, known: Sequence[Word], value: syntax.Expression) -> Word | None:
    """The word that is the value of an entry; None where it is none of those known, which is reported."""
    match value:
        case syntax.Name(name=word) | syntax.Text(value=word):
            for one in known:
                if word == one:
                    return one
            checker.error(value, f"unknown {entry} '{word}'", nearest(word, known))
        case _:
            checker.error(value, "expected: " + " or ".join(known))
    return None


def spoken_of(goals: Iterable[syntax.Minimize], blocks: Iterable[syntax.Subject], own: Iterable[str]) -> frozenset[str]:
    """The names in objectives and constraints that the spec does not define itself."""
    names: set[str] = set()
    for goal in goals:
        names |= bare_names(goal.objectives)
    for block in blocks:
        for rule in block.rules:
            names |= bare_names(rule.body) if rule.body is not None else {rule.name.text}
    return frozenset(names.difference(own))
