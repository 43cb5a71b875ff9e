"""``parallelism { data = 1..4, weights = parameters }``: how many devices may share the samples of a stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placedsl.arrays import Floats
from placedsl.cost_model import weight_exchange
from placedsl.diagnostics import nearest
from placedsl.graph.graph import Graph
from placedsl.language.checking.checker import Checker
from placedsl.language.checking.constant_folding import known_number
from placedsl.language.checking.vocabulary import PLAIN, AttributeType, Family, Vocabulary
from placedsl.language.elaboration.imports import first_at
from placedsl.language.elaboration.statement_entries import STATEMENTS
from placedsl.language.syntax import statements as syntax
from placedsl.machine.machine import Machine
from placedsl.problem import expressions as core
from placedsl.problem.execution import SHORTHANDS, DataParallelism, Execution
from placedsl.problem.problem import Variable
from placedsl.units import NUMBER

_KNOWN = STATEMENTS["parallelism"].entries


def data_parallelism(
    checker: Checker, statements: Sequence[syntax.Parallelism], execution: Execution, graph: Graph, machine: Machine
) -> DataParallelism | None:
    """What the statement says, None where there is none or it is wrong (which was reported).

    How long the exchange of weights takes is not known yet here: the cost model computes it.
    """
    for extra in statements[1:]:
        hint = first_at(extra.at, statements[0].at)
        checker.error(syntax.Word(extra.at, "parallelism"), "there is a second 'parallelism'", hint)
    if not statements:
        return None
    statement = statements[0]
    entries = {entry.name.text: entry for entry in reversed(statement.block)}
    before = len(checker.found)
    for entry in statement.block:
        if entry.name.text not in _KNOWN:
            checker.error(entry.name, f"'parallelism' has no '{entry.name.text}'", nearest(entry.name.text, _KNOWN))
        elif entries[entry.name.text] is not entry:
            checker.error(entry.name, f"'{entry.name.text}' is given twice")
    word = syntax.Word(statement.at, "parallelism")
    if not execution.shareable:
        hint = "it is known under " + ", ".join(name for name, known in SHORTHANDS.items() if known.shareable)
        message = f"schedule {execution.name} runs one sample, and devices that share a stage take different samples"
        checker.error(word, message, hint)
    copies: tuple[int, ...] | None = ()
    if "data" in entries:
        copies = _copies(checker, entries["data"], len(machine.devices))
    elif len(checker.found) == before:
        checker.error(word, "'parallelism' does not say how many devices may share samples", "as in { data = 1..4 }")
    weights = _weights(checker, graph, entries.get("weights"))
    if copies is None or weights is None or len(checker.found) > before:
        return None
    return DataParallelism(copies, weights, np.zeros((0, 0)), statement.at.span)


def variable(given: DataParallelism) -> tuple[Variable, Family]:
    """``copies[d]``: the decision that comes with it."""
    devices = core.NamedSet("devices", ("device",), given.span)
    binder = core.Binder(("d",), devices, None, given.span)
    return Variable("copies", (binder,), True, 0.0, float(given.degrees[-1]), given.span), Family(("device",), PLAIN)


def with_copies(words: Vocabulary, given: DataParallelism) -> Vocabulary:
    """The vocabulary with ``copies[d]`` and ``v.synchronisation[d]``."""
    of_node = dict(words.attributes["node"])
    time = of_node["time"].type
    of_node["synchronisation"] = AttributeType(time, "device")
    variables = {**words.variables, "copies": variable(given)[1]}
    return replace(words, variables=variables, attributes={**words.attributes, "node": of_node})


def replicas(given: DataParallelism) -> core.SetExpression:
    """The set ``replicas`` of a formulation: the numbers that are allowed."""
    items = tuple((core.Constant(float(number), given.span),) for number in given.degrees)
    return core.Listed(items, ("integer",), given.span)


def _copies(checker: Checker, entry: syntax.Entry, devices: int) -> tuple[int, ...] | None:
    """``1..4`` or ``{1, 2, 4}``: ascending, with 1, and no more than there are devices."""
    match entry.value:
        case syntax.Range(low=low, high=high):
            ends = [checker.limited(end, 1, "copies", "the number of devices") for end in (low, high)]
            if ends[0] is None or ends[1] is None:
                return None
            numbers = list(range(ends[0], ends[1] + 1))
        case syntax.Braces(pairs=pairs) if all(value is None for _, value in pairs):
            given = [checker.limited(item, 1, "copies", "the number of devices") for item, _ in pairs]
            numbers = sorted({number for number in given if number is not None})
            if None in given:
                return None
        case _:
            only = checker.limited(entry.value, 1, "copies", "the number of devices")
            if only is None:
                return None
            numbers = [only]
    if 1 not in numbers:
        checker.error(entry.value, "1 must be among the numbers of devices", "as in data = 1..4, or data = {1, 2, 4}")
        return None
    return tuple(number for number in numbers if number <= max(1, devices))


def _weights(checker: Checker, graph: Graph, entry: syntax.Entry | None) -> Floats | None:
    """Bytes of weights of each node."""
    attribute: str | None = None
    if entry is not None:
        match entry.value:
            case syntax.Name(name=name) | syntax.Text(value=name):
                attribute = name
            case _:
                out, kind = checker.number(entry.value)
                if kind.kind != "error" and (known_number(out) != 0.0 or kind.dimension != NUMBER):
                    checker.error(entry.value, "the attribute that holds a node's weights in bytes is expected",
                                  "as in weights = parameters; weights = 0 for none")  # fmt: skip
                    return None
                return np.zeros(graph.nodes)
    place = None if entry is None else checker.span(entry.value)
    weights, missing = weight_exchange.node_weights(graph, attribute, place)
    checker.found += missing
    return weights
