"""What is asked of an evaluated placement: what runs where, what it costs, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from placedsl.problem.values import Values


class SampleTimes(Protocol):
    """When one sample's nodes and calls run."""

    @property
    def start(self) -> Sequence[float]:
        """Of each node."""

    @property
    def finish(self) -> Sequence[float]:
        """Of each node."""

    @property
    def calls(self) -> Mapping[tuple[int, int], tuple[float, float]]:
        """Start and finish by device and number of the call."""


class Placed(Protocol):
    """What a plan is built of: an evaluated placement."""

    @property
    def loads(self) -> tuple[float, ...]:
        """Busy seconds of each device per sample."""

    @property
    def memory(self) -> tuple[float, ...]:
        """Bytes on each device."""

    @property
    def nodes(self) -> tuple[tuple[int, ...], ...]:
        """The nodes of each device."""

    @property
    def values(self) -> Values:
        """Values of the spec's variables and of the schedule's decisions, by name and positions."""

    @property
    def times(self) -> SampleTimes | None:
        """When everything happens, under a schedule of one sample."""
