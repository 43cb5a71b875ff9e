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
class Machine:
    """All devices in order of declaration, their links, and the interconnect for all other pairs."""

    devices: tuple[Device, ...]
    links: tuple[Link, ...] = ()
    interconnect: Link | None = None

    def position(self, name: str) -> int:
        """The index of the device with this name; KeyError when there is none."""
        for i, device in enumerate(self.devices):
            if device.name == name:
                return i
        raise KeyError(name)
