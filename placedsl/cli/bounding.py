"""``placedsl bounds``: what each bound by name proves of a spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from placedsl.cli.options import DATA, SET, SPEC, Quantity, console, write
from placedsl.diagnostics import Diagnostic, InputError, PlacedslError
from placedsl.tolerances import SAME_VALUE

if TYPE_CHECKING:
    from placedsl.api.spec import Spec


@click.command()
@SPEC
@click.option("--only", multiple=True, metavar="NAME", help="Compute this bound; may be repeated (default: all).")
@click.option(
    "--time-limit", type=Quantity("time", "60s or '10 min'"), help="Stop each bound after this time (default: 60s)."
)
@click.option(
    "--answer", type=click.Path(path_type=Path), metavar="ANSWER", help="Compare with the placement in this answer."
)
@SET
@DATA
@click.option("--json", "json_file", metavar="FILE", help="Write the bounds as JSON to a file, or to stdout (-).")
@click.option("--quiet", is_flag=True, help="Print no progress.")
def bounds(
    spec: Path, only: tuple[str, ...], time_limit: float | None, answer: Path | None, parameters: dict[str, str],
    data: Path | None, json_file: str | None, quiet: bool,
) -> int:  # fmt: skip
    """Compute the lower bounds of SPEC's time per sample by name, one after the other."""
    from placedsl.api import spec as api
    from placedsl.report.text.heartbeat import Heartbeat
    from placedsl.system import interruption

    with Heartbeat(f"reading {spec}", quiet=quiet) as beat:
        loaded = api.load(spec, parameters, data)
        value = None if answer is None else _value(loaded, answer)
        with interruption.stoppable():
            found = loaded.bounds(only, time_limit=time_limit, value=value, progress=beat.doing)
    for one in found:
        if value is not None and one.value is not None and one.value > value * (1.0 + SAME_VALUE):
            raise PlacedslError(
                f"internal error: the bound {one.name}, {one.value!r}, exceeds the verified value {value!r}; "
                "please report this with the spec"
            )
    if json_file is not None:
        from placedsl.report.json.bounds_document import bounds_document

        text = json.dumps(bounds_document(found, value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        write(None if json_file == "-" else Path(json_file), text)
    if json_file != "-":
        from placedsl.report.text.bounds_table import print_bounds

        print_bounds(found, value, console())
    return 0


def _value(loaded: Spec, file: Path) -> float:
    """What the placement of an answer takes; InputError with every rule of the spec that it breaks."""
    from placedsl.evaluation.evaluate import evaluate
    from placedsl.graph.readers import load
    from placedsl.problem import placement_files as placements

    source = load(file)
    found = evaluate(
        loaded.problem, placements.read(loaded.problem, source), placements.read_values(loaded.problem, source)
    )
    if found.violations:
        told = (Diagnostic(f"{file} does not fit: {v.rule}: {v.message}", v.span) for v in found.violations[:20])
        raise InputError(told)
    return float(found.objectives[0])
