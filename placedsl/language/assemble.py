"""The arrays of a problem from its graph and machine: transfer times, labels, precedence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from placedsl.diagnostics import Diagnostic, Source
from placedsl.graph.contraction import backward_orientation
from placedsl.graph.graph import Floats, Graph, Integers
from placedsl.graph.order import renumbered, together
from placedsl.language import syntax
from placedsl.machine.machine import Device, Link, Machine
from placedsl.machine.moves import Moves, moves
from placedsl.units import BANDWIDTH, show

#: So many devices are named.
_MOST_NAMED = 12


def graph_in_seconds(graph: Graph, unit: float) -> Graph:
    """The same graph with its times in seconds; ``unit`` is the graph's own unit in seconds."""
    time = {k: v * unit for k, v in graph.time.items()}
    matrix = None if graph.tensor_matrix is None else graph.tensor_matrix * unit
    return replace(graph, time=time, tensor_time=graph.tensor_time * unit, time_in_seconds=True, tensor_matrix=matrix)


def labels_of(graph: Graph, attribute: str) -> Integers:
    """Group labels 0.. of the nodes by an attribute; a node without it is a group of its own.

    Fused operators whose members are of several groups make one group of these.
    """
    if graph.fusion is not None:
        parts = together(graph.written.nodes, [labels_of(graph.written, attribute), graph.fusion.node_of])
        labels = np.empty(graph.nodes, dtype=np.int64)
        labels[graph.fusion.node_of] = parts
        return renumbered(labels)
    n = graph.nodes
    if attribute in ("name", "id"):
        values: list[object] = list(graph.names if attribute == "name" else graph.ids)
    elif attribute == "backward":
        values = list(graph.backward)
    elif attribute == "memory":
        values = list(graph.memory)
    else:
        column = graph.attributes[attribute]
        if column.dtype.kind == "f":
            values = [None if np.isnan(x) else x for x in column]
        else:
            values = list(column)
    known: dict[object, int] = {}
    keys = [("own", i) if value is None else ("value", value) for i, value in enumerate(values)]
    return np.array([known.setdefault(k, len(known)) for k in keys], dtype=np.int64).reshape(n)


def oriented(graph: Graph, groups: list[Integers]) -> tuple[Integers, Integers, str]:
    """The node pairs along which a pipeline runs, and how the backward part runs through it."""
    before, after, orientation = backward_orientation(
        backward=graph.backward, edge_source=graph.edge_source, edge_target=graph.edge_target, groups=groups
    )
    return before, after, orientation if graph.backward.any() else ""


def keys(machine: Machine, device: int) -> tuple[str, ...]:
    """What a graph may call one device: its name, its place in its family, the family, its kind."""
    d = machine.devices[device]
    number = sum(one.family == d.family for one in machine.devices[: device + 1])
    return d.name, f"{d.family}[{number}]", d.family, d.kind


def times(graph: Graph, machine: Machine, device: int) -> Floats:
    """Running times on one device: given for it, its family, or its kind; else not supported."""
    d = machine.devices[device]
    for key in keys(machine, device):
        if key in graph.time:
            own = np.asarray(graph.time[key], dtype=float)
            for wider in (d.family, d.kind):
                if wider in graph.time and wider != key:
                    own = np.where(np.isinf(own), graph.time[wider], own)
            return own
    return np.full(graph.nodes, np.inf)


def transfers(graph: Graph, machine: Machine, source: Source) -> tuple[Floats, Floats, list[Diagnostic]]:
    """Time to move each tensor between RAM and each device (t x D), tensor sizes, and what is missing.

    A tensor of which the graph gives the time costs that on every accelerator; one of which it gives
    bytes costs latency + bytes / bandwidth of the link between the accelerator and a host (or the
    interconnect).  Hosts reach RAM for nothing.
    """
    t, devices = graph.tensors, machine.devices
    out = np.zeros((t, len(devices)))
    timed = np.isfinite(graph.tensor_time)
    sized = np.isfinite(graph.tensor_bytes)
    size = np.where(sized, graph.tensor_bytes, graph.tensor_time) if sized.all() else graph.tensor_time
    missing: list[Diagnostic] = []
    reported: set[str] = set()
    fastest = _fastest(machine)
    for i, device in enumerate(devices):
        if device.kind != "accelerator":
            continue
        link, problem = link_to_host(machine, device)
        slower = fastest / link.bandwidth if machine.clusters and link is not None else 1.0
        out[:, i] = np.where(timed, graph.tensor_time * slower, 0.0)
        if timed.all():
            continue
        if link is None:
            if device.family not in reported:
                reported.add(device.family)
                missing.append(problem or _no_link(device, source))
            continue
        seconds = link.latency + graph.tensor_bytes / link.bandwidth
        out[:, i] = np.where(timed, graph.tensor_time * slower, seconds)
    return out, size, missing


def leaving(
    graph: Graph, machine: Machine, declared: Sequence[syntax.DeviceFamily | syntax.Cluster]
) -> tuple[Floats, list[Diagnostic]]:
    """C x t: by how much longer a tensor takes over what is around a cluster than over its own interconnect.

    Transfer times that the graph gives are those of the fastest interconnect, and grow as bandwidths fall.
    """
    out = np.zeros((len(machine.clusters), graph.tensors))
    missing: list[Diagnostic] = []
    fastest = _fastest(machine)
    timed = np.isfinite(graph.tensor_time)
    size = np.where(timed, graph.tensor_time * fastest, graph.tensor_bytes)
    for i, cluster in enumerate(machine.clusters):
        if cluster.alone or cluster.interconnect is None:
            continue
        outer = machine.around(cluster.parent)
        if outer is None:
            spans = {s.name.text: s.name.at.span for s in declared}
            place = spans.get(cluster.family)
            hint = "as in interconnect { bandwidth = 25 GB/s } beside the clusters"
            message = f"nothing says how fast '{cluster.family}' exchanges data with others"
            missing.append(Diagnostic(message, place, hint))
            break
        own = cluster.interconnect
        longer = size / outer.bandwidth - size / own.bandwidth + np.where(timed, 0.0, outer.latency - own.latency)
        out[i] = np.maximum(longer, 0.0)
    return out, missing


def moves_of(graph: Graph, machine: Machine, transfer: Floats, size: Floats) -> Moves:
    """How long tensors take between devices (schedule ``dataflow``).

    Where the graph gives times of its own, those of a profile count as they stand, and those between RAM and a device
    once on the way out and once on the way in.
    """
    if graph.tensor_matrix is not None:
        return moves(machine, size, graph.tensor_matrix)
    timed = np.isfinite(graph.tensor_time)
    if not timed.any():
        return moves(machine, size)
    given = transfer[:, :, None] + transfer[:, None, :]
    given[:, range(len(machine.devices)), range(len(machine.devices))] = 0.0
    if timed.all():
        return moves(machine, size, given)
    linked = moves(machine, np.where(timed, 0.0, graph.tensor_bytes))
    bytes_take = linked.fixed + linked.size[:, None, None] * linked.per_size
    return replace(linked, size=size, given=np.where(timed[:, None, None], given, bytes_take))


def unlike_profile(
    graph: Graph, machine: Machine, families: Mapping[str, syntax.DeviceFamily | syntax.Cluster]
) -> list[Diagnostic]:
    """Devices that are not those of the graph's matrices of transfer times, told where they are declared."""
    expected, devices = list(graph.deployment), machine.devices
    names = [d.name for d in devices]
    if graph.tensor_matrix is None or names == expected:
        return []
    first = next((k for k, pair in enumerate(zip(names, expected, strict=False)) if pair[0] != pair[1]), None)
    at = devices[min(len(devices) - 1, len(expected)) if first is None else first]
    wanted = f"{len(expected)} devices" if len(names) != len(expected) else f"device '{expected[first or 0]}' here"
    message = f"the graph's transfer times are between {wanted}; the spec has {len(names)}, with '{at.name}' here"
    hint = "in this order: " + ", ".join(expected[:_MOST_NAMED]) + (" …" if len(expected) > _MOST_NAMED else "")
    return [Diagnostic(message, families[at.family].name.at.span, hint)]


def unreachable(
    graph: Graph, machine: Machine, between: Moves, families: Mapping[str, syntax.DeviceFamily | syntax.Cluster]
) -> list[Diagnostic]:
    """Pairs of devices that no link leads between, told where the second is declared."""
    pairs = np.argwhere(np.isinf(between.fixed))
    if not graph.tensors or not len(pairs):
        return []
    devices = machine.devices
    out: dict[tuple[str, str], Diagnostic] = {}
    for a, b in pairs.tolist():
        key = (devices[a].family, devices[b].family)
        message = f"no link leads from '{devices[a].name}' to '{devices[b].name}'"
        hint = f"as in link {key[0]} <-> {key[1]} {{ bandwidth = 16 GB/s }}, or interconnect {{ bandwidth = 16 GB/s }}"
        if machine.clusters:
            hint = "as in interconnect { bandwidth = 16 GB/s } beside the clusters"
        out.setdefault(key, Diagnostic(message, families[key[1]].name.at.span, hint))
    return list(out.values())


def _fastest(machine: Machine) -> float:
    """The largest bandwidth of an interconnect."""
    links = [machine.interconnect, *(cluster.interconnect for cluster in machine.clusters)]
    return max((link.bandwidth for link in links if link is not None), default=0.0)


def link_to_host(machine: Machine, device: Device) -> tuple[Link | None, Diagnostic | None]:
    """The link over which an accelerator reaches RAM, or why there is none to be had."""
    names = (device.name, device.family)
    hosts = {d.family for d in machine.devices if d.kind == "host"} | {
        d.name for d in machine.devices if d.kind == "host"
    }
    accelerators = {d.family for d in machine.devices if d.kind == "accelerator"} | {
        d.name for d in machine.devices if d.kind == "accelerator"
    }
    found = []
    for link in machine.links:
        for a, b in ((link.source, link.target), (link.target, link.source)):
            if a in names and (b in hosts or b not in accelerators):
                found.append(link)
                break
    own = [link for link in found if device.name in (link.source, link.target)] or found
    if not own:
        return machine.around(machine.innermost(machine.position(device.name))), None
    if not any(link.both for link in own) and len({link.source for link in own}) == 1:
        hint = f"'{device.family}' reads and writes over it: write <->, or give the link the other way as well"
        return None, Diagnostic("this link goes one way only", own[-1].span, hint)
    if len({(link.bandwidth, link.latency) for link in own}) > 1:
        text = " and ".join(show(link.bandwidth, BANDWIDTH) for link in own[:2])
        hint = f"'{device.family}' has links of {text}; reading and writing take one bandwidth here"
        return None, Diagnostic("the links between this device and its hosts differ", own[-1].span, hint)
    return own[0], None


def _no_link(device: Device, source: Source) -> Diagnostic:
    at = source.text.find(f"device {device.family}")
    hint = f"as in link {device.family} <-> cpu {{ bandwidth = 16 GB/s }}, or interconnect {{ bandwidth = 16 GB/s }}"
    return Diagnostic(
        f"nothing says how fast '{device.family}' exchanges data with a host, and the graph gives bytes",
        source.span(max(0, at), max(0, at) + len(f"device {device.family}")),
        hint,
    )
