"""``streams`` and ``reserve`` of devices: what does not fit is streamed for each sample.

``docs/language/devices.md`` has the meaning.  What this is not known together with is refused here, each with its
place in the spec.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placedsl import limits
from placedsl.graph.graph import Graph
from placedsl.language.checking.checker import Checker
from placedsl.language.elaboration.goals import Named
from placedsl.language.syntax import statements as syntax
from placedsl.machine.machine import Machine
from placedsl.problem.execution import Execution
from placedsl.problem.streaming import RESERVE, STREAMS, streaming_of

#: The value of ``reserve`` that is no number.
PEAK = "peak"


def peak_entry(block: syntax.Block) -> syntax.Entry | None:
    """``reserve = peak``, if the block has that."""
    return next((e for e in block if e.name.text == RESERVE and _is_peak(e.value)), None)


def _is_peak(value: syntax.Expression) -> bool:
    return isinstance(value, syntax.Name) and value.name == PEAK


def entry_of_family(
    checker: Checker, given: Mapping[str, tuple[float, syntax.Entry]], peak: syntax.Entry | None
) -> syntax.Entry | None:
    """The entry ``streams`` of a family of devices; what is wrong with it, or missing beside it, is reported."""
    reserve = peak or (given[RESERVE][1] if RESERVE in given else None)
    if peak is not None and RESERVE in given:
        checker.error(peak.name, f"'{RESERVE}' is given twice")
    if STREAMS not in given:
        if reserve is not None:
            hint = "add streams = 25 GB/s; where everything has to fit, take it off the device's memory"
            checker.error(reserve.name, f"'{RESERVE}' belongs to '{STREAMS}', which this device does not have", hint)
        return None
    rate, entry = given[STREAMS]
    if not rate:
        checker.error(entry.value, "a rate of zero streams nothing", "leave it out; with 'memory', everything fits")
    elif "memory" not in given:
        hint = "as in { memory = 16 GiB  streams = 25 GB/s }"
        checker.error(entry.name, "what is streamed is what does not fit, and this device has no 'memory'", hint)
    return entry


def refuse(
    checker: Checker,
    entries: Mapping[str, syntax.Entry],
    rules: Sequence[Named],
    execution: Execution,
    sharing: Sequence[syntax.Parallelism],
) -> None:
    """Report what streaming is not known together with; ``entries``: by family of devices."""
    for name, entry in entries.items():
        if execution.one_sample:
            hint = "schedule pipedream does: the time per sample of a pipeline"
            message = f"schedule {execution.name} does not know '{STREAMS}': it runs one sample"
            checker.error(entry.name, message, hint)
        elif execution.order != "1f1b" or execution.communication != "sequential":
            hint = "schedule pipedream knows it"
            message = f"schedule {execution.name} does not know '{STREAMS}': when a device streams is open there"
            checker.error(entry.name, message, hint)
        if sharing:
            hint = "leave one of the two out"
            checker.error(entry.name, f"'parallelism' does not know '{STREAMS}': each stage is on one device", hint)
        for rule, definition in rules:
            if definition is not None and rule.name.text == "memory":
                message = f"'memory' asks that everything fits, and '{name}' streams what does not"
                hint = f"leave one out; for other devices: fits: forall d in {_others(entries)}: memory(d) <= d.memory"
                checker.error(rule.name, message, f"either it must fit or it is streamed: {hint}")
                break


def _others(entries: Mapping[str, syntax.Entry]) -> str:
    """How a family that does not stream might be called."""
    return "cpu" if "cpu" not in entries else "others"


def refuse_costs(checker: Checker, entries: Mapping[str, syntax.Entry], machine: Machine, graph: Graph) -> None:
    """Report times without a unit, peaks of tensors without sizes, and times that cannot be added up."""
    streaming = streaming_of(machine)
    for name, entry in entries.items():
        members = [i for i, device in enumerate(machine.devices) if device.family == name]
        if not graph.time_in_seconds:
            hint = 'say what they are in: graph from "model.json" { time_unit = 1 ms }'
            checker.error(entry.name, f"'{STREAMS}' gives seconds, and the times of this graph have no unit", hint)
        elif streaming.peaks[members].any() and not np.isfinite(graph.tensor_bytes).all():
            hint = "give reserve = 16 MiB, say, or the tensors' output = ... in place of their times"
            message = "'reserve = peak' adds up tensors, and this graph does not give their sizes"
            checker.error(entry.name, message, hint)
        elif members:
            whole = float(graph.memory.sum()) + float(np.maximum(-streaming.room[members], 0.0).max())
            if whole * float(streaming.per_byte[members].max()) > limits.limit("cost"):
                message = f"all that is streamed takes longer than {limits.limit('cost'):g} s"
                checker.error(entry.value, message, "check the rate, and the memory of the nodes")
