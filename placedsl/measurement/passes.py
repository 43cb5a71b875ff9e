"""Passes through a model, each kept in a file as soon as it has ended, so that an interrupted measurement goes on.

The file stands beside the output and ends in ``.passes``: one JSON value a line, what is measured first and then each
pass.  A line that is cut off is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from placedsl.diagnostics import Diagnostic, InputError, UsageError
from placedsl.measurement.runs import Pass, Runnable
from placedsl.system import paths

SUFFIX = ".passes"
FORMAT = "placedsl-passes"


def file_beside(output: Path) -> Path:
    """Where the passes for an output are kept."""
    return output.with_name(output.name + SUFFIX)


def measure(
    model: Runnable, repeats: int, warm_up: int, kept: Path | None, tell: Callable[[int, int], None]
) -> list[Pass]:
    """So many passes, those of an interrupted measurement among them; ``tell`` hears how many there are of how many.

    ``kept``: the file in which they are kept (None: none); it stays when this is interrupted.  InputError where it is
    of another measurement, UsageError where it cannot be written.
    """
    done = [] if kept is None else _read(kept, model)
    tell(len(done), repeats)
    if len(done) >= repeats:
        return done[:repeats]
    if warm_up:
        model.run(warm_up)
    if kept is None:
        return _run(model, done, repeats, None, tell)
    try:
        with kept.open("w", encoding="utf-8") as file:  # without a line that was cut off
            _append(file, _heading(model))
            for one in done:
                _append(file, _line(one))
            return _run(model, done, repeats, file, tell)
    except OSError as problem:
        raise UsageError(f"'{kept}' cannot be written: {(problem.strerror or 'failed').lower()}") from None


def _run(
    model: Runnable, done: list[Pass], repeats: int, file: IO[str] | None, tell: Callable[[int, int], None]
) -> list[Pass]:
    while len(done) < repeats:
        for one in model.run(min(model.most, repeats - len(done))):
            done.append(one)
            if file is not None:
                _append(file, _line(one))
        tell(len(done), repeats)
    return done


def _append(file: IO[str], value: object) -> None:
    file.write(json.dumps(value) + "\n")
    file.flush()


def _heading(model: Runnable) -> dict[str, object]:
    return {
        "format": FORMAT, "version": 1, "model": model.digest, "settings": dict(model.settings),
        "operators": list(model.operators),
    }  # fmt: skip


def _line(one: Pass) -> dict[str, object]:
    return {"seconds": one.seconds.tolist(), "whole": one.whole}


def _read(kept: Path, model: Runnable) -> list[Pass]:
    """The passes in a file, which may end anywhere; InputError where they are of something else."""
    if not paths.is_file(kept):
        return []
    try:
        lines = kept.read_bytes().split(b"\n")
    except OSError as problem:
        raise UsageError(f"'{kept}' cannot be read: {(problem.strerror or 'failed').lower()}") from None
    whole = [_value(line) for line in lines[:-1]]
    if not whole:
        return []
    heading = _heading(model)
    if whole[0] != heading:
        raise InputError([Diagnostic(f"'{kept}' {_unlike(whole[0], heading)}", None, "--restart begins anew")])
    out = []
    for value in whole[1:]:
        if not isinstance(value, dict) or value.keys() != {"seconds", "whole"}:
            break
        out.append(Pass(np.array(value["seconds"], dtype=float), float(value["whole"])))
    return out


def _value(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _unlike(found: Any, wanted: dict[str, Any]) -> str:
    """What the passes of a file are of, in words."""
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("settings"), dict):
        return "holds no passes of an interrupted measurement"
    if found.get("model") != wanted["model"] or found.get("operators") != wanted["operators"]:
        return "holds passes of another model"
    there, here = found["settings"], wanted["settings"]
    name = next((name for name in (*here, *there) if there.get(name) != here.get(name)), "")
    if not name:
        return "holds passes of another version"
    return f"holds passes with {name} {there.get(name, 'not given')}, and this is {here.get(name, 'not given')}"
