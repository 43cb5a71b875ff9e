"""Where the spec says what costs are computed from, so that diagnostics can point there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from placedsl.diagnostics import Span
from placedsl.records import dataclass


@dataclass(frozen=True)
class Places:
    """Spans of a spec; diagnostics have none where one is missing.

    ``families``      per family of devices or clusters: its name
    ``declarations``  per family of devices: the head of its declaration, as in ``device gpu``
    ``graph``         the graph
    ``weights``       the statement that asks for the exchange of weights
    """

    families: Mapping[str, Span] = field(default_factory=dict)
    declarations: Mapping[str, Span] = field(default_factory=dict)
    graph: Span | None = None
    weights: Span | None = None
