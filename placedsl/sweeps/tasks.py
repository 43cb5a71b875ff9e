"""What a sweep and the processes that solve its runs say to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from placedsl.sweeps.jobs import Texts
from placedsl.sweeps.runs import Run

#: The exit code of a fault of our own, and of a process that died.
FAULT = 70


@dataclass(frozen=True, eq=False)
class Task:
    """A run to solve; ``workers`` are the threads that a solver may have where neither run nor spec says so."""

    run: Run
    texts: Texts
    workers: int


@dataclass(frozen=True, eq=False)
class Result:
    """How a run ended: the exit code that ``placedsl solve`` would have, the answer as JSON data or None, a message."""

    exit_code: int
    document: dict[str, Any] | None
    message: str = ""
