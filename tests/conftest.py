"""The published workloads, and a word in the summary when they are not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = Path(os.environ.get("PLACEDSL_WORKLOADS", ROOT.parent / "shared" / "workloads"))
_WHY = "the published workloads are not there"


@pytest.fixture(scope="session")
def workloads() -> Path:
    """The folder of the published inputs."""
    return WORKLOADS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if WORKLOADS.is_dir():
        return
    for item in items:
        if item.get_closest_marker("workloads") is not None:
            item.add_marker(pytest.mark.skip(reason=_WHY))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    absent = [r for r in terminalreporter.getreports("skipped") if _WHY in str(r.longrepr)]
    if absent:
        terminalreporter.write_line(
            f"{len(absent)} tests were not run: {_WHY} (set PLACEDSL_WORKLOADS to their folder)"
        )
