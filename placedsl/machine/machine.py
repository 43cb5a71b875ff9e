"""The machine: devices, and the links between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Literal

from placedsl.diagnostics import Span
from placedsl.records import dataclass

Kind = Literal["accelerator", "host"]


@dataclass(frozen=True)
class Device:
    """One device.

    ``name`` is what answers say (``gpu[2]``, or ``cpu`` for a family of one declared without
    a count), ``family`` the declared name, ``memory`` bytes (inf: unlimited), ``attributes``
    further numbers in SI units (``price`` in USD/s, ``compute`` in FLOP/s, those of the spec's own …), ``texts`` the
    spec's own attributes that are texts.  ``reserves_peak``: where it streams what does not fit, it sets aside the peak
    of activations.
    """

    name: str
    family: str
    kind: Kind
    memory: float
    attributes: Mapping[str, float] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    reserves_peak: bool = False


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
        return *self._spellings[device], own.family, own.kind

    @cached_property
    def positions(self) -> dict[str, int]:
        """The device that each name calls: where there is one of a kind, it may be written with ``[1]`` or without."""
        out = {name: i for i, names in enumerate(self._spellings) for name in reversed(names)}
        return out | {device.name: i for i, device in enumerate(self.devices)}

    @cached_property
    def _spellings(self) -> tuple[tuple[str, ...], ...]:
        """The names of each device: as declared, its place in its family, and those with and without ``[1]``."""
        around = [-1] * len(self.devices)
        for i, cluster in enumerate(self.clusters):  # outer ones come first
            for d in () if cluster.alone else cluster.devices:
                around[d] = i
        of_device = Counter((d.family, around[i]) for i, d in enumerate(self.devices))
        of_family = Counter(d.family for d in self.devices)
        of_cluster = Counter((c.family, c.parent) for c in self.clusters if not c.alone)
        outer: list[tuple[str, ...]] = []
        for one in self.clusters:
            parent = outer[one.parent] if one.parent >= 0 else ()
            outer.append(_spelt(one.name, one.family, parent, of_cluster[one.family, one.parent]))
        seen: Counter[str] = Counter()
        out = []
        for i, device in enumerate(self.devices):
            seen[device.family] += 1
            own = outer[around[i]] if around[i] >= 0 else ()
            names = [device.name, f"{device.family}[{seen[device.family]}]"]
            names += _spelt(device.name, device.family, own, of_device[device.family, around[i]])
            names += [device.family] if of_family[device.family] == 1 else []
            out.append(tuple(dict.fromkeys(names)))
        return tuple(out)

    def names_of_kind(self, kind: Kind) -> frozenset[str]:
        """The names of all devices of a kind, and of their families."""
        return self._names_by_kind[kind]

    @cached_property
    def _names_by_kind(self) -> dict[Kind, frozenset[str]]:
        kinds: tuple[Kind, ...] = ("accelerator", "host")
        return {
            kind: frozenset(name for d in self.devices if d.kind == kind for name in (d.name, d.family))
            for kind in kinds
        }

    @cached_property
    def single_clusters(self) -> dict[str, int]:
        """The position of the one cluster of each family of which there is one."""
        counts = Counter(cluster.family for cluster in self.clusters if not cluster.alone)
        return {cluster.family: i for i, cluster in enumerate(self.clusters) if counts[cluster.family] == 1}

    def is_counted(self, cluster: int) -> bool:
        """Whether a cluster, or one around it, is declared with a number of clusters, as in ``cluster pod[2]``."""
        parent = self.clusters[cluster].parent
        own = f"{self.clusters[parent].name}." if parent >= 0 else ""
        return self.clusters[cluster].name != own + self.clusters[cluster].family or (
            parent >= 0 and self.is_counted(parent)
        )

    def innermost(self, device: int) -> int:
        """The position of the innermost cluster of a device (-1: none)."""
        inside = [(c.level, i) for i, c in enumerate(self.clusters) if not c.alone and device in c.devices]
        return max(inside)[1] if inside else -1

    def memberships(self) -> list[tuple[int, int]]:
        """Pairs of a device and a cluster that it is in."""
        return [(d, i) for i, c in enumerate(self.clusters) if not c.alone for d in c.devices]

    def position(self, name: str) -> int:
        """The index of the device with this name; KeyError when there is none."""
        return self.positions[name]


def _spelt(name: str, family: str, outer: tuple[str, ...], siblings: int) -> tuple[str, ...]:
    """The names of a device or cluster within what is called ``outer``, where there are ``siblings`` of its family."""
    own = name[len(outer[0]) + 1 :] if outer else name
    words = (own, f"{family}[1]" if own == family else family) if siblings == 1 else (own,)
    return tuple(f"{around}.{word}" for around in outer for word in words) if outer else words
