"""The process of one member, ``python -m placedsl.portfolio.worker``: :mod:`placedsl.portfolio.portfolio` starts it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import IO

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
    threading.Thread(target=_leave_with_parent, args=(requests,), daemon=True).start()

    def say(placement: Integers | None, bound: float) -> None:
        send(answers, ("news", placement, bound))

    try:
        work(say, *arguments)
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


def _leave_with_parent(requests: IO[bytes]) -> None:
    """The parent's end of the pipe closes when it goes, however it goes."""
    requests.read(1)
    leave()


if __name__ == "__main__":
    sys.exit(main())
