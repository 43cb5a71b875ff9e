"""What a tensor takes between a device and RAM, over the link of an accelerator to its hosts."""

from __future__ import annotations

import numpy as np

from placedsl.arrays import Floats, for_each_key
from placedsl.cost_model.places import Places
from placedsl.diagnostics import Diagnostic
from placedsl.graph.graph import Graph
from placedsl.machine.machine import Device, Link, Machine
from placedsl.units import BANDWIDTH, show


def seconds(graph: Graph, machine: Machine, places: Places) -> tuple[Floats, list[Diagnostic]]:
    """t x D times between RAM and each device (nan: no link says), and what is missing.

    A tensor of which the graph gives the time costs that on every accelerator; one of which it gives bytes costs
    latency + bytes / bandwidth of the link between the accelerator and a host (or the interconnect).  Hosts share RAM:
    0.  Over clusters the graph's times are those of the fastest interconnect, and grow as bandwidths fall.
    """
    timed = np.isfinite(graph.tensor_time)
    missing: dict[str, Diagnostic] = {}
    links: list[Link | None] = []
    for device in machine.devices:
        link, problem = link_to_host(machine, device) if device.kind == "accelerator" else (None, None)
        links.append(link)
        if device.kind == "accelerator" and link is None and not timed.all():
            missing.setdefault(device.family, problem or _no_link(device, places))

    def over(reached: tuple[str, Link | None]) -> Floats:
        kind, link = reached
        if kind != "accelerator":
            return np.zeros(graph.tensors)
        slower = machine.fastest_interconnect / link.bandwidth if machine.clusters and link is not None else 1.0
        by_bytes = np.nan if link is None else link.latency + graph.tensor_bytes / link.bandwidth
        return np.where(timed, graph.tensor_time * slower, by_bytes)

    keys = [(device.kind, link) for device, link in zip(machine.devices, links, strict=True)]
    return for_each_key(keys, over), list(missing.values())


def link_to_host(machine: Machine, device: Device) -> tuple[Link | None, Diagnostic | None]:
    """The link over which an accelerator reaches RAM; None, and why, where declared links do not say one."""
    names = (device.name, device.family)
    hosts, accelerators = (machine.names_of_kind(kind) for kind in ("host", "accelerator"))
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


def _no_link(device: Device, places: Places) -> Diagnostic:
    hint = f"as in link {device.family} <-> cpu {{ bandwidth = 16 GB/s }}, or interconnect {{ bandwidth = 16 GB/s }}"
    message = f"nothing says how fast '{device.family}' exchanges data with a host, and the graph gives bytes"
    return Diagnostic(message, places.declarations.get(device.family), hint)
