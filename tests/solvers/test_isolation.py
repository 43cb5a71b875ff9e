"""The child process of a run against what can go wrong with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.paths import child_environment
from support.programs import INF, random_program, split

from placedsl.budget import Budget
from placedsl.solvers import isolated
from placedsl.solvers.isolated import run_isolated
from placedsl.solvers.outcome import heard_by_nobody

streaming = pytest.mark.parametrize(
    "solver", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in ("highs", "cp-sat")]
)
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc")


class Child:
    """Keeps the child that :mod:`isolated` starts, so that a test can do it harm."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        start = subprocess.Popen

        def started(*arguments, **options):
            self.process = start(*arguments, **options)
            return self.process

        monkeypatch.setattr("placedsl.processes.child.subprocess.Popen", started)

    def signals(self, number: int):
        """A progress function that sends the child this signal at the first incumbent."""

        def heard(point, objective, bound):
            if point is not None:
                os.kill(self.process.pid, number)
            return False

        return heard

    def gone(self) -> bool:
        return self.process.poll() is not None


@on_linux
@streaming
@pytest.mark.parametrize(("number", "words"), [(signal.SIGKILL, "memory"), (signal.SIGSEGV, "SIGSEGV")])
def test_killed_worker(solver: str, number: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The incumbent survives the child that found it."""
    child = Child(monkeypatch)
    found = run_isolated(solver, split(), Budget(20.0, workers=1), child.signals(number))
    assert found.termination == "error"
    assert words in found.message
    assert "--solver" in found.message
    assert found.incumbent is not None
    assert found.objective < INF


@on_linux
@pytest.mark.parametrize("patient", [False, True])
def test_hanging_worker(monkeypatch: pytest.MonkeyPatch, patient: bool) -> None:
    """A child that does not come back is ended a little after the limit; one that others go before, at once."""
    child = Child(monkeypatch)
    monkeypatch.setattr(isolated, "LIMIT_GRACE", 1e9 if patient else 0.5)
    budget = Budget(2.0 if patient else 1.5, workers=1, patient=patient)
    found = run_isolated("highs", split(), budget, child.signals(signal.SIGSTOP))
    assert found.termination == "time_limit"
    assert found.incumbent is not None
    assert child.gone()


def test_a_caller_that_knows_enough_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the caller knows without the child ends it without a grace."""
    child = Child(monkeypatch)
    monkeypatch.setattr(isolated, "STOP_GRACE", 1e9)
    monkeypatch.setattr(isolated.Child, "send", lambda self, message: None)  # it never gets its task
    found = run_isolated("highs", split(), Budget(None, workers=1), lambda *_: True)
    assert found.termination == "interrupted"
    assert found.incumbent is None
    assert child.gone()


@streaming
def test_stopped_by_progress(solver: str) -> None:
    found = run_isolated(solver, split(), Budget(20.0, workers=1), lambda point, *_: point is not None)
    assert found.termination == "interrupted"
    assert found.incumbent is not None


def test_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends the run, not what it has found."""
    child = Child(monkeypatch)

    def heard(point, objective, bound):
        if point is not None:
            raise KeyboardInterrupt
        return False

    found = run_isolated("highs", split(), Budget(20.0, workers=1), heard)
    assert found.termination == "interrupted"
    assert found.incumbent is not None
    assert child.gone()


def test_progress_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the caller's function is the caller's, and leaves no child behind."""
    child = Child(monkeypatch)

    def heard(point, objective, bound):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_isolated("highs", split(), Budget(20.0, workers=1), heard)
    assert child.gone()


@on_linux
def test_child_of_a_dead_parent() -> None:
    """The child goes when its parent is killed."""
    code = (
        "from support.programs import split; from placedsl.solvers.isolated import run_isolated\n"
        "from placedsl.budget import Budget\n"
        "run_isolated('highs', split(), Budget(60.0, workers=1), lambda point, *_: print(1, flush=True))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=child_environment())
    assert parent.stdout is not None
    parent.stdout.readline()
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    assert children
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 5
    while any(_running(child) for child in children) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(_running(child) for child in children)


def _running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_missing_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placedsl.solvers.highs.installed_version", lambda package: None)
    found = run_isolated("highs", random_program(1), Budget(), heard_by_nobody)
    assert found.termination == "error"
    assert "pip install highspy" in found.message
    assert found.incumbent is None


def test_nothing_is_imported() -> None:
    """Listing the solvers loads none of them."""
    code = (
        "import sys; from placedsl.solvers.registry import installed; installed()\n"
        "print([m for m in ('highspy', 'ortools', 'pyomo', 'mip', 'cvxpy', 'scipy', 'cbcbox') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=child_environment()
    )
    assert done.stdout.strip() == "[]"
