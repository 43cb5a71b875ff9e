"""Loads and memory of the devices as bars, from an answer's document; devices that share a stage are one row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placedsl.report.html.amounts import amount, time_unit
from placedsl.report.html.memory_bar import Part, memory_parts, memory_text, memory_width
from placedsl.report.text.plan_table import ranges

#: The width of the longest bar, in the units of its picture.
BAR = 300.0
#: What each engine of a device does, by the communication model; loads are the longest, or the sum.
_ENGINES = {
    "sequential": (("compute", "receive", "send", "weights", "streamed"),),
    "overlapped": (("compute",), ("receive", "send"), ("weights",)),
    "full_duplex": (("compute",), ("receive",), ("send",), ("weights",)),
}
_WORDS = {"compute": "computation", "receive": "receiving", "send": "sending", "weights": "exchange of weights",
          "streamed": "streaming what does not fit"}  # fmt: skip


@dataclass(frozen=True)
class DeviceRow:
    """One row: names, how many devices, bars of its engines (kind, left, width), where the load ends, and words."""

    names: str
    devices: int
    nodes: int
    engines: tuple[tuple[Part, ...], ...]
    load: float
    load_text: str
    bound_by: str
    largest: bool
    memory: tuple[Part, ...]
    memory_text: str
    room: float


def device_rows(document: Mapping[str, Any]) -> list[DeviceRow]:
    """A row for each group of devices that do alike: those that share a stage, and those that do nothing."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for device in document["devices"]:
        idle = not device["nodes"] and "with" not in device
        same = f" {device['kind']} {device.get('memory_limit')}" if idle else device.get("with", device["name"])
        groups.setdefault(same, []).append(device)
    most = max((d["load"] or 0.0 for d in document["devices"]), default=0.0)
    full = max((memory_width(device, device["memory"]) for device in document["devices"]), default=0.0)
    plan = document["plan"] or {"execution": {"communication": "sequential"}}
    engines = _ENGINES[plan["execution"]["communication"]]
    unit = time_unit(dict(document))
    return [_row(members, engines, most, full, unit) for members in groups.values()]


def _row(
    members: list[Mapping[str, Any]], engines: tuple[tuple[str, ...], ...], most: float, full: float, unit: str
) -> DeviceRow:
    first = next((device for device in members if "with" not in device), members[0])
    busy = {kind: seconds or 0.0 for kind, seconds in first.get("busy", {}).items()}
    busy["streamed"] = first.get("streamed", 0.0)
    scale = BAR / most if most > 0.0 else 0.0
    load, limit = first["load"] or 0.0, first.get("memory_limit")
    bars = tuple(bar for kinds in engines if (bar := _bar(kinds, busy, scale)))
    scale_of_memory = BAR / full if full > 0.0 else 0.0
    return DeviceRow(
        ", ".join(ranges([device["name"] for device in members])), len(members), _nodes(first), bars, scale * load,
        amount(first["load"], unit), _bound_by(engines, busy, load), most > 0.0 and load >= most * (1 - 1e-9),
        tuple(memory_parts(first, first["memory"], scale_of_memory)), memory_text(first, first["memory"]),
        scale_of_memory * (limit or 0.0),
    )  # fmt: skip


def _nodes(device: Mapping[str, Any]) -> int:
    """Nodes of a device, also where a page leaves their ids out."""
    return int(device.get("count", len(device["nodes"])))


def _bar(kinds: tuple[str, ...], busy: Mapping[str, float], scale: float) -> tuple[Part, ...]:
    out, left = list[Part](), 0.0
    for kind in kinds:
        width = scale * busy.get(kind, 0.0)
        if width > 0.0:
            out.append((kind, left, width))
            left += width
    return tuple(out)


def _bound_by(engines: tuple[tuple[str, ...], ...], busy: Mapping[str, float], load: float) -> str:
    """What takes longest on the engine that is busy longest, and its share of the load."""
    if load <= 0.0 or not any(busy.values()):
        return ""
    kinds = max(engines, key=lambda kinds: sum(busy.get(kind, 0.0) for kind in kinds))
    kind = max(kinds, key=lambda kind: busy.get(kind, 0.0))
    return f"{_WORDS[kind]}, {min(1.0, busy[kind] / load):.0%}"
