"""``streams`` and ``reserve`` of devices: what does not fit is streamed for each sample.

``docs/language/devices.md`` has the meaning.  What this is not known together with is refused here, each with its
place in the spec.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from placedsl import limits
from placedsl.diagnostics import nearest
from placedsl.graph.graph import Graph
from placedsl.language.checking.checker import Checker
from placedsl.language.elaboration.goals import Named
from placedsl.language.syntax import statements as syntax
from placedsl.machine.machine import Machine
from placedsl.problem.execution import Execution
from placedsl.problem.streaming import PEAK, RESERVE, STREAMS, streaming_of
from placedsl.records import dataclass


@dataclass(frozen=True)
class StreamingEntries:
    """Where a family of devices says that it streams; ``peak``: ``reserve = peak``, if that is there."""

    streams: syntax.Entry
    peak: syntax.Entry | None


def reserve_in_words(checker: Checker, block: syntax.Block) -> tuple[syntax.Entry | None, syntax.Block]:
    """``reserve = peak``, if a block has that, and the other entries; a word that is none is reported, and left out."""
    peak, others = None, []
    for entry in block:
        value = entry.value
        if entry.name.text != RESERVE or not isinstance(value, syntax.Name) or value.name in checker.parameters:
            others.append(entry)
        elif value.name != PEAK:
            hint = nearest(value.name, (PEAK, *checker.parameters))
            checker.error(value, f"'{RESERVE}' is data, as in 16 MiB, or {PEAK}", hint)
        elif peak is not None:
            checker.error(entry.name, f"'{RESERVE}' is given twice")
        else:
            peak = entry
    return peak, tuple(others)


def entries_of_family(
    checker: Checker, given: Mapping[str, tuple[float, syntax.Entry]], peak: syntax.Entry | None, block: syntax.Block
) -> StreamingEntries | None:
    """The entries of a family that streams; what is wrong with them, or missing beside them, is reported."""
    reserve = peak or (given[RESERVE][1] if RESERVE in given else None)
    if peak is not None and RESERVE in given:
        checker.error(peak.name, f"'{RESERVE}' is given twice")
    if STREAMS not in given:
        if reserve is not None and not any(entry.name.text == STREAMS for entry in block):
            hint = "add streams = 25 GB/s; where everything has to fit, take it off the device's memory"
            checker.error(reserve.name, f"'{RESERVE}' belongs to '{STREAMS}', which this device does not have", hint)
        return None
    rate, entry = given[STREAMS]
    if not rate:
        checker.error(entry.value, "a rate of zero streams nothing", "leave it out; with 'memory', everything fits")
    elif not any(other.name.text == "memory" for other in block):
        hint = "as in { memory = 16 GiB, streams = 25 GB/s }"
        checker.error(entry.name, "what is streamed is what does not fit, and this device has no 'memory'", hint)
    return StreamingEntries(entry, peak)


def refuse(
    checker: Checker,
    entries: Mapping[str, StreamingEntries],
    families: Collection[str],
    rules: Sequence[Named],
    execution: Execution,
    sharing: Sequence[syntax.Parallelism],
) -> None:
    """Report what streaming is not known together with; ``entries``: by family, of all ``families`` of devices."""
    for entry in (one.streams for one in entries.values()):
        if execution.one_sample:
            hint = "schedule pipedream knows it: what counts there is the time per sample"
            message = f"schedule {execution.name} does not know '{STREAMS}': it runs one sample"
            checker.error(entry.name, message, hint)
        elif execution.order != "1f1b" or execution.communication != "sequential":
            hint = "schedule pipedream knows it: a device streams, computes and moves tensors one after another"
            checker.error(entry.name, f"schedule {execution.name} does not know '{STREAMS}' yet", hint)
        if sharing:
            checker.error(entry.name, f"'parallelism' does not know '{STREAMS}' yet", "leave one of the two out")
    asked = [rule for rule, definition in rules if definition is not None and rule.name.text == "memory"]
    if entries and asked:
        message = f"'memory' asks that everything fits, and '{next(iter(entries))}' streams what does not"
        hint = "either it must fit or it is streamed: leave out 'memory', or 'streams'"
        others = [family for family in families if family not in entries]
        if others:
            hint += f"; of other devices: fits: forall d in {others[0]}: memory(d) <= d.memory"
        checker.error(asked[0].name, message, hint)


def refuse_costs(checker: Checker, entries: Mapping[str, StreamingEntries], machine: Machine, graph: Graph) -> None:
    """Report times without a unit, peaks of tensors without sizes, and times that cannot be added up."""
    streaming = streaming_of(machine)
    for name, one in entries.items():
        members = [i for i, device in enumerate(machine.devices) if device.family == name]
        entry = one.streams
        if not graph.time_in_seconds:
            hint = 'say what they are in: graph from "model.json" { time_unit = 1 ms }'
            checker.error(entry.name, f"'{STREAMS}' gives seconds, and the times of this graph have no unit", hint)
        if one.peak is not None and not np.isfinite(graph.tensor_bytes).all():
            hint = "a number, as in reserve = 16 MiB; or the tensors' output = ... in place of their times"
            checker.error(one.peak.value, "the peak adds up tensors, and this graph does not give their sizes", hint)
        if members and streaming.any:
            whole = float(graph.memory.sum()) + float(np.maximum(-streaming.room[members], 0.0).max())
            if whole * float(streaming.per_byte[members].max()) > limits.limit("cost"):
                message = f"all that is streamed may take longer than {limits.limit('cost'):g} s"
                checker.error(entry.value, message, "check the rate, and the memory of the nodes")
