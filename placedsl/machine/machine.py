"""The machine: devices, and the links between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from placedsl.diagnostics import Span

Kind = Literal["accelerator", "host"]


@dataclass(frozen=True)
class Device:
    """One device.

    ``name`` is what answers say (``gpu[2]``, or ``cpu`` for a family of one declared without
    a count), ``family`` the declared name, ``memory`` bytes (inf: unlimited), ``attributes``
    further numbers in SI units (``price`` in USD/s, ``compute`` in FLOP/s …).
    """

    name: str
    family: str
    kind: Kind
    memory: float
    attributes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Link:
    """A link between two families or devices; bandwidth in B/s, latency in s.

    ``both`` is false for a directed link (source to target only).
    """

    source: str
    target: str
    both: bool
    bandwidth: float
    latency: float
    span: Span | None = None


@dataclass(frozen=True)
class Cluster:
    """Devices with an interconnect of their own (None: that of what is around them).

    ``name`` is ``pod[2]``, ``family`` the declared name; ``level`` 1 is outermost; ``devices`` are positions, those of
    clusters within included; ``parent`` the position of the cluster around it (-1: none).  A device that is in no
    cluster of a level is there a cluster of its own, ``alone``.
    """

    name: str
    family: str
    level: int
    devices: tuple[int, ...]
    interconnect: Link | None
    parent: int = -1
    alone: bool = False


@dataclass(frozen=True)
class Machine:
    """All devices in order of declaration, their links, clusters, and the interconnect for all other pairs."""

    devices: tuple[Device, ...]
    links: tuple[Link, ...] = ()
    interconnect: Link | None = None
    clusters: tuple[Cluster, ...] = ()

    @property
    def levels(self) -> int:
        """How deep clusters lie within one another."""
        return max((cluster.level for cluster in self.clusters), default=0)

    def around(self, cluster: int) -> Link | None:
        """The interconnect that a cluster's devices reach others by: its own, or that of the nearest around it (-1: of
        the whole machine)."""
        while cluster >= 0:
            if self.clusters[cluster].interconnect is not None:
                return self.clusters[cluster].interconnect
            cluster = self.clusters[cluster].parent
        return self.interconnect

    @property
    def fastest_interconnect(self) -> float:
        """The largest bandwidth of an interconnect in B/s (0: there is none)."""
        links = [self.interconnect, *(cluster.interconnect for cluster in self.clusters)]
        return max((link.bandwidth for link in links if link is not None), default=0.0)

    def aliases(self, device: int) -> tuple[str, ...]:
        """The names under which a graph or profile may give times of a device, the narrowest first: its name, its
        place in its family, the family, its kind."""
        own = self.devices[device]
        number = sum(one.family == own.family for one in self.devices[: device + 1])
        return own.name, f"{own.family}[{number}]", own.family, own.kind

    def innermost(self, device: int) -> int:
        """The position of the innermost cluster of a device (-1: none)."""
        inside = [(c.level, i) for i, c in enumerate(self.clusters) if not c.alone and device in c.devices]
        return max(inside)[1] if inside else -1

    def memberships(self) -> list[tuple[int, int]]:
        """Pairs of a device and a cluster that it is in."""
        return [(d, i) for i, c in enumerate(self.clusters) if not c.alone for d in c.devices]

    def position(self, name: str) -> int:
        """The index of the device with this name; KeyError when there is none."""
        for i, device in enumerate(self.devices):
            if device.name == name:
                return i
        raise KeyError(name)
