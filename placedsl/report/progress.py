"""Progress on stderr: best value, bound, gap, seconds; one line that renews itself on a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from placedsl.answer import gap
from placedsl.problem import Objective
from placedsl.report.summary import amount


class ProgressLine:
    """Use as a context; :meth:`update` is what the planner tells."""

    def __init__(self, objective: Objective, quiet: bool) -> None:
        self.objective, self.quiet = objective, quiet
        self.terminal = sys.stderr.isatty()
        self.shown = -1.0
        self.last = ""

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.last and self.terminal and not self.quiet:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def update(self, value: float, bound: float, seconds: float) -> None:
        """Show the state; without a terminal at most one line a second."""
        if self.quiet:
            return
        now = time.monotonic()
        distance = gap(value, bound)
        shown = f"{distance:.2%}" if distance < float("inf") else "-"
        dimension = self.objective.dimension
        line = f"best {amount(value, dimension)}  bound {amount(bound, dimension)}  gap {shown}"
        if line == self.last or (not self.terminal and now - self.shown < 1.0):
            return
        self.last, self.shown = line, now
        end = "" if self.terminal else "\n"
        start = "\r\033[K" if self.terminal else ""
        sys.stderr.write(f"{start}{line}  {seconds:.1f} s{end}")
        sys.stderr.flush()
