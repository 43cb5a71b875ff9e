"""Devices that share the samples of a stage exchange their weights: what a node's weights take over a device's link."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats, for_each_key
from placedsl.cost_model.host_links import link_to_host
from placedsl.cost_model.places import Places
from placedsl.diagnostics import Diagnostic, Span, nearest
from placedsl.graph.graph import Graph
from placedsl.machine.machine import Machine
from placedsl.machine.routes import TransferTimes, alike

#: The attribute that holds weights where the spec names none.
USUAL = "parameters"


def node_weights(graph: Graph, attribute: str | None, place: Span | None) -> tuple[Floats | None, list[Diagnostic]]:
    """n bytes: the weights of each node, by an attribute that is a number.

    None stands for :data:`USUAL`, and for no weights where nodes do not have it.  ``place``: where the attribute is
    named.
    """
    columns = {n: np.nan_to_num(v.astype(float)) for n, v in graph.attributes.items() if v.dtype.kind == "f"}
    known: dict[str, Floats] = {**columns, "memory": graph.memory}
    if attribute is None:
        return known.get(USUAL, np.zeros(graph.nodes)), []
    if attribute not in known:
        return None, [Diagnostic(f"nodes have no number '{attribute}'", place, nearest(attribute, known))]
    return known[attribute], []


def seconds(
    graph: Graph, machine: Machine, weights: Floats, places: Places, between: TransferTimes | None = None
) -> tuple[Floats, list[Diagnostic]]:
    """n x D: bytes / bandwidth of the device's link (nan: no link says); hosts share memory and need none.

    ``between``: tensors go from device to device, and so do weights: to those devices of the family that the device may
    change places with, which all lie equally far.
    """
    none = np.broadcast_to(0.0, (graph.nodes, len(machine.devices)))
    if not weights.any():
        return none, []
    if (weights < 0.0).any():
        node = graph.names[int(np.argmin(weights))]
        message = f"node '{node}' has weights of {weights.min():g} bytes"
        return none, [Diagnostic(message, places.weights, "they cannot be negative")]
    if not graph.time_in_seconds:
        hint = 'say what its times are, as in graph from "…" { time_unit = 1 ms }; or weights = 0'
        return none, [Diagnostic("weights have bytes, and the graph's times no unit", places.weights, hint)]
    if between is not None:
        return weights[:, None] * _inverse_bandwidths(machine, between), []
    bandwidths: list[float] = []
    missing: list[Diagnostic] = []
    for device in machine.devices:
        link = link_to_host(machine, device)[0] if device.kind == "accelerator" else None
        if device.kind == "accelerator" and link is None:
            hint = "as in interconnect { bandwidth = 16 GB/s }; or weights = 0"
            message = f"nothing says how fast '{device.family}' sends its weights"
            missing.append(Diagnostic(message, places.weights, hint))
        unsaid = np.nan if device.kind == "accelerator" else np.inf
        bandwidths.append(unsaid if link is None else link.bandwidth)
    return for_each_key(bandwidths, lambda bandwidth: weights / bandwidth), missing[:1]


def _inverse_bandwidths(machine: Machine, between: TransferTimes) -> Floats:
    """D seconds per byte to a device of the same family that is alike; 0 where there is none, and on hosts."""
    label, devices = alike(between), machine.devices
    out = np.zeros(len(devices))
    for d, device in enumerate(devices):
        fellows = [e for e in np.flatnonzero(label == label[d]) if e != d and devices[e].family == device.family]
        if fellows and device.kind == "accelerator":
            out[d] = between.inverse_bandwidth[d, fellows[0]]
    return out
