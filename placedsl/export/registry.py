"""Exporters for runtimes by name: the modules of :mod:`placedsl.export.runtimes`, then those of plug-ins."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, cast

from placedsl import plugins
from placedsl.diagnostics import Diagnostic, InputError, Source, Span, UsageError, nearest
from placedsl.export import runtimes
from placedsl.export.model import Given, Model, Split
from placedsl.problem.plan import Plan
from placedsl.system import paths

#: So many reasons against a plan are told.
_MOST = 20

Files = dict[str, "str | bytes"]


class RuntimeExporter(Protocol):
    """A plan to the files of a runtime, and back.  A module with these functions is one; so is an object of a plug-in,
    which may do without ``CONSTRAINT`` and ``read``."""

    #: The built-in constraint that placements satisfy which can be exported.
    CONSTRAINT: str

    def reasons_against(self, plan: Plan) -> list[str]:
        """Why the runtime cannot run the plan, in the words of the spec, with a cure; empty: it can."""

    def write(self, plan: Plan, source: Source | None = ...) -> Mapping[str, str | bytes]:
        """Texts, or bytes, by file name, of a plan that there is nothing against.

        ``source``: the graph's file, given to exporters with ``NEEDS_MODEL`` alone.
        """

    def read(self, given: Given, model: Model) -> Split:
        """The placement that such files make; InputError for what the runtime refuses."""


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


def exporter(name: str) -> RuntimeExporter:
    """A built-in exporter; UsageError for others."""
    known(name)
    modules = built_in()
    if name not in modules:
        raise UsageError(f"{plugins.get('exporters', name)} is no built-in exporter")
    return cast(RuntimeExporter, importlib.import_module(modules[name]))


def constraint(name: str) -> str:
    """The built-in constraint that makes placements exportable; empty: a plug-in, which has none."""
    return str(getattr(exporter(name), "CONSTRAINT", "")) if name in built_in() else ""


def refused(plan: Plan, name: str) -> list[str]:
    """The reasons against a plan."""
    if name in built_in():
        return exporter(name).reasons_against(plan)
    plugin, made = _plugin(name)
    return list(plugin.call(made.reasons_against, plan))


def files(plan: Plan, name: str, source: Source | None = None, model: Source | None = None) -> Files:
    """What an exporter makes of a plan, by file name.

    ``source``: the answer that the plan was read from; ``model``: the file of the graph.

    UsageError where there is no exporter of this name for plans; InputError with the reasons against the plan.
    """
    known(name)
    if name in built_in():
        own = exporter(name)
        needs = getattr(own, "NEEDS_MODEL", False)
        return _checked(
            name, own.reasons_against(plan), lambda: own.write(plan, model) if needs else own.write(plan), source
        )
    plugin, made = _plugin(name)
    return _checked(name, plugin.call(made.reasons_against, plan), lambda: plugin.call(made.write, plan), source)


def read(path: Path, name: str, model: Model) -> Split:
    """The placement that a file or folder of a runtime makes; UsageError where there is none, or no such runtime."""
    known(name)
    if not paths.exists(path):
        raise UsageError(f"there is no file '{path}'")
    if name in built_in():
        return exporter(name).read(Given(path), model)
    plugin, made = _plugin(name)
    if not hasattr(made, "read"):
        raise UsageError(f"{plugin} reads no files of its runtime: it has no 'read'")
    return cast(Split, plugin.call(made.read, Given(path), model))


def _plugin(name: str) -> tuple[Any, Any]:
    plugin = plugins.get("exporters", name)
    made: Any = plugin.load()
    if not hasattr(made, "write") or not hasattr(made, "reasons_against"):
        raise UsageError(f"{plugin} needs an answer with its problem: 'placedsl emit SPEC --to {name}' solves for one")
    return plugin, made


def _checked(
    name: str, reasons: list[str], write: Callable[[], Mapping[str, str | bytes]], source: Source | None
) -> Files:
    if reasons:
        rule = constraint(name)
        hint = (
            f"'{rule}' under 'subject to' asks for such placements; export --fix adds it and solves again"
            if rule
            else ""
        )
        found = [Diagnostic(f"not for {name}: {reason}", _place(source, reason)) for reason in reasons[:_MOST]]
        found[-1] = replace(found[-1], hint=hint)
        more = [Diagnostic(f"and {len(reasons) - _MOST} more reasons")] if len(reasons) > _MOST else []
        raise InputError([*found, *more])
    out = write()
    for file, text in out.items():
        if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts or not isinstance(text, str | bytes):
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
