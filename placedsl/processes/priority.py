"""How much of the cores a process asks for, beside others of the same solve."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

#: As the operating system counts it: a tenth of what others have that want the same core.
_BEHIND = 10
#: Linux shares the cores out among sessions first, and each process of a solve has its own.
_SESSION = Path("/proc/self/autogroup")


def step_back() -> None:
    """Let others go first from now on, where the operating system knows such a thing.

    A session is asked to only by the process that leads it: any other one may stand in a user's terminal.
    """
    if not hasattr(os, "nice"):
        return
    os.nice(_BEHIND)
    with contextlib.suppress(OSError):  # there is no such thing here, or it is not for this process to say
        if os.getsid(0) == os.getpid() and _SESSION.exists():
            _SESSION.write_text(f"{_BEHIND}\n", encoding="ascii")
