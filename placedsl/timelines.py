"""Timelines as the Python face gives them: as text, as data, as pictures and traces."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placedsl.problem import Problem
from placedsl.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text


@dataclass(frozen=True, repr=False, eq=False)
class Timeline(timeline.Timeline):
    """A timeline that can be shown, drawn and written as a trace."""

    def draw(self, path: str | Path) -> None:
        """Write it as a Gantt chart; the ending of the file's name (svg, png, pdf) says which kind."""
        from placedsl.report.gantt import draw

        draw(self, Path(path))

    def trace(self) -> str:
        """The trace in Chrome's trace event format, a JSON text that Perfetto reads."""
        from placedsl.report.trace import trace

        return trace(self)

    def __repr__(self) -> str:
        from placedsl.report.timeline_text import measures

        return f"<Timeline {'; '.join(line.strip() for line in measures(self))}>"

    def document(self) -> dict[str, Any]:
        """The measures, devices and pieces as plain data: what ``placedsl timeline --json`` writes."""
        from placedsl.report.timeline_document import timeline_document

        return timeline_document(self)

    def __rich__(self) -> Text:
        from placedsl.report.summary import printed
        from placedsl.report.timeline_text import print_timeline

        return printed(lambda console: print_timeline(self, console))

    def _repr_html_(self) -> str:
        from importlib.util import find_spec

        from placedsl.report.gantt import element

        return element(self, drawn=find_spec("matplotlib") is not None)


def shown_timeline(
    problem: Problem, placement: Sequence[int], samples: int, schedule: str | None, microbatches: int | None
) -> Timeline:
    """The timeline of a placement, able to show itself."""
    found = timeline.simulate(problem, placement, samples=samples, schedule=schedule, microbatches=microbatches)
    return Timeline(**{f.name: getattr(found, f.name) for f in fields(found)})
