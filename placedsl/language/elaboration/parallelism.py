"""``parallelism { data = 1..4, tensor = {1, 2, 4}, microbatches = 512 }``: how many devices a stage may have, and how.

With nothing but ``data`` and ``weights`` devices share the samples of a stage.  Any other entry, or a graph whose
operators have options, asks for a plan: each copy of a stage may be several devices, every operator takes one of its
options, and memory depends on the samples in flight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isqrt

import numpy as np

from placedsl.arrays import Floats
from placedsl.cost_model import weight_exchange
from placedsl.diagnostics import Diagnostic, Span, nearest
from placedsl.graph.graph import Graph
from placedsl.language.checking.checker import Checker
from placedsl.language.checking.constant_folding import known_number
from placedsl.language.checking.schedule_vocabulary import with_plans
from placedsl.language.checking.vocabulary import PLAIN, AttributeType, Family, Vocabulary
from placedsl.language.elaboration.cluster_levels import levels, within_clusters
from placedsl.language.elaboration.imports import first_at
from placedsl.language.elaboration.statement_entries import STATEMENTS
from placedsl.language.syntax import statements as syntax
from placedsl.machine.machine import Machine
from placedsl.problem import expressions as core
from placedsl.problem.execution import EXCHANGES, HELD, SHORTHANDS, DataParallelism, Exchange, Execution, Held
from placedsl.problem.problem import Variable
from placedsl.units import NUMBER

_KNOWN = STATEMENTS["parallelism"].entries
#: What devices that share samples are asked for; any other entry asks for a plan.
_SHARING = ("data", "weights")


def data_parallelism(
    checker: Checker,
    statements: Sequence[syntax.Parallelism],
    execution: Execution,
    graph: Graph,
    machine: Machine,
    options_at: Span,
) -> DataParallelism | None:
    """What the statement says, None where there is none or it is wrong (which was reported).

    How long the exchange of weights takes, and what options cost, is not known yet here: the cost model computes it.
    """
    for extra in statements[1:]:
        hint = first_at(extra.at, statements[0].at)
        checker.error(syntax.Word(extra.at, "parallelism"), "there is a second 'parallelism'", hint)
    if not statements:
        if graph.options is not None:
            message = "the operators of this graph have options, and nothing says how stages may use devices"
            checker.found.append(Diagnostic(message, options_at, "parallelism { data = 1 }, or more of either kind"))
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
    count = len(machine.devices)
    microbatches = _microbatches(checker, entries.get("microbatches"))
    copies: tuple[int, ...] | None = ()
    if "data" in entries:
        copies = _degrees(checker, entries["data"], microbatches)
        if copies is not None and 1 not in copies:
            message = "1 must be among the numbers of devices"
            checker.error(entries["data"].value, message, "as in data = 1..4, or data = {1, 2, 4}")
    elif len(checker.found) == before:
        checker.error(word, "'parallelism' does not say how many devices may share samples", "as in { data = 1..4 }")
    weights = _weights(checker, graph, entries.get("weights"))
    planned = graph.options is not None or any(name not in _SHARING for name in entries)
    numbers = copies or (1,)
    copies = None if copies is None else tuple(number for number in copies if number <= max(1, count))
    tensor = _tensor_degrees(checker, entries.get("tensor"), graph, count) if planned else (1,)
    degrees = tuple(t for t in tensor if t <= max(1, count)) or (1,)
    names = _option_names(checker, entries.get("options"), graph)
    exchange = _exchange(checker, entries, copies or (1,), microbatches)
    held = _held(checker, entries.get("in_flight"), microbatches)
    traffic = _traffic(checker, entries.get("weights_traffic"))
    across = levels(checker, entries.get("across"), machine)
    if across is not None:
        degrees = within_clusters(checker, entries.get("tensor"), degrees, across)
    chunks = _chunks(checker, entries, copies or (1,), microbatches, held)
    if microbatches is not None and (exchange == "batch" or (chunks > 1 and held == "pipeline")):
        # What a larger machine had devices for, and samples cannot be shared evenly by, is refused there.
        numbers = tuple(number for number in numbers if microbatches % number == 0)
    if planned and len(checker.found) == before:
        _refuse_unknown(checker, word, execution, graph)
    if copies is None or weights is None or len(checker.found) > before:
        return None
    return DataParallelism(
        copies,
        weights,
        np.zeros((0, 0)),
        statement.at.span,
        degrees,
        microbatches,
        exchange,
        traffic,
        None,
        planned,
        names,
        held,
        across,
        chunks,
        (numbers, tensor),
    )


def refuse_routes(checker: Checker, sharing: DataParallelism | None, execution: Execution) -> None:
    """What options gather and scatter is not known over routes from device to device yet."""
    if sharing is not None and sharing.planned and execution.device_to_device:
        message = f"plans are not known with transfers = {execution.transfers} yet"
        hint = "an interconnect, or schedule 1f1b { transfers = through_host }"
        checker.found.append(Diagnostic(message, sharing.span, hint))


def variable(given: DataParallelism) -> tuple[Variable, Family]:
    """``copies[d]``: the decision that comes with it."""
    devices = core.NamedSet("devices", ("device",), given.span)
    binder = core.Binder(("d",), devices, None, given.span)
    return Variable("copies", (binder,), True, 0.0, float(given.degrees[-1]), given.span), Family(("device",), PLAIN)


def with_copies(words: Vocabulary, given: DataParallelism) -> Vocabulary:
    """The vocabulary with ``copies[d]`` and ``v.synchronisation[d]``; and with what plans decide."""
    of_node = dict(words.attributes["node"])
    time = of_node["time"].type
    of_node["synchronisation"] = AttributeType(time, "device")
    variables = {**words.variables, "copies": variable(given)[1]}
    attributes = {**words.attributes, "node": of_node}
    words = replace(words, variables=variables, attributes=attributes, chunks=given.chunks > 1)
    options = words.graph.options
    return with_plans(words, ("",) if options is None else options.labels) if given.planned else words


def replicas(given: DataParallelism) -> core.SetExpression:
    """The set ``replicas`` of a formulation: the numbers that are allowed."""
    items = tuple((core.Constant(float(number), given.span),) for number in given.degrees)
    return core.Listed(items, ("integer",), given.span)


def _microbatches(checker: Checker, entry: syntax.Entry | None) -> int | None:
    """None: nothing is said; 0, which all numbers divide: what is said is wrong, and has been told."""
    return None if entry is None else checker.limited(entry.value, 1, "copies", "microbatches") or 0


def _degrees(checker: Checker, entry: syntax.Entry, microbatches: int | None = None) -> tuple[int, ...] | None:
    """``1..4``, ``{1, 2, 4}`` or ``divisors(microbatches)``: ascending."""
    what = "the number of devices"
    match entry.value:
        case syntax.Range(low=low, high=high):
            ends = [checker.limited(end, 1, "copies", what) for end in (low, high)]
            if ends[0] is None or ends[1] is None:
                return None
            numbers = list(range(ends[0], ends[1] + 1))
        case syntax.Braces(pairs=pairs) if all(value is None for _, value in pairs):
            given = [checker.limited(item, 1, "copies", what) for item, _ in pairs]
            numbers = sorted({number for number in given if number is not None})
            if None in given:
                return None
        case syntax.Call(name="divisors", arguments=(of,), body=None):
            number = microbatches
            if not (isinstance(of, syntax.Name) and of.name == "microbatches"):
                number = checker.limited(of, 1, "copies", "the number that is divided")
            elif microbatches is None:
                checker.error(of, "'parallelism' does not say how many microbatches there are", "microbatches = 512")
            if not number:
                return None
            low_ones = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
            numbers = sorted({*low_ones, *(number // n for n in low_ones)})
        case _:
            only = checker.limited(entry.value, 1, "copies", what)
            if only is None:
                return None
            numbers = [only]
    return tuple(numbers)


def _tensor_degrees(checker: Checker, entry: syntax.Entry | None, graph: Graph, devices: int) -> tuple[int, ...]:
    """The degrees of tensor parallelism: those that are named, else all that there are options for."""
    known = (1,) if graph.options is None else graph.options.degrees
    if entry is None:
        return known
    degrees = _degrees(checker, entry)
    if degrees is None:
        return (1,)
    options = graph.options
    for t in (t for t in degrees if t <= devices):
        able = {*range(graph.nodes)} if t == 1 and options is None else set[int]()
        if options is not None:
            able = set(options.node[options.degree == t].tolist())
        lacking = [v for v in range(graph.nodes) if v not in able]
        if len(lacking) == graph.nodes:
            hint = "there are options for " + ", ".join(map(str, known))
            checker.error(entry.value, f"no node has an option for {t} devices", hint)
    if not any(t <= devices for t in degrees):
        checker.error(entry.value, "there are fewer devices than any of these numbers")
    return degrees or (1,)


def _option_names(checker: Checker, entry: syntax.Entry | None, graph: Graph) -> frozenset[str] | None:
    """``{"vanilla", "recomputed"}``: the options that may be taken; None: all."""
    if entry is None:
        return None
    known = sorted({*(() if graph.options is None else graph.options.name)})
    match entry.value:
        case syntax.Braces(pairs=pairs) if all(value is None and isinstance(key, syntax.Text) for key, value in pairs):
            given = [key for key, _ in pairs if isinstance(key, syntax.Text)]
        case syntax.Text():
            given = [entry.value]
        case _:
            checker.error(entry.value, "names of options are expected", 'as in options = {"vanilla"}')
            return None
    names = frozenset(one.value for one in given)
    for one in given:
        if one.value not in known:
            checker.error(one, f"no operator has an option '{one.value}'", nearest(one.value, known))
            return None
    if graph.options is not None:
        able = {v for v, name in zip(graph.options.node.tolist(), graph.options.name, strict=True) if name in names}
        lacking = next((v for v in range(graph.nodes) if v not in able), None)
        if lacking is not None:
            checker.error(entry.value, f"node '{graph.ids[lacking]}' has no such option")
    return names


def _exchange(
    checker: Checker, entries: Mapping[str, syntax.Entry], copies: tuple[int, ...], microbatches: int | None
) -> Exchange:
    entry = entries.get("exchange")
    if entry is None:
        return "sample"
    if not isinstance(entry.value, syntax.Name) or entry.value.name not in EXCHANGES:
        said = entry.value.name if isinstance(entry.value, syntax.Name) else ""
        hint = nearest(said, EXCHANGES) or "one of " + ", ".join(EXCHANGES)
        checker.error(entry.value, "this is no period of the exchange of weights", hint)
        return "sample"
    exchange: Exchange = EXCHANGES[EXCHANGES.index(entry.value.name)]
    if exchange == "batch":
        if microbatches is None:
            checker.error(
                entry.value, "an exchange per batch requires the number of microbatches", "microbatches = 512"
            )
        elif any(microbatches % number for number in copies) and "data" in entries:
            number = next(number for number in copies if microbatches % number)
            message = f"{microbatches} microbatches cannot be shared evenly by {number} copies"
            checker.error(entries["data"].value, message, "as in data = divisors(microbatches)")
    return exchange


def _held(checker: Checker, entry: syntax.Entry | None, microbatches: int | None) -> Held:
    if entry is None:
        return "pipeline"
    said = entry.value.name if isinstance(entry.value, syntax.Name) else ""
    if said not in HELD:
        hint = nearest(said, HELD) or "one of " + ", ".join(HELD)
        checker.error(entry.value, "this does not say which samples are in flight", hint)
        return "pipeline"
    if said == "batch" and microbatches is None:
        message = "samples of a batch in flight require the number of microbatches"
        checker.error(entry.value, message, "microbatches = 512")
    return HELD[HELD.index(said)]


def _chunks(
    checker: Checker,
    entries: Mapping[str, syntax.Entry],
    copies: tuple[int, ...],
    microbatches: int | None,
    held: Held,
) -> int:
    entry = entries.get("chunks")
    if entry is None:
        return 1
    chunks = checker.limited(entry.value, 1, "copies", "chunks")
    if chunks is None or chunks == 1:
        return 1
    if "across" in entries:
        message = "stages of several chunks are not known over clusters that share samples"
        checker.error(entry.value, message, "either 'chunks' or 'across'")
    elif held == "pipeline" and microbatches is None:
        message = "stages of several chunks require the number of microbatches"
        checker.error(entry.value, message, "microbatches = 512")
    elif (
        held == "pipeline" and microbatches is not None and "data" in entries and any(microbatches % n for n in copies)
    ):
        number = next(number for number in copies if microbatches % number)
        message = f"{microbatches} microbatches cannot be shared evenly by {number} copies"
        checker.error(entries["data"].value, message, "as in data = divisors(microbatches)")
    return chunks


def _traffic(checker: Checker, entry: syntax.Entry | None) -> float:
    if entry is None:
        return 1.0
    out, kind = checker.number(entry.value)
    value = known_number(out)
    if kind.kind != "error" and (value is None or kind.dimension != NUMBER or not value >= 0.0):
        checker.error(entry.value, "a number known beforehand, 0 or more, is expected here")
    return 1.0 if value is None else float(value)


def _refuse_unknown(checker: Checker, word: syntax.Word, execution: Execution, graph: Graph) -> None:
    """Plans are known for one pipeline schedule so far, and for nodes that do both passes."""
    back = next((v for v in range(graph.nodes) if graph.backward[v]), None)
    if back is not None:
        message = f"plans are for nodes that do both passes, and '{graph.ids[back]}' is of the backward part"
        checker.error(word, message, "leave the backward part out, and give forward nodes the time of both")
    if (execution.order, execution.communication) != ("1f1b", "sequential"):
        message = f"plans with options or tensor parallelism are not known under schedule {execution.name}"
        checker.error(word, message, "schedule pipedream does")


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
                if graph.options is None:
                    return np.zeros(graph.nodes)
    if entry is not None and graph.options is not None and attribute != "parameters":
        message = "copies of operators with options exchange the 'parameters' of these"
        checker.error(entry.value, message, "weights = parameters; an option without any says parameters = 0")
        return None
    place = None if entry is None else checker.span(entry.value)
    weights, missing = weight_exchange.node_weights(graph, attribute, place)
    checker.found += missing
    return weights
