"""The model of a timeline: tasks on rows, and arrows between them, for runs of many samples and of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from placedsl.problem.problem import Problem
from placedsl.rendering import Rendered, Renderer

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Task:
    """A node, a call, a transfer, or a stage that works on a sample.

    ``kind``      ``"node"`` (``first``: the node, ``device``: where it runs), ``"call"`` (its number, its device),
                  ``"transfer"`` (the tensor, where it goes), ``"stage"`` (its position, its device); where transfers
                  are beside computation ``"receive"`` and ``"send"`` (as a stage); ``"weights"``: an exchange of them
    ``nodes``     what a call or stage computes; of a node itself alone; nothing of a transfer
    ``inputs``    tasks whose results it needs, by position
    ``rows``      the rows that it is on
    ``receive``, ``send``   how long a call or stage transfers in at its start, and out at its end
    ``sample``    of a stage: which sample it works on, from 1; else 0
    """

    kind: str
    first: int
    device: int
    start: float
    finish: float
    nodes: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    receive: float = 0.0
    send: float = 0.0
    sample: int = 0


@dataclass(frozen=True)
class Row:
    """A device, a port or a link, and its tasks by start; where it is ``exclusive`` no two of them overlap by rule."""

    kind: str
    name: str
    exclusive: bool
    tasks: tuple[int, ...]


class TimelineRenderer(Renderer, Protocol):
    """What reports make of timelines."""

    def show(self, timeline: Any, console: Console) -> None:
        """Print the measures and tables."""

    def document(self, timeline: Any) -> dict[str, Any]:
        """The measures as plain data."""

    def trace(self, timeline: Any) -> str:
        """The trace as a JSON text."""

    def draw(self, timeline: Any, path: Path) -> None:
        """Write a Gantt chart."""


class Timeline(Rendered[TimelineRenderer]):
    """Tasks on rows, and arrows between them.  Times are seconds, or in the graph's own unit.

    ``problem``   what was run
    ``tasks``     by position
    ``rows``      devices first, then the ports or links that carry something
    ``critical``  the positions of the tasks of a critical path, where the run has one
    """

    #: How it is called where it shows itself.
    title: ClassVar[str] = "Timeline"

    if TYPE_CHECKING:  # fields of one kind of run, made when they are asked for by the other

        @property
        def problem(self) -> Problem:
            """What was run."""

        @property
        def tasks(self) -> Sequence[Task]:
            """By position."""

        @property
        def rows(self) -> tuple[Row, ...]:
            """Devices first."""

        @property
        def critical(self) -> tuple[int, ...]:
            """Positions of the tasks of a critical path."""

    def arrows(self) -> Iterator[tuple[int, int]]:
        """Pairs of tasks: the second needs what the first makes or brings."""
        for k, task in enumerate(self.tasks):
            for of in task.inputs:
                yield of, k

    def lanes(self, row: int) -> list[list[int]]:
        """The tasks of a row on as few lanes as keep apart what overlaps."""
        out: list[list[int]] = []
        for k in self.rows[row].tasks:
            start = self.tasks[k].start
            lane = next((lane for lane in out if self.tasks[lane[-1]].finish <= start), None)
            if lane is None:
                out.append([k])
            else:
                lane.append(k)
        return out

    def show(self, console: Console) -> None:
        """Print what ``placedsl timeline`` prints."""
        self._rendered().show(self, console)

    def draw(self, path: str | Path) -> None:
        """Write it as a Gantt chart; the ending of the file's name (svg, png, pdf) says which kind."""
        self._rendered().draw(self, Path(path))

    def trace(self) -> str:
        """The trace in Chrome's trace event format, a JSON text that Perfetto reads."""
        return self._rendered().trace(self)

    def document(self) -> dict[str, Any]:
        """The measures and what they are of as plain data: what ``placedsl timeline --json`` writes."""
        return self._rendered().document(self)
