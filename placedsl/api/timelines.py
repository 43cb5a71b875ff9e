"""Timelines as the Python face gives them: as text, as data, as pictures and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placedsl.api.display import timelines
from placedsl.diagnostics import Diagnostic, InputError, UsageError
from placedsl.problem.plan import sharing
from placedsl.problem.problem import Problem
from placedsl.simulation.pipeline import simulate
from placedsl.simulation.pipeline_timeline import PipelineTimeline as Timeline
from placedsl.simulation.sample import SampleTimeline, timeline_of
from placedsl.simulation.timeline import Timeline as AnyTimeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placedsl.evaluation.evaluate import Evaluation

__all__ = ["SampleTimeline", "Timeline", "refuse_for_samples", "shown_sample", "shown_timeline"]

AnyTimeline.renderer = timelines


def shown_sample(problem: Problem, placement: Sequence[int], evaluation: Evaluation) -> SampleTimeline:
    """The timeline of one sample; InputError where the evaluation found no run."""
    if evaluation.times is None:
        raise InputError(Diagnostic(f"there is no run: {v.rule}: {v.message}", v.span) for v in evaluation.violations)
    return timeline_of(problem, placement, evaluation.times, evaluation.values.get("piece", {}))


def refuse_for_samples(problem: Problem, **asked: object) -> None:
    """UsageError where something is asked of the run of one sample that is about many."""
    for name, value in asked.items():
        if value is not None:
            raise UsageError(f"'{name}' is for many samples; schedule {problem.execution.name} is how one sample runs")


def shown_timeline(
    problem: Problem,
    placement: Sequence[int],
    evaluation: Evaluation | None,
    samples: int | None,
    schedule: str | None,
    microbatches: int | None,
) -> Timeline:
    """The timeline of a placement; ``evaluation`` says which devices share stages (None: none does), and what a plan
    decides beside the placement."""
    followers = {} if evaluation is None else sharing(problem, evaluation)
    decisions = None if evaluation is None else evaluation.values
    return simulate(
        problem, placement, samples=samples, schedule=schedule, microbatches=microbatches, followers=followers,
        decisions=decisions,
    )  # fmt: skip
