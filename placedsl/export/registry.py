"""Exporters for runtimes by name: the modules of :mod:`placedsl.export.runtimes`, then those of plug-ins."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Protocol, cast

from placedsl import plugins
from placedsl.diagnostics import Diagnostic, InputError, Source, Span, UsageError, nearest
from placedsl.export import runtimes
from placedsl.problem.plan import Plan

#: So many reasons against a plan are told.
_MOST = 20


class RuntimeExporter(Protocol):
    """A plan to the files of a runtime.  A module with these functions is one, and so is an object of a plug-in."""

    def reasons_against(self, plan: Plan) -> list[str]:
        """Why the runtime cannot run the plan, in the words of the spec, with a cure; empty: it can."""

    def write(self, plan: Plan) -> Mapping[str, str]:
        """Texts by file name, of a plan that there is nothing against."""


def built_in() -> dict[str, str]:
    """The module of each built-in exporter, by name; none is imported."""
    found = pkgutil.iter_modules(runtimes.__path__)
    return {module.name.replace("_", "-"): f"{runtimes.__name__}.{module.name}" for module in found}


def names() -> tuple[str, ...]:
    """Built-in exporters, then those of plug-ins."""
    return (*built_in(), *(name for name in plugins.names("exporters") if name not in built_in()))


def known(name: str) -> None:
    """UsageError with the nearest name where no exporter has this one."""
    if name not in built_in() and plugins.find("exporters", name) is None:
        raise UsageError(f"there is no exporter '{name}'; {nearest(name, names())}")


def files(plan: Plan, name: str, source: Source | None = None) -> dict[str, str]:
    """The texts that an exporter makes of a plan, by file name; ``source``: the answer that the plan was read from.

    UsageError where there is no exporter of this name for plans; InputError with the reasons against the plan.
    """
    known(name)
    modules = built_in()
    if name in modules:
        exporter = cast(RuntimeExporter, importlib.import_module(modules[name]))
        return _checked(name, exporter.reasons_against(plan), lambda: exporter.write(plan), source)
    plugin = plugins.get("exporters", name)
    made = plugin.load()
    if not hasattr(made, "write") or not hasattr(made, "reasons_against"):
        raise UsageError(f"{plugin} needs an answer with its problem: 'placedsl emit SPEC --to {name}' solves for one")
    return _checked(name, plugin.call(made.reasons_against, plan), lambda: plugin.call(made.write, plan), source)


def _checked(
    name: str, reasons: list[str], write: Callable[[], Mapping[str, str]], source: Source | None
) -> dict[str, str]:
    if reasons:
        found = [Diagnostic(f"not for {name}: {reason}", _place(source, reason)) for reason in reasons[:_MOST]]
        more = [Diagnostic(f"and {len(reasons) - _MOST} more reasons")] if len(reasons) > _MOST else []
        raise InputError([*found, *more])
    out = write()
    for file, text in out.items():
        if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts or not isinstance(text, str):
            raise UsageError(f"exporter '{name}' failed: '{file}' must be a file of its folder, with a text")
    return dict(out)


def _place(source: Source | None, reason: str) -> Span | None:
    """Where the plan of the answer has the first node that a reason quotes, or where it begins."""
    if source is None:
        return None
    begin = max(0, source.text.find('"plan"'))
    quoted = re.search(r"'([^']+)'", reason)
    key = json.dumps(quoted[1], ensure_ascii=False) if quoted is not None else '"plan"'
    at = source.text.find(key, begin)
    return source.span(begin, begin + 6) if at < 0 else source.span(at, at + len(key))
