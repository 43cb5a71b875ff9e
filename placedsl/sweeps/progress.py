"""How far a sweep is, on stderr: a bar on a terminal, else a line for what has ended, at most one a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from placedsl.sweeps.table import Row, amount


class ProgressBar:
    """Use as a context; a :class:`placedsl.sweeps.engine.Listener`."""

    def __init__(self, quiet: bool, product: str = "") -> None:
        self.quiet, self.product = quiet, product
        self.done = self.failed = self.total = self.size = 0
        self.best: dict[str, Row] = {}
        self.last_shown = -1.0
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def begins(self, rows: Sequence[Row], left: int, size: int) -> None:
        """Say how many runs there are, and begin to count."""
        self.total, self.done, self.size = len(rows) + left, len(rows), size
        for row in rows:
            self._better(row)
        if self.quiet:
            return
        by = f" ({self.product})" if self.product else ""
        there = f", {len(rows)} of them there already" if rows else ""
        at_once = f", {min(size, left)} at a time" if left else ""
        runs = f"{self.total:,} run" + ("" if self.total == 1 else "s")
        sys.stderr.write(f"{runs}{by}{there}{at_once}\n")
        sys.stderr.flush()
        if left and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (BarColumn(30), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task(self._state(None), total=self.total, completed=self.done)
            self.bar.start()

    def ended(self, row: Row) -> None:
        """Count a run that has ended."""
        self.done += 1
        self.failed += row.failed
        self._better(row)
        if self.bar is not None:
            self.bar.update(self.task, completed=self.done, description=self._state(row))
        now = time.monotonic()
        if self.quiet or self.bar is not None or (now - self.last_shown < 1.0 and self.done < self.total):
            return
        self.last_shown = now
        sys.stderr.write(f"{self._state(row)}\n")
        sys.stderr.flush()

    def _better(self, row: Row) -> None:
        best = self.best.get(row.run.spec)
        if row.value is not None and (best is None or best.value is None or row.value < best.value):
            self.best[row.run.spec] = row

    def _state(self, row: Row | None) -> str:
        """Done, running, failed, and the best value so far of the spec of the run that has ended."""
        parts = [f"{self.done} of {self.total} done", f"{min(self.size, self.total - self.done)} running"]
        parts += [f"{self.failed} failed"] if self.failed else []
        best = None if row is None else self.best.get(row.run.spec)
        if best is not None:
            parts.append(f"best so far {amount(best.value, best.unit)} ({best.run.words()})")
        return ", ".join(parts)
