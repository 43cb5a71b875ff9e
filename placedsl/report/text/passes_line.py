"""Progress of a measurement on stderr: on a terminal a bar that is gone at the end, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from placedsl.report.text.heartbeat import LATER
from placedsl.system import interruption

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class PassesLine:
    """Use as a context; :meth:`update` says how many of how many are done, of what :attr:`text` names."""

    def __init__(self, text: str, *, quiet: bool = False) -> None:
        self.text, self.quiet = text, quiet
        self.bar: Progress | None = None
        self.task: TaskID | None = None
        self.began = time.monotonic()
        self.next = LATER

    def __enter__(self) -> PassesLine:
        self.began = time.monotonic()
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self.bar = Progress(
                TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
                TimeRemainingColumn(), console=Console(stderr=True, highlight=False), transient=True,
                redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self.task = self.bar.add_task(self.text, total=None)
            self.bar.start()
            interruption.line_opens(True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
            interruption.line_opens(False)

    def update(self, done: int, total: int) -> None:
        """So many of so many are done."""
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=done, total=total)
            return
        seconds = time.monotonic() - self.began
        if not self.quiet and seconds >= self.next:
            self.next = 2 * seconds
            sys.stderr.write(f"{self.text}  {done} of {total}  {seconds:.0f} s\n")
            sys.stderr.flush()
