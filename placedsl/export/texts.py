"""What every built-in exporter makes of a plan, for pages."""

from __future__ import annotations

from placedsl.diagnostics import InputError
from placedsl.export.registry import built_in, files
from placedsl.problem.plan import Plan


def texts(plan: Plan) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """(name, text) of each file, and (runtime, first reason) of each runtime that cannot run the plan."""
    made, refused = list[tuple[str, str]](), list[tuple[str, str]]()
    for runtime in built_in():
        try:
            found = files(plan, runtime)
        except InputError as problem:
            reason = problem.diagnostics[0].message
            refused.append((runtime, reason.removeprefix(f"not for {runtime}: ")))
            continue
        made += [(f"{runtime}: {file}", text) for file, text in found.items() if isinstance(text, str)]
    return made, refused
