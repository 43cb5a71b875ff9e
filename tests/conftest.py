"""The published workloads and a word in the summary when they are not there; how much is run.

Of what is marked ``sampled(n)`` every n-th case is run, of what is marked ``everything`` none; ``--everything``: all.
"""

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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--everything", action="store_true", help="all cases of tests of which otherwise some are run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--everything"):
        _some_of(config, items)
    if WORKLOADS.is_dir():
        return
    for item in items:
        if item.get_closest_marker("workloads") is not None:
            item.add_marker(pytest.mark.skip(reason=_WHY))


def _some_of(config: pytest.Config, items: list[pytest.Item]) -> None:
    counts: dict[str, int] = {}
    left: list[pytest.Item] = []
    for item in sorted(items, key=lambda item: item.nodeid):
        sampled = item.get_closest_marker("sampled")
        name = item.nodeid.partition("[")[0]
        number = counts[name] = counts.get(name, -1) + 1
        if item.get_closest_marker("everything") or (sampled is not None and number % int(sampled.args[0])):
            left.append(item)
    config.hook.pytest_deselected(items=left)
    out = {item.nodeid for item in left}
    items[:] = [item for item in items if item.nodeid not in out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    absent = [r for r in terminalreporter.getreports("skipped") if _WHY in str(r.longrepr)]
    if absent:
        terminalreporter.write_line(
            f"{len(absent)} tests were not run: {_WHY} (set PLACEDSL_WORKLOADS to their folder)"
        )
