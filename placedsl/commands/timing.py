"""``placedsl timeline``: the pipeline that a placement makes, sample by sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from placedsl.commands.options import DATA, SET, SPEC, console, write
from placedsl.diagnostics import Diagnostic, InputError, UsageError

if TYPE_CHECKING:
    from placedsl.api import Spec


@click.command()
@SPEC
@click.argument("placement", type=click.Path(path_type=Path))
@click.option("--samples", type=click.IntRange(min=1), default=100, show_default=True, help="How many are run.")
@click.option("--schedule", metavar="NAME", help="pipelined, 1f1b, 1f1b-eager, gpipe; without: as the spec says.")
@click.option("--microbatches", type=click.IntRange(min=1), metavar="N", help="Samples in a batch (gpipe).")
@SET
@DATA
@click.option("--json", "json_file", metavar="FILE", help="Write the measures as JSON to a file, or to stdout (-).")
@click.option("--picture", type=click.Path(path_type=Path), metavar="FILE", help="Draw it (svg, png, pdf).")
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE", help="Write a trace for Perfetto (JSON).")
def timeline(
    spec: Path,
    placement: Path,
    samples: int,
    schedule: str | None,
    microbatches: int | None,
    parameters: dict[str, str],
    data: Path | None,
    json_file: str | None,
    picture: Path | None,
    trace: Path | None,
) -> int:
    """Simulate the pipeline that PLACEMENT (JSON) makes under SPEC, and measure it."""
    from placedsl import api
    from placedsl.report import gantt
    from placedsl.report import picture as pictures
    from placedsl.report.timeline_document import timeline_document
    from placedsl.report.timeline_text import print_timeline
    from placedsl.report.trace import trace as traced
    from placedsl.timeline.timeline import asked, simulate

    target = None if json_file in (None, "-") else Path(str(json_file))
    if picture is not None:
        pictures.check(picture)
    for option, file in (("--json", target), ("--trace", trace), ("--picture", picture)):
        if file is not None and not file.parent.is_dir():
            raise UsageError(f"{option} {file}: there is no folder '{file.parent}'")
        if file is not None and file.is_dir():
            raise UsageError(f"{option} {file}: this is a folder")
    loaded = api.load(spec, parameters, data)
    asked(loaded.problem, samples, schedule, microbatches)
    places = _held(loaded, placement)
    run = simulate(loaded.problem, places, samples=samples, schedule=schedule, microbatches=microbatches)
    if json_file != "-":
        print_timeline(run, console())
    if json_file is not None:
        text = json.dumps(timeline_document(run), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        write(target, text)
    if picture is not None:
        gantt.draw(run, picture)
    if trace is not None:
        write(trace, traced(run))
    return 0


def _held(loaded: Spec, file: Path) -> list[int]:
    """The placement in a file; InputError with every rule of the spec that it breaks."""
    from placedsl import placement as placements
    from placedsl.cost.evaluate import evaluate
    from placedsl.graph.readers import load

    source = load(file)
    places = placements.read(loaded.problem, source)
    own = placements.read_values(loaded.problem, source)
    violations = evaluate(loaded.problem, places, own).violations
    if violations:
        told = (Diagnostic(f"{file} does not fit: {v.rule}: {v.message}", v.span) for v in violations[:20])
        raise InputError(told)
    return places
