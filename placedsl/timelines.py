"""Timelines as the Python face gives them: as text, as data, as pictures and traces."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placedsl.diagnostics import Diagnostic, InputError, UsageError
from placedsl.problem import Problem
from placedsl.timeline import sample, timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.text import Text

    from placedsl.cost.evaluate import Evaluation


@dataclass(frozen=True, repr=False, eq=False)
class Timeline(timeline.Timeline):
    """A timeline that can be shown, drawn and written as a trace."""

    def show(self, console: Console) -> None:
        """Print what ``placedsl timeline`` prints."""
        from placedsl.report.timeline_text import print_timeline

        print_timeline(self, console)

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

        return printed(self.show)

    def _repr_html_(self) -> str:
        from importlib.util import find_spec

        from placedsl.report.gantt import element

        return element(self, drawn=find_spec("matplotlib") is not None)


@dataclass(frozen=True, repr=False, eq=False)
class SampleTimeline(sample.SampleTimeline):
    """The timeline of one sample, which can be shown, drawn and written as a trace."""

    def show(self, console: Console) -> None:
        """Print what ``placedsl timeline`` prints."""
        from placedsl.report.latency_text import print_sample

        print_sample(self, console)

    def draw(self, path: str | Path) -> None:
        """Write it as a Gantt chart; the ending of the file's name (svg, png, pdf) says which kind."""
        from placedsl.report.latency_gantt import draw

        draw(self, Path(path))

    def trace(self) -> str:
        """The trace in Chrome's trace event format, a JSON text that Perfetto reads."""
        from placedsl.report.latency_trace import sample_trace

        return sample_trace(self)

    def __repr__(self) -> str:
        from placedsl.report.latency_text import measures

        return f"<SampleTimeline {'; '.join(line.strip() for line in measures(self))}>"

    def document(self) -> dict[str, Any]:
        """Latency, critical path, rows and tasks as plain data: what ``placedsl timeline --json`` writes."""
        from placedsl.report.latency_document import sample_document

        return sample_document(self)

    def __rich__(self) -> Text:
        from placedsl.report.summary import printed

        return printed(self.show)

    def _repr_html_(self) -> str:
        from importlib.util import find_spec

        from placedsl.report.latency_gantt import element

        return element(self, drawn=find_spec("matplotlib") is not None)


def shown_sample(problem: Problem, placement: Sequence[int], evaluation: Evaluation) -> SampleTimeline:
    """The timeline of one sample, able to show itself; InputError where the evaluation found no run."""
    if evaluation.times is None:
        raise InputError(Diagnostic(f"there is no run: {v.rule}: {v.message}", v.span) for v in evaluation.violations)
    found = sample.timeline_of(problem, placement, evaluation.times, evaluation.values.get("piece", {}))
    return SampleTimeline(**{f.name: getattr(found, f.name) for f in fields(found)})


def refuse_for_samples(problem: Problem, **asked: object) -> None:
    """UsageError where something is asked of the run of one sample that is about many."""
    for name, value in asked.items():
        if value is not None:
            raise UsageError(f"'{name}' is for many samples; schedule {problem.schedule} is how one sample runs")


def shown_timeline(
    problem: Problem, placement: Sequence[int], samples: int | None, schedule: str | None, microbatches: int | None
) -> Timeline:
    """The timeline of a placement, able to show itself; ``samples``: None for :data:`timeline.SAMPLES`."""
    number = timeline.SAMPLES if samples is None else samples
    found = timeline.simulate(problem, placement, samples=number, schedule=schedule, microbatches=microbatches)
    return Timeline(**{f.name: getattr(found, f.name) for f in fields(found)})
