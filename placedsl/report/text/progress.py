"""Progress on stderr: best value, bound, gap, seconds; on a terminal a line that renews itself, else one a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from placedsl.planner.answer import gap
from placedsl.problem.problem import Objective
from placedsl.report.text.heartbeat import Ticker
from placedsl.report.text.summary import amount

if TYPE_CHECKING:
    from rich.live import Live


class ProgressLine:
    """Use as a context; the planner calls :meth:`update`.  Nothing is left of a line on a terminal at the end.

    On a terminal the seconds go on between two updates.
    """

    def __init__(self, objective: Objective, quiet: bool) -> None:
        self.objective, self.quiet = objective, quiet
        self.live: Live | None = None
        self.shown = -1.0
        self.last = self.waiting = ""
        self.found = False
        self.line, self.seconds, self.heard = "searching", 0.0, time.monotonic()
        self.ticker = Ticker(self._tick)

    def __enter__(self) -> ProgressLine:
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, highlight=False)
            self.live = Live(
                console=console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
            )
            self.ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ticker.stop()
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
            self.line, self.seconds, self.heard = line, seconds, now
            self._renew(f"{line}  {seconds:.1f} s")
            return
        first, self.found = not self.found and abs(value) < float("inf"), self.found or abs(value) < float("inf")
        if now - self.shown < 1.0 and not first:
            self.waiting = f"{line}  {seconds:.1f} s\n"
            return
        self.last, self.shown, self.waiting = line, now, ""
        sys.stderr.write(f"{line}  {seconds:.1f} s\n")
        sys.stderr.flush()

    def _tick(self) -> None:
        """Show the time that has passed since the last update."""
        seconds = self.seconds + time.monotonic() - self.heard
        self._renew(f"{self.line}  {seconds:.0f} s")

    def _renew(self, line: str) -> None:
        """Put a line in the place of the one before."""
        from rich.text import Text

        assert self.live is not None
        if not self.live.is_started:
            self.live.start()
        self.live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)
