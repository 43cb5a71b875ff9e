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
        self.last = self.waiting = ""
        self.found = False

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.quiet:
            return
        if self.terminal:
            sys.stderr.write("\r\033[K" if self.last else "")
        else:
            sys.stderr.write(self.waiting)
        sys.stderr.flush()

    def update(self, value: float, bound: float, seconds: float) -> None:
        """Show the state; without a terminal at most one line a second, the first value at once."""
        if self.quiet:
            return
        now = time.monotonic()
        distance = gap(value, bound)
        shown = f"{distance:.2%}" if distance < float("inf") else "-"
        dimension = self.objective.dimension
        line = f"best {amount(value, dimension)}  bound {amount(bound, dimension)}  gap {shown}"
        if line == self.last:
            return
        first, self.found = not self.found and abs(value) < float("inf"), self.found or abs(value) < float("inf")
        if not self.terminal and now - self.shown < 1.0 and not first:
            self.waiting = f"{line}  {seconds:.1f} s\n"
            return
        self.last, self.shown, self.waiting = line, now, ""
        sys.stderr.write(f"\r\033[K{line}  {seconds:.1f} s" if self.terminal else f"{line}  {seconds:.1f} s\n")
        sys.stderr.flush()
