"""``placedsl report``: an answer as an HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from placedsl.cli.options import DATA, SET, write
from placedsl.diagnostics import UsageError
from placedsl.system import paths


@click.command()
@click.argument("answer", type=click.Path(path_type=Path))
@click.option("--html", "page", type=click.Path(path_type=Path), metavar="FILE", required=True, help="The page.")
@click.option("--spec", type=click.Path(path_type=Path), metavar="SPEC", help="The spec: its text and a timeline.")
@SET
@DATA
def report(answer: Path, page: Path, spec: Path | None, parameters: dict[str, str], data: Path | None) -> int:
    """Write ANSWER, a file from solve --json, as one HTML page that needs no network."""
    from placedsl.api import spec as api
    from placedsl.api.pages import document_page
    from placedsl.cli.timing import held
    from placedsl.graph.readers import load
    from placedsl.report.json.answer_reading import read_answer
    from placedsl.report.text.heartbeat import Heartbeat

    refuse_place("--html", page)
    if spec is None and (parameters or data is not None):
        raise UsageError("--set and --data are for the spec: --spec SPEC")
    with Heartbeat(f"reading {answer}") as beat:
        told = read_answer(load(answer))
        loaded = placed = None
        if spec is not None:
            beat.doing(f"reading {spec}")
            loaded = api.load(spec, parameters, data)
            placed = held(loaded, answer) if told["placement"] is not None else None
        beat.doing(f"writing {page}")
        write(page, document_page(told, loaded, placed))
    return 0


def refuse_place(option: str, file: Path) -> None:
    """UsageError where a file cannot be written."""
    if not paths.is_folder(file.parent):
        raise UsageError(f"{option} {file}: there is no folder '{file.parent}'")
    if paths.is_folder(file):
        raise UsageError(f"{option} {file}: this is a folder")
