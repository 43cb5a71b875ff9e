"""``parallelism { data = 1..4, weights = parameters }``: how many devices may share the samples of a stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placedsl import expressions as core
from placedsl.diagnostics import nearest
from placedsl.graph.graph import Floats, Graph
from placedsl.language import syntax
from placedsl.language.assemble import link_to_host
from placedsl.language.checking import Checker
from placedsl.language.constants import known_number
from placedsl.language.imports import first_at
from placedsl.language.vocabulary import PLAIN, AttributeType, Family, Vocabulary
from placedsl.machine.machine import Machine
from placedsl.problem import Replication, Variable
from placedsl.units import NUMBER

#: Schedules that say what a load is where several devices share the samples.
SCHEDULES = ("pipedream", "overlapped", "duplex")
_KNOWN = ("data", "weights")
#: What a group of devices can be sized.
_MOST = 10_000


def replication(
    checker: Checker, statements: Sequence[syntax.Parallelism], schedule: str, graph: Graph, machine: Machine
) -> Replication | None:
    """What the statement says, None where there is none or it is wrong (which was reported)."""
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
    if schedule not in SCHEDULES:
        hint = "it is known under " + ", ".join(SCHEDULES)
        checker.error(word, f"schedule {schedule} does not say what a load is when devices share the samples", hint)
    copies: tuple[int, ...] | None = ()
    if "data" in entries:
        copies = _copies(checker, entries["data"], len(machine.devices))
    elif len(checker.found) == before:
        checker.error(word, "'parallelism' does not say how many devices may share samples", "as in { data = 1..4 }")
    weights = _weights(checker, graph, entries.get("weights"))
    if weights is not None and (weights < 0.0).any():
        node = graph.names[int(np.argmin(weights))]
        checker.error(word, f"node '{node}' has weights of {weights.min():g} bytes", "they cannot be negative")
    if copies is None or weights is None or len(checker.found) > before:
        return None
    return Replication(copies, _seconds(checker, word, graph, machine, weights), statement.at.span)


def variable(given: Replication) -> tuple[Variable, Family]:
    """``copies[d]``: the decision that comes with it."""
    devices = core.NamedSet("devices", ("device",), given.span)
    binder = core.Binder(("d",), devices, None, given.span)
    return Variable("copies", (binder,), True, 0.0, float(given.copies[-1]), given.span), Family(("device",), PLAIN)


def with_copies(words: Vocabulary, given: Replication) -> Vocabulary:
    """The vocabulary with ``copies[d]`` and ``v.synchronisation[d]``."""
    of_node = dict(words.attributes["node"])
    time = of_node["time"].type
    of_node["synchronisation"] = AttributeType(time, "device")
    variables = {**words.variables, "copies": variable(given)[1]}
    return replace(words, variables=variables, attributes={**words.attributes, "node": of_node})


def replicas(given: Replication) -> core.SetExpression:
    """The set ``replicas`` of a formulation: the numbers that are allowed."""
    items = tuple((core.Constant(float(number), given.span),) for number in given.copies)
    return core.Listed(items, ("integer",), given.span)


def _copies(checker: Checker, entry: syntax.Entry, devices: int) -> tuple[int, ...] | None:
    """``1..4`` or ``{1, 2, 4}``: ascending, with 1, and no more than there are devices."""
    match entry.value:
        case syntax.Range(low=low, high=high):
            ends = [checker.integer(end, 1, _MOST, "the number of devices") for end in (low, high)]
            if ends[0] is None or ends[1] is None:
                return None
            numbers = list(range(ends[0], ends[1] + 1))
        case syntax.Braces(pairs=pairs) if all(value is None for _, value in pairs):
            given = [checker.integer(item, 1, _MOST, "the number of devices") for item, _ in pairs]
            numbers = sorted({number for number in given if number is not None})
            if None in given:
                return None
        case _:
            only = checker.integer(entry.value, 1, _MOST, "the number of devices")
            if only is None:
                return None
            numbers = [only]
    if 1 not in numbers:
        checker.error(entry.value, "1 must be among the numbers of devices", "as in data = 1..4, or data = {1, 2, 4}")
        return None
    return tuple(number for number in numbers if number <= max(1, devices))


def _weights(checker: Checker, graph: Graph, entry: syntax.Entry | None) -> Floats | None:
    """Bytes of weights of each node."""
    numbers = {n: np.nan_to_num(v.astype(float)) for n, v in graph.attributes.items() if v.dtype.kind == "f"}
    known: dict[str, Floats] = {**numbers, "memory": graph.memory}
    if entry is None:
        return known.get("parameters", np.zeros(graph.nodes))
    match entry.value:
        case syntax.Name(name=name) | syntax.Text(value=name) if name in known:
            return known[name]
        case syntax.Name(name=name) | syntax.Text(value=name):
            checker.error(entry.value, f"nodes have no number '{name}'", nearest(name, known))
            return None
    out, kind = checker.number(entry.value)
    if kind.kind != "error" and (known_number(out) != 0.0 or kind.dimension != NUMBER):
        checker.error(entry.value, "the attribute that holds a node's weights in bytes is expected",
                      "as in weights = parameters; weights = 0 for none")  # fmt: skip
        return None
    return np.zeros(graph.nodes)


def _seconds(checker: Checker, word: syntax.Word, graph: Graph, machine: Machine, weights: Floats) -> Floats:
    """n x D: how long each node's weights take over the device's link; hosts share memory and need none."""
    out = np.zeros((graph.nodes, len(machine.devices)))
    if not weights.any():
        return out
    if not graph.time_in_seconds:
        hint = 'say what its times are, as in graph from "…" { time_unit = 1 ms }; or weights = 0'
        checker.error(word, "weights have bytes, and the graph's times no unit", hint)
        return out
    for i, device in enumerate(machine.devices):
        if device.kind != "accelerator":
            continue
        link, _ = link_to_host(machine, device)
        if link is None:
            hint = "as in interconnect { bandwidth = 16 GB/s }; or weights = 0"
            checker.error(word, f"nothing says how fast '{device.family}' sends its weights", hint)
            break
        out[:, i] = weights / link.bandwidth
    return out
