"""Examples of pages are run as long as they take: no limit of time decides what they print."""

from __future__ import annotations

import math

import pytest

from placedsl.diagnosis.infeasibility import conflict, repair
from placedsl.report.text import heartbeat

_PATIENCE = 3600.0


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repairs of a conflict are all tried, and no line says that a command is still at work."""
    for name in ("SHORT", "LONG"):
        monkeypatch.setattr(conflict, name, _PATIENCE)
    monkeypatch.setattr(repair, "_MOST_SECONDS", _PATIENCE)
    monkeypatch.setattr(heartbeat, "LATER", math.inf)
