"""The paths of a combination by the public interface alone, so that another checkout of the package can walk them too.

As a program: a JSON object a line with ``text`` and ``path`` on stdin, what came of it on stdout.
"""

from __future__ import annotations

import json
import math
import sys
from functools import lru_cache
from typing import Any

import placedsl
from placedsl import InputError, PlacedslError, UsageError

#: What is asked of every run: one worker, and seconds that no run of this size needs.
LIMIT = 60.0


def walk(text: str, path: str, method: str = "", *, alone: bool = False) -> dict[str, Any]:
    """What a path says of a spec, as plain data; ``alone``: solvers run in this process where nothing searches beside.

    ``refused``: the message, and ``located``: whether each part of it has a place in the spec (True of what was asked
    for on a command line); else what the path found.
    """
    try:
        spec = _spec(text)
        if path == "conflict":
            return _conflict(spec, alone)
        if path == "why":
            return _why(spec, _solved(text, "auto", False), alone)
        answer = _solved(text, method or "auto", alone and path == "program")
        if path == "timeline":
            one_sample = "schedule calls" in text or "schedule dataflow" in text
            document = answer.timeline(samples=None if one_sample else 400).document()
            keys = ("latency", "largest_load", "time_per_sample", "schedule")
            return _told(answer) | {"timeline": {key: document.get(key) for key in keys}}
        return _told(answer)
    except InputError as refused:
        located = all(d.span is not None for d in refused.diagnostics)
        return {"refused": "; ".join(d.message for d in refused.diagnostics), "located": located}
    except UsageError as refused:
        return {"refused": str(refused), "located": True}
    except PlacedslError as fault:
        return {"fault": f"{type(fault).__name__}: {fault}"}


@lru_cache(maxsize=4)
def _spec(text: str) -> placedsl.Spec:
    return placedsl.loads(text)


@lru_cache(maxsize=4)
def _solved(text: str, method: str, alone: bool) -> placedsl.Answer:
    """The answer; one of ``auto`` serves all paths that begin with an answer."""
    spec = _spec(text)
    solver = "highs" if method == "program" else None
    if alone:
        from placedsl.planner.request import Request
        from placedsl.planner.solve import solve

        request = Request(solver, method, LIMIT, None, 1, None)
        return solve(spec.problem, spec.elaborated.checked_formulations, request, isolated=False)  # type: ignore[return-value]
    return spec.solve(method=method, solver=solver, workers=1, time_limit=LIMIT)


def _told(answer: placedsl.Answer) -> dict[str, Any]:
    if answer.termination == "error" and answer.message.startswith("method "):
        return {"refused": answer.message, "located": True}
    objectives = None if answer.evaluation is None else list(answer.evaluation.objectives)
    return {
        "termination": answer.termination, "message": answer.message, "objectives": objectives,
        "bounds": [bound if math.isfinite(bound) else None for bound in answer.bounds],
    }  # fmt: skip


def _why(spec: placedsl.Spec, answer: placedsl.Answer, alone: bool) -> dict[str, Any]:
    if alone:
        from placedsl.diagnosis.sensitivity.report import why
        from placedsl.planner.request import Request

        request = Request(workers=1, time_limit=LIMIT / 2)
        found = why(answer, spec.elaborated.checked_formulations, request, isolated=False)
    else:
        found = spec.why(answer, workers=1, time_limit=LIMIT / 2)
    return {"effects": [[effect.change, effect.value, effect.proven] for effect in found.effects]}


def _conflict(spec: placedsl.Spec, alone: bool) -> dict[str, Any]:
    if alone:
        from placedsl.diagnosis.infeasibility.conflict import find
        from placedsl.planner.request import Request

        request = Request(time_limit=LIMIT, workers=1)
        found = find(spec.problem, spec.elaborated.checked_formulations, request, isolated=False)
    else:
        found = spec.conflict(time_limit=LIMIT, workers=1)
    return {"members": None if found is None else [member.name for member in found.members]}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            told = walk(asked["text"], asked["path"], asked["method"])
        except Exception as fault:  # noqa: BLE001 - of another checkout: what it cannot do is counted
            told = {"fault": f"{type(fault).__name__}: {fault}"}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
