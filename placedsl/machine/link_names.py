"""Over which links a tensor goes from one device to another, by name."""

from __future__ import annotations

from placedsl.machine.machine import Link, Machine
from placedsl.machine.routes import TransferTimes


def through_memory(machine: Machine, source: int, target: int) -> tuple[str, ...]:
    """The links of a tensor that accelerators write to host memory and read from there, from source to target.

    Hosts need none.  Between clusters it also goes over the interconnects around those that it leaves and enters.
    """
    leaving, entering = _outward(machine, source, target), _outward(machine, target, source)
    return tuple(dict.fromkeys([*leaving, *reversed(entering)]))


def along_route(machine: Machine, between: TransferTimes, source: int, target: int) -> tuple[str, ...]:
    """The directed links of the route that a tensor takes between two devices."""
    names = [device.name for device in machine.devices]
    return tuple(f"{names[a]} -> {names[b]}" for a, b in between.hop_ends[between.hops(source, target)].tolist())


def _outward(machine: Machine, device: int, other: int) -> list[str]:
    """From an accelerator outwards: its own link, then what is around each cluster that the other is not in."""
    if machine.devices[device].kind != "accelerator":
        return []
    own = _link_to_host(machine, device)
    cluster = machine.innermost(device)
    names = [_name(own)] if own is not None else _around(machine, cluster)
    while cluster >= 0:
        if other not in machine.clusters[cluster].devices and machine.clusters[cluster].interconnect is not None:
            names += _around(machine, machine.clusters[cluster].parent)
        cluster = machine.clusters[cluster].parent
    return names


def _link_to_host(machine: Machine, device: int) -> Link | None:
    """The declared link between an accelerator and hosts (or one end that is no device); one of its own counts more."""
    names = (machine.devices[device].name, machine.devices[device].family)
    accelerators = machine.names_of_kind("accelerator")
    ends = [(link, pair) for link in machine.links for pair in ((link.source, link.target), (link.target, link.source))]
    found = [link for link, (near, far) in ends if near in names and far not in accelerators]
    own = [link for link in found if names[0] in (link.source, link.target)]
    return next(iter(own or found), None)


def _around(machine: Machine, cluster: int) -> list[str]:
    """The interconnect that devices of a cluster (-1: the whole machine) reach others by."""
    while cluster >= 0 and machine.clusters[cluster].interconnect is None:
        cluster = machine.clusters[cluster].parent
    if cluster >= 0:
        return [f"interconnect of {machine.clusters[cluster].name}"]
    return ["interconnect"] if machine.interconnect is not None else []


def _name(link: Link) -> str:
    return f"{link.source} {'<->' if link.both else '->'} {link.target}"
