"""The process of one member, ``python -m placedsl.portfolio.worker``: :mod:`placedsl.portfolio.portfolio` starts it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import IO

import numpy as np

from placedsl.cost.expressions import OwnValues
from placedsl.graph.graph import Integers
from placedsl.solvers.messages import receive, send
from placedsl.solvers.worker import leave


def main() -> int:
    """Read what to do, do it, and say what comes of it; whatever is printed goes to stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    work, arguments = receive(requests)
    link = _Link(answers)
    threading.Thread(target=link.hear, args=(requests,), daemon=True).start()
    try:
        work(link, *arguments)
        send(answers, ("done",))
    except BrokenPipeError:
        return 1
    except Exception as problem:
        send(answers, ("failed", f"{type(problem).__name__}: {problem}"))
        raise
    finally:
        sys.stderr.flush()
    # Without the interpreter's shutdown: solver libraries have been seen to crash there.
    os._exit(0)


class _Link:
    """See :class:`placedsl.portfolio.portfolio.Link`."""

    def __init__(self, answers: IO[bytes]) -> None:
        self.answers = answers
        self.best = np.inf

    def say(self, placement: Integers | None, bound: float, values: OwnValues | None = None) -> None:
        send(self.answers, ("news", placement, bound, values))

    def hear(self, requests: IO[bytes]) -> None:
        """Until the parent's end of the pipe closes, which it does when the parent goes, however it goes."""
        try:
            while True:
                self.best = receive(requests)
        except (EOFError, OSError):
            leave()


if __name__ == "__main__":
    sys.exit(main())
