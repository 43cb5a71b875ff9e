"""A child process: messages both ways, its end by itself, by the parent, and with the parent."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.paths import child_environment

from placedsl.processes.channel import Failure, Gone
from placedsl.processes.child import Child

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc")
MODULE = "support.echo_process"


class Echo:
    """A child and its messages."""

    def __init__(self) -> None:
        self.inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.child = Child(MODULE, self.inbox.put, keep_stderr=True)

    def told(self, word: str, argument: object = None) -> None:
        self.child.send((word, argument))

    def message(self) -> object:
        return self.inbox.get(timeout=30.0)


@pytest.fixture
def echo() -> Iterator[Echo]:
    one = Echo()
    yield one
    one.child.close()
    assert not one.child.alive


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def ends(pid: int) -> bool:
    until = time.monotonic() + 10
    while running(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not running(pid)


def test_messages_arrive_in_order_and_whole(echo: Echo) -> None:
    large = os.urandom(1 << 20)
    for part in (1, {"a": large}, None):
        echo.told("echo", part)
    assert [echo.message() for _ in range(3)] == [1, {"a": large}, None]


def test_what_the_child_prints_does_not_disturb_the_messages(echo: Echo) -> None:
    echo.told("print", "chatter of a library")
    echo.told("stdin")
    assert echo.message() == ""
    echo.told("exit", 3)
    assert echo.message() == Gone()
    report = echo.child.exit_report()
    assert (report.phrase, report.killed) == ("ended with exit code 3", False)
    assert report.last_lines == ("chatter of a library",)


def test_an_exception_is_sent_and_its_traceback_kept(echo: Echo) -> None:
    echo.told("raise", "no good")
    assert echo.message() == Failure("ValueError: no good")
    assert echo.message() == Gone()
    assert echo.child.exit_report().last_lines[-1] == "ValueError: no good"


def test_the_end_of_the_work_is_the_end_of_the_process(echo: Echo) -> None:
    echo.told("end")
    assert echo.message() == Gone()
    assert echo.child.exit_report().phrase == "ended with exit code 0"


@on_linux
@pytest.mark.parametrize(
    ("number", "phrase"),
    [
        (signal.SIGKILL, "was killed, most likely because the memory was used up"),
        (signal.SIGSEGV, "crashed (SIGSEGV)"),
    ],
)
def test_a_signal_that_ends_it_is_reported(number: signal.Signals, phrase: str, echo: Echo) -> None:
    echo.told("echo", 1)
    assert echo.message() == 1
    os.kill(echo.child.process.pid, number)
    assert echo.message() == Gone()
    report = echo.child.exit_report()
    assert report.phrase == phrase
    assert report.killed == (number == signal.SIGKILL)


@on_linux
def test_a_child_that_does_not_read_holds_nobody_up(echo: Echo) -> None:
    echo.told("echo", 1)
    assert echo.message() == 1
    os.kill(echo.child.process.pid, signal.SIGSTOP)
    echo.told("echo", os.urandom(1 << 24))
    echo.child.close()
    assert ends(echo.child.process.pid)
    assert threading.active_count() < 20


@on_linux
def test_what_it_has_started_ends_with_it(echo: Echo) -> None:
    echo.told("start")
    _, grandchild = echo.message()
    assert running(grandchild)
    echo.child.close()
    assert ends(grandchild)


@on_linux
def test_it_ends_with_its_parent_however_that_ends() -> None:
    code = (
        "import queue, time; from placedsl.processes.child import Child\n"
        "inbox = queue.SimpleQueue()\n"
        f"child = Child('{MODULE}', inbox.put)\n"
        "child.send(('start', None))\n"
        "print(*inbox.get(), flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=child_environment())
    assert parent.stdout is not None
    processes = [int(word) for word in parent.stdout.readline().split()]
    assert len(processes) == 2
    assert all(running(process) for process in processes)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert all(ends(process) for process in processes)


@on_linux
def test_an_interrupt_of_the_terminal_does_not_reach_it(echo: Echo) -> None:
    echo.told("echo", 1)
    assert echo.message() == 1
    assert os.getpgid(echo.child.process.pid) != os.getpgid(0)
    os.kill(echo.child.process.pid, signal.SIGINT)
    echo.told("echo", 2)
    assert echo.message() == 2
