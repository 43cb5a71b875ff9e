"""``placedsl timeline``: the pipeline that a placement makes, sample by sample."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from placedsl.commands.options import DATA, METHOD, SET, SOLVER, SPEC, Quantity, console, write
from placedsl.diagnostics import Diagnostic, InputError, UsageError

if TYPE_CHECKING:
    from placedsl.api import Spec


@click.command()
@SPEC
@click.option("--samples", type=click.IntRange(min=1), default=100, show_default=True, help="How many are run.")
@click.option("--schedule", metavar="NAME", help="pipelined, 1f1b, 1f1b-eager, gpipe; without: as the spec says.")
@click.option("--microbatches", type=click.IntRange(min=1), metavar="N", help="Samples in a batch (gpipe).")
@click.option("--answer", type=click.Path(path_type=Path), metavar="FILE", help="The placement (JSON); without: solve.")
@click.option("--to", "chart", type=click.Path(path_type=Path), metavar="FILE", help="Draw it (svg, png, pdf, html).")
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE", help="Write a trace for Perfetto (JSON).")
@SOLVER
@METHOD
@click.option("--time-limit", type=Quantity("time", "60s or '10 min'"), help="For solving, as in 60s or '10 min'.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of whatever is random in solving.")
@click.option("--quiet", is_flag=True, help="No progress.")
@SET
@DATA
def timeline(
    spec: Path,
    samples: int,
    schedule: str | None,
    microbatches: int | None,
    answer: Path | None,
    chart: Path | None,
    trace: Path | None,
    quiet: bool,
    parameters: dict[str, str],
    data: Path | None,
    **wanted: Any,
) -> int:
    """Simulate the pipeline that a placement for SPEC makes, and measure it."""
    from placedsl import api
    from placedsl.report import gantt
    from placedsl.report.progress import ProgressLine
    from placedsl.report.summary import print_answer
    from placedsl.report.timeline_text import print_timeline
    from placedsl.report.trace import trace as traced
    from placedsl.timeline.timeline import asked, simulate

    if chart is not None:
        gantt.check(chart)
    if trace is not None and (not trace.parent.is_dir() or trace.is_dir()):
        raise UsageError(f"--trace {trace}: this is a folder, or its folder does not exist")
    loaded = api.load(spec, parameters, data)
    chosen = asked(loaded.problem, samples, schedule, microbatches)
    code = 0
    if answer is not None:
        placement = _held(loaded, answer)
    else:
        with ProgressLine(loaded.problem.objectives[0], quiet) as line:
            found = loaded.solve(progress=line.update, **wanted)
        code = found.exit_code
        if found.placement is None:
            print_answer(found, console())
            return code
        placement = list(found.placement)
    run = simulate(loaded.problem, placement, samples=samples, schedule=chosen, microbatches=microbatches)
    print_timeline(run, console())
    if chart is not None:
        gantt.draw(run, chart)
    if trace is not None:
        write(trace, traced(run))
    return code


def _held(loaded: Spec, answer: Path) -> list[int]:
    """The placement of an answer; InputError with every rule of the spec that it breaks."""
    from placedsl import placement as placements
    from placedsl.cost.evaluate import evaluate
    from placedsl.graph.readers import load

    source = load(answer)
    placement = placements.read(loaded.problem, source)
    violations = evaluate(loaded.problem, placement, placements.read_values(loaded.problem, source)).violations
    if violations:
        told = (Diagnostic(f"{answer} does not fit: {v.rule}: {v.message}", v.span) for v in violations[:20])
        raise InputError(told)
    return placement
