"""Certificates of bounds: ``placedsl verify``, which checks one without what found it, and writing one of an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from placedsl.cli.options import DATA, SET, write
from placedsl.diagnostics import Diagnostic, InputError, UsageError
from placedsl.system import files, interruption, paths

if TYPE_CHECKING:
    from placedsl.planner.answer import Answer


@click.command()
@click.argument("answer", type=click.Path(path_type=Path))
@click.argument("certificate", type=click.Path(path_type=Path))
@click.option("--spec", type=click.Path(path_type=Path), metavar="SPEC", help="Also check that it is of this spec.")
@SET
@DATA
def verify(answer: Path, certificate: Path, spec: Path | None, parameters: dict[str, str], data: Path | None) -> int:
    """Check ANSWER (of solve --json) and its CERTIFICATE (of solve --certificate), exactly."""
    from placedsl.certificates.checked import RefusedError, check

    documents = [_read(path) for path in (answer, certificate)]
    try:
        found = check(*documents)
    except RefusedError as problem:
        raise InputError([Diagnostic(f"{certificate}: refused: {problem}")]) from None
    if spec is not None:
        from placedsl.api.spec import load
        from placedsl.certificates.written import same_problem

        if not same_problem(documents[1], load(spec, parameters, data).problem):
            raise InputError([Diagnostic(f"{certificate}: refused: it is of another problem than {spec}")])
    bound, value = float(found.bound), None if found.value is None else float(found.value)
    if value is None:
        beside = "" if documents[0]["placement"] is None else "; what the placement takes is not recomputed"
        click.echo(f"verified: no placement takes less than {bound!r} s ({found.kind}, in fractions){beside}")
        return 0
    gap = 0.0 if value == 0.0 else max(0.0, (value - bound) / value)
    click.echo(
        f"verified: the placement takes {value!r} s, and none takes less than {bound!r} s "
        f"({found.kind}, in fractions); gap {gap:.2%}"
    )
    return 0


def _read(path: Path) -> dict[str, Any]:
    """A JSON object; InputError where the file is none."""
    from placedsl.graph.readers import load_graph

    try:
        found = json.loads(load_graph(path).text)
    except (ValueError, RecursionError) as problem:
        raise InputError([Diagnostic(f"{path}: this is no JSON: {problem}")]) from None
    if not isinstance(found, dict):
        raise InputError([Diagnostic(f"{path}: an object is expected")])
    return found


def remove_certificate(file: Path, *inputs: Path | None) -> None:
    """Remove a certificate of an earlier run, so that none is taken for one of this run; UsageError where the place is
    that of an input."""
    for given in inputs:
        if given is not None and paths.exists(file) and paths.exists(given) and file.samefile(given):
            raise UsageError(f"--certificate {file}: this is what is read")
    files.remove(file)


def write_certificate(answer: Answer, file: Path, quiet: bool) -> bool:
    """What proves the bound as JSON; a line on stderr where there is no such thing.  Whether it is written."""
    from placedsl.certificates.written import certificate
    from placedsl.report.text.heartbeat import Heartbeat

    reason, document = "the search for it was interrupted", None
    try:
        with interruption.abandonable(), Heartbeat("searching for a certificate", quiet=quiet):
            document = certificate(answer)
    except UsageError as problem:
        reason = str(problem)
    if document is None:
        click.echo(f"--certificate {file}: nothing is written: {reason}", err=True)
        return False
    write(file, json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")
    return True
