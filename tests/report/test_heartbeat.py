"""What long work shows on stderr: one line on a terminal, few lines elsewhere, and from every command."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from placedsl.cli import main as cli
from placedsl.report.text import heartbeat
from placedsl.report.text.heartbeat import Heartbeat, Ticker

pytestmark = pytest.mark.rotates(2)

SPEC = """graph {
    node a { time = 1 ms, memory = 1 GiB, output = 1 MiB }
    node b { time = 1 ms, memory = 1 GiB }
    a -> b
}
device gpu[2]: accelerator { memory = 4 GiB }
interconnect { bandwidth = 16 GB/s }
minimize time_per_sample
subject to
    memory
"""
CONFLICT = SPEC + "    here: forall v in nodes: v on gpu[1]\n    there: b on gpu[2]\n"


class Terminal(io.StringIO):
    """What looks like a terminal."""

    def isatty(self) -> bool:
        return True


def shown(paper: io.StringIO, monkeypatch: pytest.MonkeyPatch, seconds: range) -> str:
    """What is written while two things are done, one after the other, and the clock strikes each second."""
    monkeypatch.setattr(sys, "stderr", paper)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(Ticker, "start", lambda _: None)
    with Heartbeat("reading model.onnx") as beat:
        for second in seconds:
            if second == 5:
                beat.doing("which of their instances conflict? question 12")
            beat.show(float(second))
    return paper.getvalue()


def test_a_terminal_has_one_line_within_its_width_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    written = shown(Terminal(), monkeypatch, range(1, 8))
    assert "\n" not in written, "nothing scrolls"
    lines = [line.removesuffix("\x1b[K") for line in written.split("\r")[1:]]
    assert lines[0] == "reading model.onnx  1 s"
    assert lines[4].startswith("which of their instances conflict?")
    assert max(map(len, lines)) < 40
    assert lines[-1] == "", "the line is erased"


def test_a_file_has_a_line_after_ten_seconds_and_then_after_twice_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    written = shown(io.StringIO(), monkeypatch, range(1, 601))
    assert [line.rpartition("  ")[2] for line in written.splitlines()] == [
        "10 s", "20 s", "40 s", "80 s", "160 s", "320 s",
    ]  # fmt: skip
    assert "\x1b" not in written
    assert "\r" not in written


def test_what_is_short_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(io.StringIO(), monkeypatch, range(1, 9)) == ""


def test_the_clock_strikes_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "SOON", 0.001)
    struck = threading.Semaphore(0)
    ticker = Ticker(struck.release)
    ticker.start()
    assert all(struck.acquire(timeout=60) for _ in range(3))
    ticker.stop()
    while struck.acquire(blocking=False):
        pass
    assert not struck.acquire(timeout=0.05), "no call is made after the end"


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What commands say that they are doing, in order."""
    told: list[str] = []
    began, doing = Heartbeat.__enter__, Heartbeat.doing

    def enter(self: Heartbeat) -> Heartbeat:
        told.append(self.text)
        return began(self)

    def heard(self: Heartbeat, text: str) -> None:
        told.append(text)
        doing(self, text)

    monkeypatch.setattr(Heartbeat, "__enter__", enter)
    monkeypatch.setattr(Heartbeat, "doing", heard)
    return told


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("conflict SPEC --instances", ["reading SPEC", "is there a placement?", "which constraints conflict?, question",
                                       "which of their instances conflict?, question", "what would repair it?"]),
        ("solve SPEC --explain-conflict", ["reading SPEC", "which of their instances conflict?"]),
        ("solve GOOD --why", ["reading GOOD", "what would change time_per_sample? one more gpu"]),
        ("check GOOD", ["reading GOOD", "stating the program"]),
        ("explain GOOD", ["reading GOOD", "stating the program"]),
        ("emit GOOD --to lp", ["reading GOOD", "stating the program"]),
        ("evaluate GOOD PLACED", ["reading GOOD", "evaluating PLACED"]),
        ("timeline GOOD PLACED --trace TRACE", ["reading GOOD", "running PLACED", "writing TRACE"]),
    ],
)  # fmt: skip
def test_every_command_says_what_it_is_doing(
    command: str, texts: list[str], done: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("SPEC").write_text(CONFLICT, encoding="utf-8")
    Path("GOOD").write_text(SPEC, encoding="utf-8")
    Path("PLACED").write_text(json.dumps({"placement": {"a": "gpu[1]", "b": "gpu[2]"}}), encoding="utf-8")
    assert cli.main(command.split()) in (0, 3)
    said = "\n".join(done)
    assert [text for text in texts if text not in said] == []


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals of this kind on this system")
def test_a_signal_ends_the_command_on_a_line_of_its_own() -> None:
    """On a real terminal, while the line stands there."""
    code = (
        "import os, signal\nfrom placedsl.report.text.heartbeat import Heartbeat\n"
        "from placedsl.system import interruption\ninterruption.install()\n"
        "with Heartbeat('reading') as beat:\n    beat.show(3.0)\n    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    own, its = os.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    ended = subprocess.run([sys.executable, "-c", code], stderr=its, env=environment, check=False, timeout=300)
    os.close(its)
    written = os.read(own, 10_000).decode()
    os.close(own)
    assert ended.returncode == 5
    assert re.fullmatch(r"\rreading  3 s\x1b\[K\r\x1b\[Kstopped\r?\n", written), repr(written)
