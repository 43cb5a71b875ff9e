"""What Ctrl-C (SIGINT) and SIGTERM do at each moment of a command.

==============  ====================================================================================================
moment          what a signal does
==============  ====================================================================================================
``"end"``       the process ends at once: one line, exit code 5.  Nothing has been found yet
``"stop"``      KeyboardInterrupt: the search ends with the best placement so far
``"finish"``    the first is put off to the end of this moment, the second ends the process
==============  ====================================================================================================

Where no command has called :func:`install`, as in a notebook, signals do what Python does with them.
"""

from __future__ import annotations

import _thread
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: The exit code of a command that is stopped before it has found anything.
EXIT_NOTHING = 5
#: Seconds after which a KeyboardInterrupt that nobody has caught is raised again: Python drops those raised within
#: a finaliser or a callback.
_AGAIN = 2.0


class Stopped(Exception):  # noqa: N818 - it is no error
    """A command was stopped before it had found anything."""


class _State:
    """The one state of the process."""

    def __init__(self) -> None:
        self.moment = "end"
        #: A signal whose KeyboardInterrupt nobody has caught yet, and one that was put off.
        self.pending = self.put_off = False
        self.repeated = False
        #: A line of a terminal that renews itself stands on stderr.
        self.line_is_open = False
        self.installed = False


_STATE = _State()


def install() -> None:
    """Take over SIGINT and SIGTERM, but for those that whoever started the process has it ignore."""
    _STATE.installed = True
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _arrived)


def installed() -> bool:
    """Whether this process is a command's own."""
    return _STATE.installed


def ignore() -> None:
    """From here on the process only ends: signals change nothing any more."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def pending() -> bool:
    """Whether a KeyboardInterrupt was raised that nobody has caught; libraries make other exceptions of one."""
    return _STATE.pending


def caught() -> None:
    """A KeyboardInterrupt was caught, or what a library has made of it."""
    _STATE.pending = False


def line_opens(is_open: bool) -> None:
    """Whether a line that renews itself stands on stderr from now on: the process does not end behind its text."""
    _STATE.line_is_open = is_open


def line_is_open() -> bool:
    """Whether one does."""
    return _STATE.line_is_open


@contextmanager
def stoppable() -> Iterator[None]:
    """A search: a signal raises KeyboardInterrupt.  Where it ends in order, output follows: ``"finish"``."""
    before, _STATE.moment = _STATE.moment, "stop"
    try:
        yield
        before = "finish"
    finally:
        _STATE.moment, _STATE.pending = before, False


@contextmanager
def abandonable() -> Iterator[None]:
    """A search that is left out of the output when a signal stops it."""
    before, _STATE.moment = _STATE.moment, "stop"
    try:
        yield
    except KeyboardInterrupt:
        caught()
    except Exception:
        if not pending():
            raise
    finally:
        _STATE.moment, _STATE.pending = before, False


@contextmanager
def finishing(*, forget: bool = False) -> Iterator[None]:
    """What is not left half done: the first signal has its effect afterwards, or none (``forget``)."""
    before, _STATE.moment = _STATE.moment, "finish"
    try:
        yield
    finally:
        _STATE.moment = before
        if _STATE.put_off and before != "finish":
            _STATE.put_off = False
            if not forget:
                _act()


def _arrived(_number: int, _frame: FrameType | None) -> None:
    if _STATE.repeated:
        _STATE.repeated = False
        if not _STATE.pending or _STATE.moment != "stop":
            return
    _act()


def _act() -> None:
    if _STATE.moment == "finish" and not _STATE.put_off:
        _STATE.put_off = True
    elif _STATE.moment == "stop":
        _STATE.pending = True
        _repeat_later()
        raise KeyboardInterrupt
    else:
        end()


def end() -> None:
    """End the process with one line on stderr.  Its child processes end with it."""
    try:
        os.write(2, b"\r\x1b[Kstopped\n" if _STATE.line_is_open else b"stopped\n")
    except OSError:  # stderr is closed or full, and there is nowhere else to say so
        os._exit(EXIT_NOTHING)
    os._exit(EXIT_NOTHING)


def _repeat_later() -> None:
    def repeat() -> None:
        time.sleep(_AGAIN)
        if _STATE.pending:
            _STATE.repeated = True
            _thread.interrupt_main(signal.SIGINT)

    try:
        _thread.start_new_thread(repeat, ())
    except RuntimeError:  # no thread can be had: the user can press Ctrl-C again
        return
