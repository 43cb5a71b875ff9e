"""What tensors take between a device and RAM, and between devices.

A further transfer cost is a function in a module of its own and a row of :data:`TERMS`; docs/adding-a-cost-model.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from placedsl.arrays import Floats
from placedsl.cost_model import host_links
from placedsl.cost_model.places import Places
from placedsl.diagnostics import Diagnostic
from placedsl.graph.graph import Graph
from placedsl.machine.machine import Machine
from placedsl.machine.routes import TransferTimes, transfer_times

#: t x D seconds that a tensor takes between RAM and each device (nan: unknown), and what is missing.
Term = Callable[[Graph, Machine, Places], tuple[Floats, list[Diagnostic]]]
#: Costs that add up.  The first is that of the links themselves.
TERMS: tuple[Term, ...] = (host_links.seconds,)
#: So many devices are named.
_MOST_NAMED = 12


def sizes(graph: Graph) -> Floats:
    """t sizes: bytes where the graph gives them for all tensors, else its transfer times."""
    return graph.tensor_bytes if np.isfinite(graph.tensor_bytes).all() else graph.tensor_time


def with_memory(
    graph: Graph, machine: Machine, places: Places, terms: Sequence[Term] = TERMS
) -> tuple[Floats, Floats, list[Diagnostic]]:
    """t x D times between RAM and each device: by the links alone, and all; and what is missing."""
    by_links, missing = terms[0](graph, machine, places)
    total = by_links
    for term in terms[1:]:
        further, more = term(graph, machine, places)
        total, missing = total + further, [*missing, *more]
    return by_links, total, missing


def between_devices(graph: Graph, machine: Machine, by_links: Floats, total: Floats) -> TransferTimes:
    """How long tensors take between devices (operator schedules).

    Times of a profile of device pairs count as they stand.  Times that the graph gives between RAM and a device count
    once on the way out and once on the way in, and so do transfer costs beside those of the links.
    """
    size = sizes(graph)
    if graph.tensor_matrix is not None:
        return transfer_times(machine, size, graph.tensor_matrix)
    timed = np.isfinite(graph.tensor_time)
    if not timed.any():
        routed = transfer_times(machine, size)
    elif timed.all():
        routed = transfer_times(machine, size, _there_and_back(by_links))
    else:
        linked = transfer_times(machine, np.where(timed, 0.0, graph.tensor_bytes))
        explicit = np.where(timed[:, None, None], _there_and_back(by_links), _all_pairs(linked))
        routed = replace(linked, size=size, explicit=explicit)
    if np.array_equal(by_links, total):
        return routed
    return replace(routed, explicit=_all_pairs(routed) + _there_and_back(total - by_links))


def _there_and_back(with_ram: Floats) -> Floats:
    """t x D x D: out of one device and into another; 0 within a device."""
    out = with_ram[:, :, None] + with_ram[:, None, :]
    each = range(with_ram.shape[1])
    out[:, each, each] = 0.0
    return out


def _all_pairs(times: TransferTimes) -> Floats:
    """t x D x D."""
    if len(times.explicit):
        return times.explicit
    every, devices = np.arange(len(times.size))[:, None, None], np.arange(times.devices)
    return times.time(every, devices[:, None], devices)


def unlike_profile(graph: Graph, machine: Machine, places: Places) -> list[Diagnostic]:
    """Devices that are not those of the graph's matrices of transfer times, reported where they are declared."""
    expected, devices = list(graph.deployment), machine.devices
    names = [d.name for d in devices]
    if graph.tensor_matrix is None or names == expected:
        return []
    first = next((k for k, pair in enumerate(zip(names, expected, strict=False)) if pair[0] != pair[1]), None)
    at = devices[min(len(devices) - 1, len(expected)) if first is None else first]
    wanted = f"{len(expected)} devices" if len(names) != len(expected) else f"device '{expected[first or 0]}' here"
    message = f"the graph's transfer times are between {wanted}; the spec has {len(names)}, with '{at.name}' here"
    hint = "in this order: " + ", ".join(expected[:_MOST_NAMED]) + (" …" if len(expected) > _MOST_NAMED else "")
    return [Diagnostic(message, places.families.get(at.family), hint)]


def unreachable(graph: Graph, machine: Machine, times: TransferTimes, places: Places) -> list[Diagnostic]:
    """Pairs of devices that no link leads between, reported where the second is declared."""
    pairs = np.argwhere(np.isinf(times.latency))
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
        out.setdefault(key, Diagnostic(message, places.families.get(key[1]), hint))
    return list(out.values())
