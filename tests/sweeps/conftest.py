"""A word in the summary when there is no Dask to test."""

from __future__ import annotations

import pytest
from support.sweep_specs import NO_DASK


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    absent = [r for r in terminalreporter.getreports("skipped") if NO_DASK in str(r.longrepr)]
    if absent:
        terminalreporter.write_line(f"{len(absent)} tests were not run: {NO_DASK} (pip install 'placedsl[dask]')")
