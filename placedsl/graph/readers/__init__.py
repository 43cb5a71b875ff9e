"""Graph files: one reader a format; which one it is shows in the content."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from placedsl import plugins
from placedsl.diagnostics import Diagnostic, InputError, Source, nearest
from placedsl.graph.graph import Graph
from placedsl.graph.readers import dnn_partitioning, native, pipedream

READERS: dict[str, Callable[[Source], Graph]] = {
    "dnn-partitioning": dnn_partitioning.read,
    "native": native.read,
    "pipedream": pipedream.read,
}

#: The largest file that is read, in bytes.
LARGEST = 2**30


def load(path: Path) -> Source:
    """The text of a file; InputError (without a span) when it cannot be had."""
    if "\0" in str(path):
        raise InputError([Diagnostic("a file name cannot hold the character 0", None)])
    try:
        size = path.stat().st_size
        if size > LARGEST:
            hint = "contract it beforehand, or split it"
            raise InputError(
                [Diagnostic(f"'{path}' has {size:,} bytes, more than {LARGEST:,} are not read", None, hint)]
            )
        return Source(str(path), path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise InputError([Diagnostic(f"'{path}' is not a text in UTF-8", None)]) from None
    except OSError as problem:
        siblings = [p.name for p in path.parent.iterdir() if _may_be_a_graph(p)] if path.parent.is_dir() else []
        reason = (problem.strerror or "cannot be read").lower()
        raise InputError([Diagnostic(f"'{path}': {reason}", None, nearest(path.name, siblings))]) from None


def _may_be_a_graph(path: Path) -> bool:
    """What is worth being named where a file is missing: a spec is not."""
    return path.is_file() and path.suffix != ".place"


def read(file: Path | Source, format_name: str | None = None) -> Graph:
    """Read a graph file, or its text; the format is recognised by its content unless named."""
    source = load(file) if isinstance(file, Path) else file
    name = recognised(source) if format_name is None else format_name
    if name in READERS:
        return READERS[name](source)
    plugin = plugins.find("readers", name)
    if plugin is None:
        known = (*READERS, *plugins.names("readers"))
        raise InputError([Diagnostic(f"there is no graph format '{name}'", None, nearest(name, known))])
    found = plugin.call(plugin.load(), source)
    if not isinstance(found, Graph):
        raise plugins.PluginError(f"{plugin} failed: a Graph is expected from it, this is {type(found).__name__}")
    return found


def recognised(source: Source) -> str:
    """The format of a text; InputError when it is none that is known."""
    if not source.text.strip():
        raise InputError([Diagnostic("the file is empty", source.whole(), "a graph is expected")])
    if pipedream.looks_like(source.text):
        return "pipedream"
    if not source.text.lstrip().startswith("{"):
        hint = "known formats: " + ", ".join(READERS) + _named()
        raise InputError([Diagnostic("this is no graph file that is known", source.whole(), hint)])
    try:
        root = json.loads(source.text)
    except (json.JSONDecodeError, RecursionError):
        return "native"  # whose reader says what is wrong with the JSON
    if native.looks_like(root):
        return "native"
    if dnn_partitioning.looks_like(root):
        return "dnn-partitioning"
    hint = "known formats: " + ", ".join(READERS) + (_named() or '; name it with format = "…"')
    raise InputError([Diagnostic("this JSON is no graph format that is known", source.whole(), hint)])


def _named() -> str:
    """The formats of plug-ins, which are never guessed from the content."""
    names = plugins.names("readers")
    return f'; by name only, with format = "…": {", ".join(names)}' if names else ""
