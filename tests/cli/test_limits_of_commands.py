"""A run cut short gives the best verified placement so far, its bound, and the exit code that says so."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.commands import started

pytestmark = pytest.mark.rotates(3)

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc")


def hard_spec() -> str:
    """Sixty unlike nodes over six devices, not contiguous: far more than any solver proves in a minute."""
    rng = random.Random(3)
    lines = ["graph {"]
    for v in range(60):
        time_on = f"{{accelerator: {rng.uniform(1, 9):.3f} ms, host: {rng.uniform(9, 60):.3f} ms}}"
        lines.append(
            f"    node n{v} {{ time = {time_on}, memory = {rng.randint(1, 9)} MiB, output = {rng.randint(1, 9)} MiB }}"
        )
    for v in range(60):
        for w in rng.sample(range(v + 1, 60), min(59 - v, 2)):
            lines.append(f"    n{v} -> n{w}")
    lines += [
        "}", "device gpu[5]: accelerator { memory = 70 MiB }", "device cpu: host",
        "link gpu <-> cpu { bandwidth = 2 GiB/s }", "minimize time_per_sample", "subject to", "    memory",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "hard.place"
    path.write_text(hard_spec(), encoding="utf-8")
    return path


def start(spec: Path, *options: str) -> subprocess.Popen[str]:
    return started("solve", spec, "--json", "-", "--method", "program", *options)


def finished(running: subprocess.Popen[str], seconds: float = 60) -> tuple[int, dict[str, object]]:
    try:
        out, err = running.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        running.kill()  # what it has started ends with it
        raise
    assert "Traceback" not in err
    return running.returncode, json.loads(out)


def expect_verified(answer: dict[str, object]) -> None:
    assert answer["verified"]
    assert answer["status"]["solution"] == "feasible"
    assert 0 < answer["objective"]["bound"] < answer["objective"]["value"]
    assert len(answer["placement"]) == 60


def worker_of(running: subprocess.Popen[str]) -> int:
    """The solver's process, once there is one and it has begun to work."""
    until = time.monotonic() + 120  # kernels may have to be compiled first
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text(encoding="utf-8").split()
            for child in children:
                command = Path(f"/proc/{child}/cmdline").read_text(encoding="utf-8")
                if "placedsl.solvers.worker" in command:
                    time.sleep(1.5)
                    return int(child)
        time.sleep(0.05)
    raise AssertionError("no solver was started")


def searches_of(running: subprocess.Popen[str]) -> list[int]:
    """The processes that search beside the solver, once there are some."""
    until = time.monotonic() + 120  # kernels may have to be compiled first
    while time.monotonic() < until:
        out = []
        for child in Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text(encoding="utf-8").split():
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{child}/cmdline").read_text(encoding="utf-8")
                out += [int(child)] if "placedsl.planner.portfolio.worker" in command else []
        if out:
            return out
        time.sleep(0.05)
    return []


@pytest.mark.parametrize("solver", ["highs", "cp-sat", "mip"])
def test_time_limit(spec: Path, solver: str) -> None:
    code, answer = finished(start(spec, "--solver", solver, "--time-limit", "6s"))
    assert code == 4
    assert answer["status"]["termination"] == "time_limit"
    expect_verified(answer)


def test_a_limit_too_short_for_anything(spec: Path) -> None:
    code, answer = finished(start(spec, "--time-limit", "1ms"))
    assert code == (4 if answer["placement"] else 5)
    assert answer["status"]["termination"] == "time_limit"


def test_gap(spec: Path) -> None:
    code, answer = finished(start(spec, "--gap", "60%"))
    assert code == 0
    assert answer["status"]["termination"] == "gap_reached"
    assert answer["objective"]["gap"] <= 0.6
    expect_verified(answer)


@on_linux
@pytest.mark.parametrize("solver", ["highs", "cp-sat"])
def test_interrupt(spec: Path, solver: str) -> None:
    running = start(spec, "--solver", solver)
    child = worker_of(running)
    searches = searches_of(running)
    running.send_signal(signal.SIGINT)
    code, answer = finished(running)
    assert code == 4
    assert answer["status"]["termination"] == "interrupted"
    expect_verified(answer)
    assert not Path(f"/proc/{child}").exists()
    assert searches
    assert not any(Path(f"/proc/{search}").exists() for search in searches)


@on_linux
def test_killed_itself(spec: Path) -> None:
    """Neither the solver nor the searches outlive the process that started them."""
    running = start(spec, "--solver", "highs")
    children = [worker_of(running), *searches_of(running)]
    running.kill()
    running.communicate(timeout=60)
    until = time.monotonic() + 120  # kernels may have to be compiled first
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < until:
        time.sleep(0.05)
    assert len(children) > 1
    assert not any(Path(f"/proc/{child}").exists() for child in children)


@on_linux
def test_killed_solver(spec: Path) -> None:
    running = start(spec, "--solver", "highs")
    os.kill(worker_of(running), signal.SIGKILL)
    code, answer = finished(running)
    assert code == 4
    assert answer["status"]["termination"] == "error"
    assert "was killed" in answer["status"]["message"]
    assert "try --solver cp-sat" in answer["status"]["message"]
    expect_verified(answer)
