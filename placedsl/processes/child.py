"""The parent's side of a child process.

The child is a module of placedsl run by ``python -m``, whose ``main`` calls :func:`placedsl.processes.worker.serve`.
It lives in a session and process group of its own: Ctrl-C in the terminal does not reach it, and :meth:`Child.kill`
ends what it has started as well.  It ends by itself when its standard input is closed, which also happens when the
parent is killed.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from placedsl.processes.channel import Gone, receive, send
from placedsl.system.installation import import_root

#: Seconds to wait for the exit code of a child whose pipe is closed.
_EXIT_GRACE_S = 2.0
#: Seconds to wait for a reading or writing thread of a child that has been killed.
_THREAD_GRACE_S = 5.0
#: Bytes at the end of the child's standard error that are kept for a report.
_TAIL_BYTES = 2000


@dataclass(frozen=True)
class ExitReport:
    """How a child ended without a result: a phrase that continues "the process …", and its last lines of stderr."""

    phrase: str
    killed: bool
    last_lines: tuple[str, ...]


class _End:
    """In place of a message to send: there are no more."""


class Child:
    """A running child process.

    Messages from the child are passed to ``deliver`` in a thread of their own, in order, and :class:`Gone` after the
    last one.  ``keep_stderr``: keep the end of its standard error for :meth:`exit_report`; it is discarded otherwise.
    """

    def __init__(self, module: str, deliver: Callable[[object], None], *, keep_stderr: bool = False) -> None:
        self._deliver = deliver
        self._stderr: IO[bytes] | None = None
        if keep_stderr:
            with contextlib.suppress(OSError):  # where no temporary file can be had, its last lines are not told
                self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed together with the process
        # Whatever this process can import, the child must: a plug-in may lie anywhere on the search path.
        path = os.pathsep.join(dict.fromkeys((import_root(), *filter(None, sys.path))))
        self.process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._stderr or subprocess.DEVNULL, start_new_session=True, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._requests, self._answers = self.process.stdin, self.process.stdout
        self._outbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._write, self._read)]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self.process.poll() is None

    def send(self, message: object) -> None:
        """Send a message.  Returns at once: a child that does not read holds up a thread and not the caller."""
        self._outbox.put(message)

    def kill(self) -> None:
        """End the process at once, with everything it has started.  Its last messages are still delivered."""
        if not self.alive:
            return
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()

    def close(self) -> None:
        """Kill the process, wait until its messages are delivered, and release its pipes."""
        self.kill()
        self.process.wait()
        self._outbox.put(_End())
        for thread in self._threads:
            thread.join(_THREAD_GRACE_S)
        for stream in (self._requests, self._answers, self._stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def exit_report(self) -> ExitReport:
        """How the process ended, for a child whose pipe was closed unexpectedly."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_EXIT_GRACE_S)
        code = self.process.poll()
        killed = os.name == "posix" and code == -signal.SIGKILL
        if code is None:
            phrase = "stopped answering"
        elif killed:
            phrase = "was killed, most likely because the memory was used up"
        elif code < 0:
            phrase = f"crashed ({signal.Signals(-code).name})"
        else:
            phrase = f"ended with exit code {code}"
        return ExitReport(phrase, killed, self._last_lines())

    def _last_lines(self) -> tuple[str, ...]:
        if self._stderr is None:
            return ()
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - _TAIL_BYTES))
        return tuple(self._stderr.read().decode("utf-8", "replace").strip().splitlines())

    def _write(self) -> None:
        # A child that has gone is noticed by the reading thread.
        with contextlib.suppress(OSError, ValueError):
            while not isinstance(message := self._outbox.get(), _End):
                send(self._requests, message)

    def _read(self) -> None:
        try:
            while True:
                self._deliver(receive(self._answers))
        except (EOFError, OSError, ValueError):
            self._deliver(Gone())
