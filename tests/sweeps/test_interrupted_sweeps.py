"""Sweeps that are killed, or stopped, or lose a process: what had ended is kept, and the rest is run the next time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.commands import finished, run, started
from support.sweep_specs import answers, hard_spec

import placedsl
from placedsl.sweeps import engine

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc"), pytest.mark.rotates(2)]
COMMAND = ("hard.place", "--method", "program", "--solver", "highs", "--seed", "0..5", "--time-limit", "0.5s")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hard.place").write_text(hard_spec(), encoding="utf-8")
    return tmp_path


def until(true: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Wait for something."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def descendants(process: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    out = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            for child in (thread / "children").read_text(encoding="utf-8").split():
                out += [int(child), *descendants(int(child))]
    return out


def runs(command: str, process: int) -> bool:
    """Whether a process is there and was started with that word."""
    with contextlib.suppress(OSError):
        return command in Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8")
    return False


def test_a_sweep_that_is_killed_goes_on_where_it_was(folder: Path) -> None:
    sweep = started("sweep", *COMMAND, "--jobs", "2", folder=folder)
    until(lambda: len(answers(folder / "runs")) >= 2, "two answers")
    started_by_it = descendants(sweep.pid)
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.communicate()
    until(lambda: not any(runs("placedsl", p) for p in started_by_it), "its processes leave")
    kept = answers(folder / "runs")
    assert 2 <= len(kept) < 6
    for name in kept:
        assert json.loads((folder / "runs" / name).read_text(encoding="utf-8"))["verified"]
    done = run("sweep", "--table", "runs", folder=folder)
    assert (done.returncode, done.stdout.count("not run")) == (4, 6 - len(kept))
    done = run("sweep", *COMMAND, folder=folder)
    assert done.returncode == 0, done.stderr
    assert f"6 runs (6 seed), {len(kept)} of them there already" in done.stderr
    assert done.stdout.count("time limit") == 6
    after = answers(folder / "runs")
    assert len(after) == 6
    assert {name: after[name] for name in kept} == kept


def test_a_process_that_is_killed_costs_its_run_only(folder: Path) -> None:
    sweep = started("sweep", *COMMAND, "--jobs", "2", folder=folder)
    until(lambda: answers(folder / "runs"), "an answer")
    workers = [p for p in descendants(sweep.pid) if runs("placedsl.sweeps.worker", p)]
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    done = finished(sweep)
    assert done.returncode == 1
    assert done.stderr.count("failed: ") == 1
    assert "the process of this run was killed, most likely because the memory was used up" in done.stderr
    out = done.stdout
    assert (out.count("failed"), out.count("time limit"), len(answers(folder / "runs"))) == (1, 5, 5)
    done = run("sweep", *COMMAND, folder=folder)
    assert (done.returncode, done.stdout.count("time limit")) == (0, 6), done.stderr
    assert "5 of them there already" in done.stderr
    assert not list((folder / "runs").glob("*.failed.json"))


def test_ctrl_c_keeps_what_has_ended(folder: Path) -> None:
    sweep = started("sweep", *COMMAND, "--jobs", "1", folder=folder, start_new_session=True)
    until(lambda: answers(folder / "runs"), "an answer")
    started_by_it = descendants(sweep.pid)
    os.killpg(sweep.pid, signal.SIGINT)
    done = finished(sweep, 30)
    kept = answers(folder / "runs")
    assert done.returncode == 4
    assert f"stopped: {6 - len(kept)} of 6 were not run; the same command goes on from here" in done.stderr
    assert (done.stdout.count("time limit"), done.stdout.count("not run")) == (len(kept), 6 - len(kept))
    until(lambda: not any(runs("placedsl", p) for p in started_by_it), "its processes leave")


def test_an_answer_whose_row_was_not_noted_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = engine.folders.keep

    def interrupted(*arguments: Any) -> None:
        keep(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.folders, "keep", interrupted)
    monkeypatch.chdir(folder)
    table = placedsl.sweep("hard.place", seed=range(4), method="program", solver="highs", time_limit=0.2, jobs=1)
    assert (table.stopped, len(answers(Path("runs")))) == (True, 1)
    assert [row.exit_code for row in table].count(None) == 3
