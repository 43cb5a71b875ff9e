"""Answers as HTML pages: what the documents of an answer and its spec say, gathered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from placedsl.api.timelines import shown_sample, shown_timeline
from placedsl.export.texts import Texts, texts
from placedsl.problem.plan_document import plan_from_document
from placedsl.problem.problem import Problem
from placedsl.report.html.page import Beside, page
from placedsl.report.html.timeline_chart import timeline_chart
from placedsl.report.json.answer_document import document

if TYPE_CHECKING:
    from placedsl.api.spec import Spec
    from placedsl.diagnosis.infeasibility.conflict import Conflict
    from placedsl.diagnosis.sensitivity.report import Why
    from placedsl.evaluation.evaluation import Evaluation
    from placedsl.planner.answer import Answer


def answer_page(spec: Spec, answer: Answer, conflict: Conflict | None = None, why: Why | None = None) -> str:
    """The page of an answer that has just been found, with its conflict and reasons where they were looked for."""
    told = document(answer, conflict, why)
    placed = None
    if answer.placement is not None and answer.evaluation is not None:
        placed = (answer.placement, answer.evaluation)
    return document_page(told, spec, placed)


def document_page(
    told: Mapping[str, Any], spec: Spec | None = None, placed: tuple[Sequence[int], Evaluation] | None = None
) -> str:
    """The page of an answer's document; with the spec its text, with its placement a timeline too."""
    made = Texts() if told["plan"] is None else texts(plan_from_document(told["plan"]))
    beside = Beside(exports=made.files, refused=made.refused, of_model=made.of_model)
    if spec is None:
        return page(told, beside)
    chart, measures = None, list[str]()
    if placed is not None:
        from placedsl.report.text.timeline_text import measures as measured

        run = _run(spec.problem, *placed)
        chart, measures = timeline_chart(run), measured(run)
    source = spec.elaborated.module.source
    return page(told, replace(beside, spec=source, places=_places(spec), timeline=chart, measures=measures))


def _run(problem: Problem, placement: Sequence[int], evaluation: Evaluation) -> Any:
    if problem.execution.one_sample:
        return shown_sample(problem, placement, evaluation)
    return shown_timeline(problem, placement, evaluation, None, None, None)


def _places(spec: Spec) -> dict[str, int]:
    """The lines of objectives and constraints that stand in the spec itself, and not in what it imports."""
    problem, source = spec.problem, spec.elaborated.module.source
    places = [(goal.name, goal.span) for goal in problem.objectives]
    places += [(rule.name, rule.span) for rule in problem.soft_constraints]
    places += [(rule.name, rule.span) for rule in problem.constraints]
    return {name: span.line for name, span in places if span.source == source}
