"""The bounds by name as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placedsl.planner.bounds_by_name import FoundBound


def bounds_document(bounds: Sequence[FoundBound], value: float | None) -> dict[str, Any]:
    """``value``: of the placement that is known, and the bounds; what is not known is null."""
    return {
        "value": value,
        "bounds": [
            {
                "name": one.name,
                "meaning": one.meaning,
                "of_the_paper": one.paper,
                "valid": not one.against,
                "reasons": list(one.against),
                "value": one.value,
                "ratio": None if value is None or one.value is None or one.value <= 0.0 else value / one.value,
                "bound_by": one.by or None,
                "final": one.final,
                "seconds": round(one.seconds, 6),
                "last_seconds": round(one.last, 6),
                "failed": one.failed or None,
            }
            for one in bounds
        ],
    }
