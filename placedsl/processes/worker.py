"""The child's side of a child process: the channel to the parent, and how the process ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

from placedsl.processes.channel import Failure, receive, send


class ParentChannel:
    """Messages to and from the parent; sending is safe from several threads."""

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests, self._answers = requests, answers
        self._lock = threading.Lock()

    def send(self, message: object) -> None:
        """Send a message; BrokenPipeError when the parent has gone."""
        with self._lock:
            send(self._answers, message)

    def receive(self) -> Any:
        """Wait for a message; EOFError when the parent has gone.  Not to be used after :meth:`listen`."""
        return receive(self._requests)

    def listen(self, take: Callable[[Any], None]) -> None:
        """Pass further messages to ``take``, in a thread of their own, and end this process when the parent has gone.

        The parent's end of the pipe closes however the parent ends, so that nothing survives a parent that is killed.
        """
        threading.Thread(target=self._listen, args=(take,), daemon=True).start()

    def _listen(self, take: Callable[[Any], None]) -> None:
        try:
            while True:
                take(self.receive())
        except (EOFError, OSError, ValueError):
            leave()


def serve(work: Callable[[ParentChannel], None]) -> int:
    """Do the work of this process and exit; an exception is sent to the parent as a :class:`Failure` and raised.

    Standard output goes to standard error, and standard input is empty, since both pipes belong to the channel: neither
    a library nor a program that it starts may write to the one or read from the other.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    channel = ParentChannel(requests, answers)
    try:
        work(channel)
    except (BrokenPipeError, EOFError):
        return 1
    except Exception as problem:
        # The parent reports it to the user; the traceback goes to stderr, of which the parent may keep the end.
        channel.send(Failure(f"{type(problem).__name__}: {problem}"))
        raise
    finally:
        sys.stderr.flush()
    # Without the interpreter's shutdown: solver libraries have been seen to crash there.
    os._exit(0)


def leave() -> None:
    """End this process and the programs it has started."""
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)
