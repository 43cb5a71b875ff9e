"""Progress on stderr: best value, bound, gap, seconds; on a terminal a line that renews itself, else one a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from placedsl.planner.answer import gap
from placedsl.problem.problem import Objective
from placedsl.report.text.summary import amount

if TYPE_CHECKING:
    from rich.live import Live


class ProgressLine:
    """Use as a context; the planner calls :meth:`update`.  Nothing is left of a line on a terminal at the end."""

    def __init__(self, objective: Objective, quiet: bool) -> None:
        self.objective, self.quiet = objective, quiet
        self.live: Live | None = None
        self.shown = -1.0
        self.last = self.waiting = ""
        self.found = False

    def __enter__(self) -> ProgressLine:
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, highlight=False)
            self.live = Live(
                console=console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()
        elif not self.quiet:
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
        if self.live is not None:
            self.last = line
            self._renew(f"{line}  {seconds:.1f} s")
            return
        first, self.found = not self.found and abs(value) < float("inf"), self.found or abs(value) < float("inf")
        if now - self.shown < 1.0 and not first:
            self.waiting = f"{line}  {seconds:.1f} s\n"
            return
        self.last, self.shown, self.waiting = line, now, ""
        sys.stderr.write(f"{line}  {seconds:.1f} s\n")
        sys.stderr.flush()

    def _renew(self, line: str) -> None:
        """Put a line in the place of the one before."""
        from rich.text import Text

        assert self.live is not None
        if not self.live.is_started:
            self.live.start()
        self.live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)
