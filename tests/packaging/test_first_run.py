"""The first run of an installation, before search kernels have been compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from placedsl.cli import main as cli
from placedsl.system import first_run

pytestmark = pytest.mark.rotates(2)

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """As if this process were a command's, in a new installation; what was said, and 'started' for a background run."""
    heard: list[str] = []
    monkeypatch.setenv("PLACEDSL_CACHE", str(tmp_path))
    monkeypatch.delenv("PLACEDSL_KERNELS")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(first_run, "compile_in_background", lambda: heard.append("started"))
    return heard


def test_small_problems_do_without(said: list[str]) -> None:
    first_run.prepare(first_run.MOST_NODES, None, said.append)
    assert said == ["started", first_run.BACKGROUND]
    assert os.environ["NUMBA_DISABLE_JIT"] == "1"


def test_a_short_limit_leaves_no_time_to_compile(said: list[str]) -> None:
    first_run.prepare(10_000, 5.0, said.append)
    assert said == ["started", first_run.BACKGROUND]


def test_large_problems_are_told(said: list[str]) -> None:
    first_run.prepare(10_000, None, said.append)
    assert said == [first_run.NOW]
    assert os.environ["NUMBA_DISABLE_JIT"] == "0"


def test_what_lies_between_is_tried_before_kernels_are_compiled(said: list[str]) -> None:
    assert first_run.prepare(first_run.MOST_TRIED, None, said.append, again=True) == first_run.TRY_S
    assert said == ["started", first_run.TRIED]
    assert os.environ["NUMBA_DISABLE_JIT"] == "1"
    said.clear()
    assert first_run.prepare(first_run.MOST_TRIED + 1, None, said.append, again=True) is None
    assert said == [first_run.NOW]


#: A command whose kernels have never been compiled, and that has no time to try.
TRIES = """
import sys
from placedsl.system import first_run
first_run.TRY_S = {seconds}
first_run.compile_in_background = lambda: None
from placedsl.cli.main import run
sys.argv = ["placedsl", "solve", *{arguments!r}]
run()
"""


@pytest.mark.parametrize(("seconds", "begins_again"), [(30.0, False), (1e-4, True)])
def test_a_command_that_tried_begins_again(seconds: float, begins_again: bool, tmp_path: Path) -> None:
    nodes = "".join(f"    node n{i} {{ time = {1 + i * 7 % 5} ms, output = 1 MiB }}\n" for i in range(120))
    edges = "    " + " -> ".join(f"n{i}" for i in range(120))
    (tmp_path / "chain.place").write_text(
        f"graph {{\n{nodes}{edges}\n}}\ndevice gpu[4]: accelerator\ninterconnect {{ bandwidth = 12 GB/s }}\n"
        "minimize time_per_sample\nsubject to\n    contiguous\n",
        encoding="utf-8",
    )
    script = TRIES.format(seconds=seconds, arguments=["chain.place", "--json", "-", "--time-limit", "50s"])
    told = {key: value for key, value in os.environ.items() if key not in ("PLACEDSL_KERNELS", "NUMBA_DISABLE_JIT")}
    told |= {"PLACEDSL_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=told, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["status"]["termination"] == "optimal"
    assert first_run.TRIED.split(" for ")[0] in done.stderr
    assert (first_run.NOW in done.stderr) == begins_again


def test_a_command_that_goes_on_has_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert first_run.spent() == 0.0
    monkeypatch.setenv("PLACEDSL_BEGUN", str(time.monotonic() - 3.0))
    assert 3.0 <= first_run.spent() < 60.0
    assert first_run.spent() == 0.0
    monkeypatch.setenv("PLACEDSL_BEGUN", "today")
    assert first_run.spent() == 0.0


def test_once(said: list[str]) -> None:
    with first_run.compiling(wait=True) as needed:
        assert needed
        with first_run.compiling(wait=False) as again:
            assert not again
        first_run.note_kernels_are_compiled()
    first_run.prepare(10, None, said.append)
    assert said == []
    with first_run.compiling(wait=True) as needed:
        assert not needed


def test_nowhere_to_note_it(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a home that cannot be written to: nothing is compiled that nobody could keep."""
    monkeypatch.setattr(first_run, "cache_folder", lambda: None)
    first_run.prepare(10, None, said.append)
    assert said == []
    assert os.environ["NUMBA_DISABLE_JIT"] == "1"


def test_kernels_are_kept_where_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside their source, else in the cache folder, else among temporary files, in a folder of the user's alone."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    first_run.choose_kernel_folder()
    assert "NUMBA_CACHE_DIR" not in os.environ
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(first_run, "cache_folder", lambda: tmp_path)
    first_run.choose_kernel_folder()
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "numba")
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(first_run, "cache_folder", lambda: None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first_run.choose_kernel_folder()
    chosen = Path(os.environ["NUMBA_CACHE_DIR"])
    assert chosen.parent == tmp_path
    assert not chosen.stat().st_mode & 0o077


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "spec", ["quickstart", "training-gpipe", "two-servers", "latency-calls", "edge-cluster", "compare-free"]
)
def test_plain_python_gives_the_same_value(spec: str) -> None:
    """A process each, as numba is told when it is imported."""
    values = []
    for plain in ("1", "0"):
        command = [sys.executable, "-m", "placedsl", "solve", str(ROOT / "examples" / f"{spec}.place"), "--quiet"]
        told = {**os.environ, "NUMBA_DISABLE_JIT": plain}
        done = subprocess.run([*command, "--json", "-"], capture_output=True, text=True, env=told, check=True)
        answer = json.loads(done.stdout)
        assert answer["status"]["termination"] == "optimal"
        values.append(answer["objective"]["value"])
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_plans_keep_a_short_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On many devices the search for plans is compiled first, unless an answer is wanted soon."""
    asked: list[tuple[int, float | None]] = []
    monkeypatch.setattr(first_run, "prepare", lambda nodes, limit, _say, **_: asked.append((nodes, limit)))
    spec = tmp_path / "s.place"
    spec.write_text(
        "graph {\n    node a { time = 1 ms }\n}\ndevice gpu[2000]: accelerator\n"
        "parallelism { data = 1..4, microbatches = 8 }\n"
        "minimize time_per_sample\nsubject to\n    contiguous\n",
        encoding="utf-8",
    )
    assert [cli.main(["solve", str(spec), "--quiet", *options]) for options in ([], ["--time-limit", "3s"])] == [0, 0]
    assert [limit for _, limit in asked] == [None, 3.0]
