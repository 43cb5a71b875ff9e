"""How much of the cores a process asks for, beside others of the same solve."""

from __future__ import annotations

import os

#: As the operating system counts it: a tenth of what others have that want the same core.
_BEHIND = 10


def step_back() -> None:
    """Let others go first from now on, where the operating system knows such a thing."""
    if hasattr(os, "nice"):
        os.nice(_BEHIND)
