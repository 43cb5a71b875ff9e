"""Running times where none is given: the roofline of operations and bytes, under what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placedsl.diagnostics import Diagnostic
from placedsl.graph.graph import Floats, Graph
from placedsl.language import syntax
from placedsl.language.assemble import keys, times
from placedsl.machine.machine import Device, Machine


@dataclass(frozen=True, eq=False)
class Timing:
    """Times of n nodes on D devices (inf: not supported), which are given, and what stands in the way.

    ``measured``  n x D: by the graph or a profile, and not estimated
    """

    time: Floats
    measured: NDArray[np.bool_]
    missing: tuple[Diagnostic, ...]
    notes: tuple[str, ...]


def timing(graph: Graph, machine: Machine, declared: Mapping[str, syntax.At], graph_at: syntax.At) -> Timing:
    """All times.  ``declared``: where each family of devices stands.

    A profile's time goes before the graph's own; a node for which the graph has no time at all takes, on every device,
    the longer of operations / ``compute`` and bytes / ``memory_bandwidth``, and the device's ``launch_overhead``.
    A fused operator takes as long as its members one after the other; a chain that runs as one kernel and of which
    nothing is measured, what its operations and the bytes that it still reads and writes take.
    """
    written = graph.written
    open_nodes = written.unmeasured
    if open_nodes.any() and not graph.time_in_seconds:
        hint = 'say what its times are, as in graph from "…" { time_unit = 1 ms }'
        message = "some nodes of this graph have times without a unit, and others are estimated in seconds"
        return Timing(*_nothing(graph, machine), (Diagnostic(message, graph_at.span, hint),), ())
    columns = [on_device(written, machine, i) for i in range(len(machine.devices))]
    missing = [
        _rates(device, lacking, declared, graph_at)
        for device, (_, known) in zip(machine.devices, columns, strict=True)
        if (lacking := _lacking(written, device, open_nodes & ~known))
    ]
    time, measured = _stacked(columns)
    told = _told(written, machine, time, measured) if open_nodes.any() and not missing else ()
    if graph.fusion is not None:
        time, measured = _stacked([on_device(graph, machine, i) for i in range(len(machine.devices))])
    return Timing(time, measured, tuple(dict.fromkeys(missing)), told)


_Column = tuple[Floats, NDArray[np.bool_]]


def _stacked(columns: Sequence[_Column]) -> _Column:
    """n x D, twice."""
    return np.column_stack([time for time, _ in columns]), np.column_stack([known for _, known in columns])


def on_device(graph: Graph, machine: Machine, device: int) -> _Column:
    """Times on one device, measured, given or estimated, and which of them are not estimated."""
    if graph.fusion is not None:
        step, size = graph.fusion.step, np.bincount(graph.fusion.step, minlength=graph.nodes)
        parts, certain = on_device(graph.fusion.before, machine, device)
        whole = np.bincount(step, weights=parts, minlength=graph.nodes)
        sure = np.bincount(step, weights=certain, minlength=graph.nodes)
        estimated = np.isfinite(whole) & (sure == 0) & (size > 1) & graph.fusion.one_kernel
        return np.where(estimated, roofline(graph, machine.devices[device]), whole), sure == size
    found = _profiled(graph, machine, device)
    settled = ~np.isnan(found)
    own = np.where(settled, found, times(graph, machine, device))
    estimated = graph.unmeasured & ~settled
    own = np.where(estimated, roofline(graph, machine.devices[device]), own)
    return own, np.isfinite(own) & ~estimated


def roofline(graph: Graph, device: Device) -> Floats:
    """Seconds of each node on a device whose rates are known: n times."""
    flops, moved = _work(graph, "flops"), _work(graph, "bytes")
    # A rate that is not there is not needed: nothing is to be divided by it.
    computing = flops / (device.attributes.get("compute") or np.inf)
    moving = moved / (device.attributes.get("memory_bandwidth") or np.inf)
    started = (flops > 0) | (moved > 0)
    overhead = np.where(started, device.attributes.get("launch_overhead", 0.0), 0.0)
    return np.asarray(np.maximum(computing, moving) + overhead)


def _work(graph: Graph, attribute: str) -> Floats:
    """A column of operations or bytes; 0 where the graph gives none."""
    column = graph.attributes.get(attribute)
    if column is None or column.dtype.kind != "f":
        return np.zeros(graph.nodes)
    return np.asarray(np.nan_to_num(column.astype(float), nan=0.0))


def _profiled(graph: Graph, machine: Machine, device: int) -> Floats:
    """Times of the profile on one device; nan where it has none.  What is said of fewer devices goes first."""
    out = np.full(graph.nodes, np.nan)
    for key in keys(machine, device):
        if key in graph.measured:
            out = np.where(np.isnan(out), graph.measured[key], out)
    return np.asarray(out)


def _lacking(graph: Graph, device: Device, nodes: NDArray[np.bool_]) -> list[str]:
    """The rates that a device would need for these nodes."""
    needed = (("compute", "flops"), ("memory_bandwidth", "bytes"))
    return [rate for rate, work in needed if (_work(graph, work)[nodes] > 0).any() and not device.attributes.get(rate)]


def _rates(device: Device, lacking: list[str], declared: Mapping[str, syntax.At], graph_at: syntax.At) -> Diagnostic:
    example = {"compute": "100 TFLOP/s", "memory_bandwidth": "900 GB/s"}
    what = " and ".join(f"'{rate}'" for rate in lacking)
    message = f"'{device.family}' has no {what}: the graph gives work instead of times, which are estimated from rates"
    hint = "as in { " + ", ".join(f"{rate} = {example[rate]}" for rate in lacking) + " }; or measured times: profile"
    return Diagnostic(message, declared.get(device.family, graph_at).span, f'{hint} = "…" beside the graph\'s name')


def _nothing(graph: Graph, machine: Machine) -> tuple[Floats, NDArray[np.bool_]]:
    shape = (graph.nodes, len(machine.devices))
    return np.full(shape, np.inf), np.zeros(shape, dtype=bool)


def _told(graph: Graph, machine: Machine, time: Floats, measured: NDArray[np.bool_]) -> tuple[str, ...]:
    """How many times are estimated; devices of one family with the same times count once."""
    seen = {
        (device.family, time[:, i].tobytes(), measured[:, i].tobytes()): i for i, device in enumerate(machine.devices)
    }
    known = list(seen.values())
    total, given = int(np.isfinite(time[:, known]).sum()), int(measured[:, known].sum())
    if given == 0:
        return (f"all {total:,} times are estimated from operations and bytes",)
    word = "measured" if graph.measured else "given"
    return (f"{given:,} of {total:,} times are {word}, the rest are estimated from operations and bytes",)
