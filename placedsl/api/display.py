"""How timelines are shown: connects the classes of the simulation with the reports, which stand above them.

Reports are imported when something is shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from placedsl.simulation.timeline import Timeline

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


class _Timelines:
    """A :class:`placedsl.simulation.timeline.Renderer`."""

    def measures(self, timeline: Any) -> list[str]:
        from placedsl.report.text.timeline_text import measures

        return measures(timeline)

    def show(self, timeline: Any, console: Console) -> None:
        from placedsl.report.text.timeline_text import print_timeline

        print_timeline(timeline, console)

    def text(self, timeline: Any) -> Text:
        from placedsl.report.text.summary import printed

        return printed(lambda console: self.show(timeline, console))

    def document(self, timeline: Any) -> dict[str, Any]:
        from placedsl.report.json.timeline_document import timeline_document

        return timeline_document(timeline)

    def trace(self, timeline: Any) -> str:
        from placedsl.report.traces.trace import trace

        return trace(timeline)

    def draw(self, timeline: Any, path: Path) -> None:
        from placedsl.report.pictures.gantt import draw

        draw(timeline, path)

    def html(self, timeline: Any) -> str:
        from importlib.util import find_spec

        from placedsl.report.pictures.gantt import element

        return element(timeline, drawn=find_spec("matplotlib") is not None)


Timeline.renderer = _Timelines()
