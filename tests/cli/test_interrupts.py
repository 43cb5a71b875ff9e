"""Ctrl-C and SIGTERM at any moment: the answer found so far, or one line; never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.paths import ROOT, child_environment

import placedsl
from placedsl.planner import solve as planner
from placedsl.system import interruption

pytestmark = pytest.mark.rotates(6)

if sys.platform != "linux":
    pytest.skip("signals", allow_module_level=True)

SPEC = """
graph {
    node a { time = 4 ms, output = 8 MiB }
    node b { time = 6 ms }
    a -> b
}
device gpu[2]: accelerator
interconnect { bandwidth = 16 GB/s }
minimize time_per_sample
"""
#: Runs the command and sends itself a signal when a function is called (the first, or so many calls later).
AT = """
import os, signal, sys
name, count, number, *arguments = sys.argv[1:]
left = int(count)
def watch(frame, event, _):
    global left
    if event == "call" and f"{frame.f_globals.get('__name__')}:{frame.f_code.co_name}" == name:
        left -= 1
        if left == 0:
            sys.setprofile(None)
            os.kill(os.getpid(), int(number))
sys.argv = ["placedsl", *arguments]
from placedsl.cli.main import run
sys.setprofile(watch)
run()
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "small.place"
    path.write_text(SPEC, encoding="utf-8")
    return path


@pytest.fixture
def installed() -> Iterator[None]:
    """The handlers of a command, in this process, which may have been started with Ctrl-C ignored."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interruption.install()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    interruption._STATE.__init__()


def interrupted(where: str, count: int, number: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command, with a signal at that call of a function."""
    command = [sys.executable, "-c", AT, where, str(count), str(int(number)), *map(str, arguments)]
    done = subprocess.run(
        command, env=child_environment(), capture_output=True, text=True, check=False, timeout=100,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr
    assert "Exception ignored" not in done.stderr
    return done


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("importlib._bootstrap:_find_and_load", 3), ("importlib._bootstrap:_find_and_load", 100),
        ("importlib._bootstrap:_find_and_load", 400), ("placedsl.cli.main:main", 1),
        ("placedsl.language.syntax.source_files:read_source", 1), ("placedsl.language.syntax.kept_trees:tree", 1),
        ("placedsl.language.elaboration.elaborate:elaborate", 1), ("placedsl.cost_model.costs:build", 1),
    ],
)  # fmt: skip
def test_before_there_is_anything(where: str, count: int, number: int, spec: Path) -> None:
    done = interrupted(where, count, number, "solve", spec, "--json", "-")
    assert (done.returncode, done.stdout, done.stderr) == (5, "", "stopped\n")


def test_a_signal_is_answered_before_anything_is_imported() -> None:
    """What the console script imports first brings the handlers, and no other module."""
    script = (
        "import sys; before = set(sys.modules); import placedsl.__main__; print(sorted(set(sys.modules) - before)); "
        "import os, signal; sys.stdout.flush(); os.kill(os.getpid(), int(sys.argv[1])); print('goes on')"
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        done = subprocess.run(
            [sys.executable, "-c", script, str(int(number))], env=child_environment(), capture_output=True, text=True,
            check=False, timeout=100, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
        assert done.stdout == "['placedsl', 'placedsl.__main__']\n"
        assert (done.returncode, done.stderr) == (5, "stopped\n")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(4))
def test_at_random_moments(seed: int) -> None:
    """Ctrl-C, SIGTERM and kill, by both forms of the command: no traceback of placedsl, nothing left behind."""
    script = ROOT / "benchmarks" / "interrupts.py"
    command = [sys.executable, str(script), "--times", "6", "--seed", str(seed)]
    done = subprocess.run(
        command, env=child_environment(), capture_output=True, text=True, check=False, timeout=300
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "where", ["planner.solve:_walk", "algorithms.simple_bounds:simple_bound", "planner.request:resolve"]
)
def test_while_it_searches(where: str, number: int, spec: Path) -> None:
    done = interrupted(f"placedsl.{where}", 1, number, "solve", spec, "--json", "-", "--quiet")
    if done.stdout:
        assert '"termination": "interrupted"' in done.stdout
        assert done.returncode in (4, 5)
        assert done.stderr == ""
    else:
        assert (done.returncode, done.stderr) == (5, "stopped\n")


@pytest.mark.parametrize(
    "where",
    ["planner.solve:_told", "report.text.summary:print_answer", "report.json.answer_document:document", "files:write"],
)
def test_when_there_is_an_answer(where: str, spec: Path) -> None:
    done = interrupted(
        f"placedsl.{where}", 1, signal.SIGINT, "solve", spec, "--quiet", "--json", spec.with_name("a.json")
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("optimal ")
    assert '"optimal"' in spec.with_name("a.json").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_python_drops_is_raised_again(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruption, "_AGAIN", 0.1)

    class Final:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)

    with pytest.raises(KeyboardInterrupt), interruption.stoppable():  # noqa: PT012 - it comes at any moment
        Final()
        time.sleep(30)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_a_library_makes_of_an_interrupt_is_one(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def importing(*_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            raise ImportError("a part of a library could not be loaded") from None

    monkeypatch.setattr(planner, "_walk", importing)
    with interruption.stoppable():
        answer = placedsl.loads(SPEC).solve()
    assert answer.termination == "interrupted"


def test_what_is_not_left_half_done(installed: None) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interruption.stoppable():  # noqa: PT012
        with interruption.finishing():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append("written")
        done.append("never")
    assert done == ["written"]


def test_signals_that_the_parent_has_ignored_stay_so(spec: Path) -> None:
    command = [
        sys.executable,
        "-c",
        AT,
        "placedsl.planner.solve:_walk",
        "1",
        str(int(signal.SIGINT)),
        "solve",
        str(spec),
        "--quiet",
    ]
    done = subprocess.run(
        command, env=child_environment(), capture_output=True, text=True, check=False, timeout=100,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.startswith("optimal ")
