"""``placedsl timeline``: the pipeline that a placement makes, sample by sample, or the run of one sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from placedsl.cli.options import DATA, SET, SPEC, console, write
from placedsl.diagnostics import Diagnostic, InputError, UsageError
from placedsl.system import paths

if TYPE_CHECKING:
    from placedsl.api.spec import Spec
    from placedsl.api.timelines import SampleTimeline, Timeline
    from placedsl.evaluation.evaluate import Evaluation


@click.command()
@SPEC
@click.argument("placement", type=click.Path(path_type=Path))
@click.option("--samples", type=click.IntRange(min=1), metavar="N", help="Number of samples (default: 100).")
@click.option("--schedule", metavar="NAME", help="pipelined, 1f1b, 1f1b-eager, gpipe (default: from the spec).")
@click.option("--microbatches", type=click.IntRange(min=1), metavar="N", help="Samples per batch (gpipe).")
@SET
@DATA
@click.option("--json", "json_file", metavar="FILE", help="Write the measures as JSON to a file, or to stdout (-).")
@click.option("--picture", type=click.Path(path_type=Path), metavar="FILE", help="Draw the timeline (svg, png, pdf).")
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE", help="Write a trace for Perfetto (JSON).")
def timeline(
    spec: Path,
    placement: Path,
    samples: int | None,
    schedule: str | None,
    microbatches: int | None,
    parameters: dict[str, str],
    data: Path | None,
    json_file: str | None,
    picture: Path | None,
    trace: Path | None,
) -> int:
    """Simulate and measure PLACEMENT (JSON) under SPEC: a pipeline, or the run of one sample."""
    from placedsl.api import spec as api
    from placedsl.report.pictures import placement_picture as pictures
    from placedsl.report.text.heartbeat import Heartbeat

    target = None if json_file in (None, "-") else Path(str(json_file))
    if picture is not None:
        pictures.check(picture)
    for option, file in (("--json", target), ("--trace", trace), ("--picture", picture)):
        if file is not None and not paths.is_folder(file.parent):
            raise UsageError(f"{option} {file}: there is no folder '{file.parent}'")
        if file is not None and paths.is_folder(file):
            raise UsageError(f"{option} {file}: this is a folder")
    with Heartbeat(f"reading {spec}") as beat:
        loaded = api.load(spec, parameters, data)
        beat.doing(f"running {placement}")
        make = _of_one if loaded.problem.execution.one_sample else _of_many
        run = make(loaded, placement, samples, schedule, microbatches)
    if json_file != "-":
        run.show(console())
    if json_file is not None:
        text = json.dumps(run.document(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        write(target, text)
    with Heartbeat() as beat:
        if picture is not None:
            beat.doing(f"drawing {picture}")
            run.draw(picture)
        if trace is not None:
            beat.doing(f"writing {trace}")
            write(trace, run.trace())
    return 0


def _of_many(
    loaded: Spec, placement: Path, samples: int | None, schedule: str | None, microbatches: int | None
) -> Timeline:
    """Samples that follow one another."""
    from placedsl.api.timelines import shown_timeline
    from placedsl.simulation.pipeline import asked

    asked(loaded.problem, samples, schedule, microbatches)
    return shown_timeline(loaded.problem, *held(loaded, placement), samples, schedule, microbatches)


def _of_one(
    loaded: Spec, placement: Path, samples: int | None, schedule: str | None, microbatches: int | None
) -> SampleTimeline:
    """One sample."""
    from placedsl.api.timelines import refuse_for_samples, shown_sample

    asked = {"--samples": samples, "--schedule": schedule, "--microbatches": microbatches}
    refuse_for_samples(loaded.problem, **asked)
    return shown_sample(loaded.problem, *held(loaded, placement))


def held(loaded: Spec, file: Path) -> tuple[list[int], Evaluation]:
    """The placement in a file and what it costs; InputError with every rule of the spec that it breaks."""
    from placedsl.evaluation.evaluate import evaluate
    from placedsl.graph.readers import load
    from placedsl.problem import placement_files as placements

    source = load(file)
    places = placements.read(loaded.problem, source)
    own = placements.read_values(loaded.problem, source)
    found = evaluate(loaded.problem, places, own)
    if found.violations:
        told = (Diagnostic(f"{file} does not fit: {v.rule}: {v.message}", v.span) for v in found.violations[:20])
        raise InputError(told)
    return places, found
