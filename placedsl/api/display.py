"""How results are shown: gives answers and evaluations the reports, which stand above them.  For timelines
:mod:`placedsl.api.timelines` does it.

Reports are imported when something is shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from placedsl.diagnostics import UsageError
from placedsl.evaluation.evaluation import Evaluation
from placedsl.planner.answer import Answer, AnswerRenderer
from placedsl.rendering import Renderer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from placedsl.simulation.pipeline_timeline import PipelineTimeline
    from placedsl.simulation.sample import SampleTimeline
    from placedsl.simulation.timeline import TimelineRenderer


class _Evaluations:
    def line(self, evaluation: Evaluation) -> str:
        from placedsl.report.text.summary import amount

        goals = zip(evaluation.problem.objectives, evaluation.objectives, strict=True)
        values = ", ".join(f"{goal.name} = {amount(value, goal.dimension)}" for goal, value in goals)
        violated = ", ".join(v.rule for v in evaluation.violations)
        return f"Evaluation {'violates ' + violated if violated else 'feasible'}: {values}"

    def text(self, evaluation: Evaluation) -> Text:
        from placedsl.report.text.summary import print_evaluation, printed

        return printed(lambda console: print_evaluation(evaluation.problem, evaluation, console))

    def html(self, evaluation: Evaluation) -> str:
        from placedsl.report.html.notebook import evaluation_html

        return evaluation_html(evaluation.problem, evaluation)


class _Answers:
    def line(self, answer: Answer) -> str:
        from placedsl.report.html.notebook import objective_lines

        by = ", ".join(filter(None, (answer.method, answer.solver)))
        return f"Answer {answer.termination} ({by}): {'; '.join(objective_lines(answer)) or answer.message}"

    def text(self, answer: Answer) -> Text:
        from placedsl.report.text.summary import print_answer, printed

        return printed(lambda console: print_answer(answer, console))

    def html(self, answer: Answer) -> str:
        from placedsl.report.html.notebook import answer_html

        return answer_html(answer)

    def files(self, answer: Answer, runtime: str) -> dict[str, str | bytes]:
        from placedsl.export.registry import files

        return files(answer.plan, runtime, model=answer.problem.graph.written.source)

    def timeline(
        self, answer: Answer, samples: int | None, schedule: str | None, microbatches: int | None
    ) -> PipelineTimeline | SampleTimeline:
        from placedsl.api.timelines import refuse_for_samples, shown_sample, shown_timeline

        if answer.placement is None or answer.evaluation is None:
            raise UsageError("there is no placement, and so no timeline")
        if answer.problem.execution.one_sample:
            refuse_for_samples(answer.problem, samples=samples, schedule=schedule, microbatches=microbatches)
            return shown_sample(answer.problem, answer.placement, answer.evaluation)
        return shown_timeline(answer.problem, answer.placement, answer.evaluation, samples, schedule, microbatches)


class _Timelines:
    def line(self, timeline: Any) -> str:
        from placedsl.report.text.timeline_text import measures

        return f"{timeline.title} {'; '.join(line.strip() for line in measures(timeline))}"

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
        from placedsl.report.html.notebook import timeline_html

        return timeline_html(timeline)


_evaluations: Renderer = _Evaluations()
_answers: AnswerRenderer = _Answers()
timelines: TimelineRenderer = _Timelines()
Evaluation.renderer, Answer.renderer = _evaluations, _answers
