"""When everything happens for one sample on a finished placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from placedsl.records import dataclass

#: A task that occupies something: a node, a call of a device (device, number), or a transfer (tensor, device).
Task = tuple[str, int, int]


@dataclass(frozen=True)
class SampleTimes:
    """Start and finish of each node, of the transfers of tensors to devices, and of calls.

    ``circle``: tasks that wait for one another, where there are any; then nothing has a time.
    """

    start: list[float] = field(default_factory=list)
    finish: list[float] = field(default_factory=list)
    sent: Mapping[tuple[int, int], float] = field(default_factory=dict)
    arrived: Mapping[tuple[int, int], float] = field(default_factory=dict)
    calls: Mapping[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    circle: tuple[Task, ...] = ()

    @property
    def latency(self) -> float:
        """When the last node is finished."""
        return max(self.finish, default=0.0)
