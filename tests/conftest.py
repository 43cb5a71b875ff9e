"""The published workloads, a line in the summary when they are absent, compiled kernels, and the choice of cases.

A test marked ``sampled(n)`` runs one case in 10 n; a case of a costly file, marked ``rotates(n)``, runs on one commit
in 10 n (10 is ``THIN``, for the time of all); a test marked ``everything`` runs with ``--everything`` only, as all
cases do.
The commit chooses the cases, and ``--cases NUMBER`` repeats the choice of another run.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = Path(os.environ.get("PLACEDSL_WORKLOADS", ROOT.parent / "shared" / "workloads"))
#: Seconds after which a run of the chosen cases is taken for stuck: a worker, and the process that waits for workers.
_STUCK_WORKER, _STUCK_RUN = 2400.0, 3000.0
#: The stderr of the run; what is written to that of a test, pytest keeps.
_STDERR = pytest.StashKey[int]()
#: How much thinner all samples are than their marks say, so that a usual run stays within its minutes.
THIN = 10
_WHY = "the published workloads are not there"


@pytest.fixture(scope="session")
def workloads() -> Path:
    """The folder of the published inputs."""
    return WORKLOADS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--everything", action="store_true", help="run all cases of sampled tests")
    parser.addoption("--cases", type=int, help="which cases of sampled tests run (default: chosen by the commit)")


def pytest_configure(config: pytest.Config) -> None:
    """Workers of a distributed run take the choice of the process that started them."""
    if config.option.cases is None:
        config.option.cases = _of_commit()
    os.environ["PLACEDSL_KERNELS"] = "compiled"
    config.stash[_STDERR] = os.dup(2)
    _watch(config)
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if whole and not config.option.collectonly and not hasattr(config, "workerinput"):
        _compile_kernels()


def _watch(config: pytest.Config) -> None:
    """A process that is stuck tells where, and ends: the run goes on without it, and the test that it was at failed."""
    if not config.option.everything:
        seconds = _STUCK_WORKER if hasattr(config, "workerinput") else _STUCK_RUN
        faulthandler.dump_traceback_later(seconds, exit=True, file=config.stash[_STDERR])


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Pytest ends the watch where a test fails."""
    _watch(node.config)


def pytest_unconfigure() -> None:
    faulthandler.cancel_dump_traceback_later()


def _compile_kernels() -> None:
    """Before a run of all tests; a process that the first run of a command has started may be at it already."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-m", "placedsl.planner.compile_kernels", "--wait"]
    if subprocess.run(command, env=environment, check=False).returncode:
        raise pytest.UsageError("the kernels were not compiled: see above")


def _of_commit() -> int:
    """A number from the commit of the checkout; 0 outside of one."""
    try:
        command = ["git", "-C", str(ROOT), "rev-parse", "--short=7", "HEAD"]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout, 16)
    except (OSError, subprocess.CalledProcessError):
        return 0


def pytest_report_header(config: pytest.Config) -> str:
    """How to run the same cases again."""
    return "all cases" if config.getoption("--everything") else f"cases of sampled tests: --cases {config.option.cases}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--everything"):
        _some_of(config, items)
    if WORKLOADS.is_dir():
        return
    for item in items:
        if item.get_closest_marker("workloads") is not None:
            item.add_marker(pytest.mark.skip(reason=_WHY))


def _some_of(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one case in THIN times n of each sampled test, and the cases of costly files whose turn it is."""
    offset = int(config.option.cases)
    cases: dict[str, list[pytest.Item]] = {}
    for item in sorted(items, key=lambda item: item.nodeid):
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept: set[str] = set()
    for alike in cases.values():
        for number, item in enumerate(alike):
            sampled = item.get_closest_marker("sampled")
            step = min(THIN * int(sampled.args[0]), len(alike)) if sampled is not None else 1
            chosen = (number - offset) % step == 0 and _has_its_turn(item, offset)
            if chosen and item.get_closest_marker("everything") is None:
                kept.add(item.nodeid)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def _has_its_turn(item: pytest.Item, offset: int) -> bool:
    mark = item.get_closest_marker("rotates")
    return mark is None or (zlib.crc32(item.nodeid.encode()) + offset) % (THIN * int(mark.args[0])) == 0


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    absent = [r for r in terminalreporter.getreports("skipped") if _WHY in str(r.longrepr)]
    if absent:
        terminalreporter.write_line(
            f"{len(absent)} tests were not run: {_WHY} (set PLACEDSL_WORKLOADS to their folder)"
        )
