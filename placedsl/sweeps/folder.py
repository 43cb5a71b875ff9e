"""The folder of a sweep: a JSON document a run, named by its key, and the list of what was asked for last.

Every file is written beside its place and then renamed, so that a kill never leaves half of one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from placedsl.diagnostics import UsageError
from placedsl.report.json.answer_document import SCHEMA
from placedsl.sweeps.jobs import Job
from placedsl.sweeps.runs import Run
from placedsl.sweeps.tasks import Result
from placedsl.system import files

#: The list of the runs that were asked for last, and their table.
LIST, TABLE = "sweep.json", "table.csv"
#: Terminations of answers that are tried again.
_NOT_FINISHED = ("error", "interrupted")


def ready(folder: Path) -> None:
    """Make the folder; UsageError when nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"'{folder}' cannot be made: {(problem.strerror or 'failed').lower()}") from None


def name_of(run: Run, key: str) -> str:
    """The file name of a run's answer: the spec's name for the reader, and what tells it from all others."""
    stem = re.sub(r"[^\w.-]+", "-", Path(run.spec).stem)[:60]
    return f"{stem}-{key[:16]}.json"


def failure_of(name: str) -> str:
    """Where the message of a failed run stands whose answer would stand in ``name``."""
    return name.removesuffix(".json") + ".failed.json"


def finished(folder: Path, name: str, key: str) -> dict[str, Any] | None:
    """The answer of a run that need not be run again."""
    document = _read(folder / name)
    if document is None or document.get("run", {}).get("key") != key:
        return None
    return None if document.get("status", {}).get("termination") in _NOT_FINISHED else document


def failed(folder: Path, name: str, key: str) -> dict[str, Any] | None:
    """The message of a run that failed when it was last tried: ``exit_code``, ``message``, ``answer`` (or None)."""
    document = _read(folder / failure_of(name))
    return document if document is not None and document.get("run", {}).get("key") == key else None


def keep(folder: Path, job: Job, result: Result) -> dict[str, Any]:
    """Write down how a run ended, and return what was written."""
    name = name_of(job.run, job.key)
    about = {"run": job.run.document() | {"key": job.key}}
    document = result.document
    if document is not None and document["status"]["termination"] not in _NOT_FINISHED:
        answer = document | about
        files.write(folder / name, _text(answer))
        (folder / failure_of(name)).unlink(missing_ok=True)
        return answer
    # An answer that ended with an error has the exit code of one that found nothing; a sweep calls it failed.
    failure = {"schema": SCHEMA, **about, "exit_code": result.exit_code, "message": result.message, "answer": document}
    files.write(folder / failure_of(name), _text(failure))
    return failure


def write_list(folder: Path, jobs: Sequence[Job]) -> None:
    """Note what was asked for, in order."""
    listed = [job.run.document() | {"key": job.key} for job in jobs]
    files.write(folder / LIST, _text({"schema": SCHEMA, "runs": listed}))


def read_list(folder: Path) -> list[Mapping[str, Any]]:
    """The runs that were asked for last, each with its ``key``; UsageError where no sweep has been."""
    document = _read(folder / LIST)
    if document is None or not isinstance(document.get("runs"), list):
        raise UsageError(f"'{folder}' holds no sweep: there is no readable {LIST} in it")
    runs: list[Mapping[str, Any]] = document["runs"]
    return runs


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _read(path: Path) -> dict[str, Any] | None:
    """A JSON object; None when there is none, whatever else stands there."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
