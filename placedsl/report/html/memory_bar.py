"""The memory of a device as a bar: its parts, what is streamed beyond the limit, and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from placedsl.report.html.amounts import size

#: A part of a bar: kind, left, width.
Part = tuple[str, float, float]


def memory_width(device: Mapping[str, Any], memory: float) -> float:
    """Bytes that the whole bar stands for: the limit, with what is streamed beyond it, or what is held."""
    return max((device.get("memory_limit") or 0.0) + _streamed(device), memory)


def memory_parts(device: Mapping[str, Any], memory: float, scale: float) -> Iterable[Part]:
    """Parts of the memory of a device, from the left; what is streamed begins at the limit."""
    parts = device.get("memory_parts") or {"other": memory}
    left = 0.0
    for kind, held in parts.items():
        if kind == "streamed":
            left = max(left, scale * (device.get("memory_limit") or 0.0))
        if held > 0.0:
            yield kind, left, scale * held
            left += scale * held


def memory_text(device: Mapping[str, Any], memory: float) -> str:
    """How much of how much, and what of it is streamed."""
    limit, streamed = device.get("memory_limit"), _streamed(device)
    told = size(memory) if limit is None else f"{size(memory)} of {size(limit)}"
    return told + (f", {size(streamed)} streamed" if streamed else "")


def _streamed(device: Mapping[str, Any]) -> float:
    return float((device.get("memory_parts") or {}).get("streamed", 0.0))
