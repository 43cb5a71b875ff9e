"""Running times of operators on devices: measured, given by the graph, or estimated, in this order of precedence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placedsl.arrays import Booleans, Floats
from placedsl.cost_model.estimators import ESTIMATORS, Estimator
from placedsl.cost_model.places import Places
from placedsl.diagnostics import Diagnostic
from placedsl.graph.graph import Graph
from placedsl.machine.machine import Device, Machine
from placedsl.records import dataclass

_EXAMPLES = {"compute": "100 TFLOP/s", "memory_bandwidth": "900 GB/s"}


@dataclass(frozen=True, eq=False)
class RunningTimes:
    """Times of n nodes on D devices.

    ``time``      n x D seconds, or in the graph's own unit (inf: not supported; nan: see ``diagnostics``)
    ``measured``  n x D: given by the graph or a profile, not estimated
    """

    time: Floats
    measured: Booleans
    diagnostics: tuple[Diagnostic, ...]
    notes: tuple[str, ...]


def running_times(
    graph: Graph, machine: Machine, places: Places, estimators: Sequence[Estimator] = ESTIMATORS
) -> RunningTimes:
    """All times.

    A profile's time goes before the graph's own; nodes for which the graph has no time at all are estimated.  A fused
    operator takes as long as its members one after the other; a chain that runs as one kernel and of which nothing is
    measured is estimated as a whole, by the operations and bytes that it still has.
    """
    written = graph.written
    unknown = written.unmeasured
    if unknown.any() and not graph.time_in_seconds:
        hint = 'say what its times are, as in graph from "…" { time_unit = 1 ms }'
        message = "some nodes of this graph have times without a unit, and others are estimated in seconds"
        shape = (graph.nodes, len(machine.devices))
        stop = (Diagnostic(message, places.graph, hint),)
        return RunningTimes(np.full(shape, np.inf), np.zeros(shape, dtype=bool), stop, ())
    columns = [_on_device(written, machine, i, estimators) for i in range(len(machine.devices))]
    missing = [
        _unknown(written, device, np.isnan(time), estimators[-1], places)
        for device, (time, _) in zip(machine.devices, columns, strict=True)
        if np.isnan(time).any()
    ]
    time, measured = _stacked(columns)
    notes: tuple[str, ...] = ()
    if unknown.any() and not missing:
        notes = _counts(written, machine, time, measured, " or ".join(one.basis for one in estimators))
    if graph.fusion is not None:
        time, measured = _stacked([_on_device(graph, machine, i, estimators) for i in range(len(machine.devices))])
    return RunningTimes(time, measured, tuple(dict.fromkeys(missing)), notes)


_Column = tuple[Floats, Booleans]


def _stacked(columns: Sequence[_Column]) -> _Column:
    """n x D, twice."""
    return np.column_stack([time for time, _ in columns]), np.column_stack([known for _, known in columns])


def _on_device(graph: Graph, machine: Machine, device: int, estimators: Sequence[Estimator]) -> _Column:
    """Times on one device, and which of them are not estimated."""
    if graph.fusion is not None:
        step, size = graph.fusion.step, np.bincount(graph.fusion.step, minlength=graph.nodes)
        parts, certain = _on_device(graph.fusion.before, machine, device, estimators)
        whole = np.bincount(step, weights=parts, minlength=graph.nodes)
        sure = np.bincount(step, weights=certain, minlength=graph.nodes)
        estimated = np.isfinite(whole) & (sure == 0) & (size > 1) & graph.fusion.one_kernel
        return np.where(
            estimated, _estimated(graph, machine.devices[device], estimated, estimators), whole
        ), sure == size
    profile = _profiled(graph, machine, device)
    measured = ~np.isnan(profile)
    time = np.where(measured, profile, _given(graph, machine, device))
    estimated = graph.unmeasured & ~measured
    time = np.where(estimated, _estimated(graph, machine.devices[device], estimated, estimators), time)
    return time, np.isfinite(time) & ~estimated


def _estimated(graph: Graph, device: Device, nodes: Booleans, estimators: Sequence[Estimator]) -> Floats:
    """n seconds by the first estimator that has one; nan elsewhere."""
    out = np.full(graph.nodes, np.nan)
    for estimator in estimators:
        left = nodes & np.isnan(out)
        if left.any() and not estimator.missing(graph, device, left):
            out = np.where(left, estimator.seconds(graph, device), out)
    return out


def _given(graph: Graph, machine: Machine, device: int) -> Floats:
    """The graph's own times on one device: for it, its family, or its kind; inf: not supported."""
    d = machine.devices[device]
    for name in machine.aliases(device):
        if name in graph.time:
            own = np.asarray(graph.time[name], dtype=float)
            for wider in (d.family, d.kind):
                if wider in graph.time and wider != name:
                    own = np.where(np.isinf(own), graph.time[wider], own)
            return own
    return np.full(graph.nodes, np.inf)


def _profiled(graph: Graph, machine: Machine, device: int) -> Floats:
    """Times of the profile on one device; nan where it has none.  The narrowest name of the device goes first."""
    out = np.full(graph.nodes, np.nan)
    for name in machine.aliases(device):
        if name in graph.measured:
            out = np.where(np.isnan(out), graph.measured[name], out)
    return np.asarray(out)


def _unknown(graph: Graph, device: Device, nodes: Booleans, last: Estimator, places: Places) -> Diagnostic:
    """Why times of some nodes on a device cannot be estimated."""
    attributes, place = last.missing(graph, device, nodes), places.families.get(device.family, places.graph)
    if not attributes:
        name = graph.names[int(np.argmax(nodes))]
        message = f"nothing says how long node '{name}' takes on '{device.family}', nor can it be estimated"
        return Diagnostic(message, place, 'as in profile = "…" beside the graph\'s name')
    what = " and ".join(f"'{rate}'" for rate in attributes)
    message = f"'{device.family}' has no {what}: the graph gives work instead of times, which are estimated from rates"
    values = ", ".join(f"{rate} = {_EXAMPLES.get(rate, '1')}" for rate in attributes)
    hint = f'as in {{ {values} }}; or measured times: profile = "…" beside the graph\'s name'
    return Diagnostic(message, place, hint)


def _counts(graph: Graph, machine: Machine, time: Floats, measured: Booleans, basis: str) -> tuple[str, ...]:
    """How many times are estimated; devices of one family with the same times count once."""
    distinct = {
        (device.family, time[:, i].tobytes(), measured[:, i].tobytes()): i for i, device in enumerate(machine.devices)
    }
    known = list(distinct.values())
    total, given = int(np.isfinite(time[:, known]).sum()), int(measured[:, known].sum())
    if given == 0:
        return (f"all {total:,} times are estimated from {basis}",)
    word = "measured" if graph.measured else "given"
    if given == total:
        return (f"all {total:,} times are {word}",)
    return (f"{given:,} of {total:,} times are {word}, the rest are estimated from {basis}",)
