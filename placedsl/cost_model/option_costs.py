"""What the options of operators cost on a machine."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Booleans, Floats, alike, for_each
from placedsl.cost_model.host_links import link_to_host
from placedsl.cost_model.places import Places
from placedsl.diagnostics import Diagnostic
from placedsl.graph.graph import Graph
from placedsl.graph.options import NOTHING, OperatorOptions
from placedsl.machine.machine import Machine
from placedsl.problem.execution import OptionCosts


def build(
    graph: Graph,
    machine: Machine,
    time: Floats,
    weights: Floats | None,
    places: Places,
    names: frozenset[str] | None = None,
) -> tuple[OptionCosts | None, list[Diagnostic]]:
    """The options of the graph; where it has none, each node has one: as it stands, on one device.

    Options of other ``names`` (None: any) run nowhere.  ``time`` (n x D seconds) and ``weights`` (n bytes) are those of
    nodes without options.
    """
    options = graph.options
    per_byte = np.zeros(len(machine.devices))
    missing: list[Diagnostic] = []
    given = options if options is not None else _as_they_stand(graph, weights)
    needed = bool(given.parameters.any() or len(given.gathered.option) or len(given.scattered.option))
    if needed and not graph.time_in_seconds:
        hint = 'say what its times are, as in graph from "…" { time_unit = 1 ms }'
        return None, [Diagnostic("options have bytes, and the graph's times no unit", places.graph, hint)]
    for i, device in enumerate(machine.devices):
        if device.kind != "accelerator" or not needed:
            continue
        link, _ = link_to_host(machine, device)
        if link is None:
            hint = "as in interconnect { bandwidth = 16 GB/s }"
            message = f"nothing says how fast '{device.family}' sends what options move"
            missing.append(Diagnostic(message, places.declarations.get(device.family), hint))
        else:
            per_byte[i] = 1.0 / link.bandwidth
    barred = np.array([names is not None and name not in names for name in given.name], dtype=bool)
    if options is not None:
        on_devices = times_on_devices(given, machine, barred)
    else:
        on_devices = np.where(barred[:, None], np.inf, time) if barred.any() else time
    links, of_link = np.unique(per_byte, return_inverse=True)
    return (
        OptionCosts(
            given.node, given.name, given.degree, on_devices,
            for_each(given.parameters[:, None] * links, of_link), given.stash,
            given.memory, given.sharded, given.gathered, given.scattered, per_byte,
        ),
        missing[:1],
    )  # fmt: skip


def needless(costs: OptionCosts) -> list[str]:
    """Names of options that are never better than another one of their node and degree, wherever there are two."""
    if not (alike(costs.time) and alike(costs.weights)):
        return []  # what is needless on one device may be needed on another
    order = np.lexsort((costs.degree, costs.node))
    key = np.stack((costs.node, costs.degree))[:, order]
    one = (costs.time[:, 0], costs.weights[:, 0], costs.stash, costs.memory, costs.sharded)
    columns = np.column_stack(one)[order]
    beaten, at = np.zeros(len(order), dtype=bool), np.arange(len(order))
    apart = 1
    while len(at):
        at = at[at + apart < len(order)]
        at = at[(key[:, at] == key[:, at + apart]).all(axis=0)]
        below = (columns[at] <= columns[at + apart]).all(axis=1)
        above = (columns[at] >= columns[at + apart]).all(axis=1)
        beaten[at[above & ~below]] = True
        beaten[at[below & ~above] + apart] = True
        apart += 1
    hopeless = dict.fromkeys(costs.labels, True)
    for option, lost in zip(order.tolist(), beaten.tolist(), strict=True):
        hopeless[costs.name[option]] &= lost
    return [name for name, never in hopeless.items() if never and name]


def _as_they_stand(graph: Graph, weights: Floats | None) -> OperatorOptions:
    count = graph.nodes
    none = np.zeros(count)
    return OperatorOptions(
        np.arange(count), ("",) * count, np.ones(count, dtype=np.int64), {}, none if weights is None else weights, none,
        graph.memory, none, NOTHING, NOTHING,
    )  # fmt: skip


def plain_times(graph: Graph, machine: Machine, time: Floats) -> Floats:
    """n x D times of nodes as they stand; where a graph file gives a node options alone, the least of these."""
    out = time.copy()
    if graph.options is not None:
        plain = [k for k, name in enumerate(graph.options.name) if not name and graph.options.degree[k] == 1]
        out[graph.options.node[plain]] = times_on_devices(graph.options, machine)[plain]
    return out


def times_on_devices(options: OperatorOptions, machine: Machine, barred: Booleans | None = None) -> Floats:
    """o x D times; inf: not supported.  ``barred``: options that run nowhere."""
    known: dict[tuple[str, ...], int] = {}
    of_device = np.array([
        known.setdefault(tuple(name for name in reversed(machine.aliases(i)) if name in options.time), len(known))
        for i in range(len(machine.devices))
    ])  # fmt: skip
    columns = np.column_stack([_given(options, names) for names in known])
    if barred is not None:
        columns[barred] = np.inf
    return for_each(columns, of_device)


def _given(options: OperatorOptions, names: tuple[str, ...]) -> Floats:
    """Times by the names of a device, the narrowest last; inf: not supported."""
    out = np.full(len(options.node), np.inf)
    for name in names:
        out = np.where(np.isfinite(options.time[name]), options.time[name], out)
    return out
