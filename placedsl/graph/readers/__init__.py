"""Graph files: one reader a format; which one it is shows in the content."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from placedsl import plugins
from placedsl.diagnostics import Diagnostic, InputError, Source, nearest
from placedsl.graph.graph import Graph
from placedsl.graph.readers import sizes as given_sizes
from placedsl.graph.readers.json_text import parsed
from placedsl.graph.readers.sizes import Sizes
from placedsl.system import paths
from placedsl.system.files import TooLargeError, read_bytes

#: The formats of texts; a reader is the module of that name, imported when there is such a file.
TEXTS = ("dnn-partitioning", "moirai", "native", "pipedream", "piper")
#: Those of models, files that are no texts: costs are estimated, and symbolic dimensions may need a size.
MODELS = ("onnx", "torch-export")
#: Those of texts that describe a model by its sizes, some of which the spec gives.
DESCRIPTIONS = ("aceso", "hugging-face")

#: What to do where the description of a model is missing.
_CONFIG = "save the model's config.json there from where the model is published; nothing else of it is needed"
#: An ONNX model begins with its version, an archive with the letters of its inventor.
_ONNX, _ARCHIVE = b"\x08", b"PK\x03\x04"

#: The names of all that is built in.
READERS = tuple(sorted((*TEXTS, *MODELS, *DESCRIPTIONS)))


def _made(name: str, source: Source, *sizes: Sizes) -> Graph:
    graph: Graph = reader(name).read(source, *sizes)
    return graph


def reader(name: str) -> Any:
    """The module of a format that is built in: ``read`` makes a graph, ``looks_like`` recognises texts."""
    return import_module(f"{__name__}.{name.replace('-', '_')}")


def _program(path: Path) -> Source:
    from placedsl.graph.readers import torch_export

    return torch_export.program(path)


def load(path: Path) -> Source:
    """The text of a file; InputError (without a span) when it cannot be had."""
    source = load_graph(path)
    if source.data:
        raise InputError([Diagnostic(f"'{path}' is not a text in UTF-8", None)])
    return source


def load_graph(path: Path) -> Source:
    """What a graph file holds, a text or a model; InputError (without a span) when it cannot be had."""
    if "\0" in str(path):
        raise InputError([Diagnostic("a file name cannot hold the character 0", None)])
    try:
        if paths.is_file(path):  # a pipe can be read once only
            with path.open("rb") as file:
                archive = file.read(len(_ARCHIVE)) == _ARCHIVE
            if archive:
                return _program(path)
        data = read_bytes(path, "graph-bytes")
        if data.startswith(_ONNX):
            return Source(str(path), "", data=data)
        text = data.decode("utf-8-sig")
        return Source(str(path), text.replace("\r\n", "\n").replace("\r", "\n"))
    except TooLargeError as problem:
        hint = problem.hint("contract it beforehand, or split it")
        raise InputError([Diagnostic(f"'{path}' cannot be read: {problem.strerror}", None, hint)]) from None
    except UnicodeDecodeError:
        hint = "nor is it a model that is known: " + ", ".join(MODELS)
        raise InputError([Diagnostic(f"'{path}' is not a text in UTF-8", None, hint)]) from None
    except OSError as problem:
        siblings = [p.name for p in paths.beside(path) if _may_be_a_graph(p)]
        reason = (problem.strerror or "cannot be read").lower()
        hint = _CONFIG if path.name == "config.json" else nearest(path.name, siblings)
        raise InputError([Diagnostic(f"'{path}': {reason}", None, hint)]) from None


def _may_be_a_graph(path: Path) -> bool:
    """What is worth being named where a file is missing: a spec is not."""
    return paths.is_file(path) and path.suffix != ".place" and not path.name.startswith(".")


def read(file: Path | Source, format_name: str | None = None, sizes: Sizes | None = None) -> Graph:
    """Read a graph file, or what it holds; the format is recognised by its content unless named.

    ``sizes`` are those of symbolic dimensions by name.
    """
    source = load_graph(file) if isinstance(file, Path) else file
    name = recognised(source) if format_name is None else format_name
    if name in MODELS:
        if not source.data:
            raise InputError([Diagnostic(f"this is a text, and no {name} model", source.whole())])
        return _made(name, source, sizes or {})
    if name in DESCRIPTIONS and not source.data:
        return _made(name, source, sizes or {})
    wrong = given_sizes.unknown(sizes or {}, ())
    if wrong:
        raise InputError(wrong)
    if name in TEXTS or name in DESCRIPTIONS:
        if source.data:
            raise InputError([Diagnostic(f"this is no text, as the format '{name}' is", None)])
        return _made(name, source)
    plugin = plugins.find("readers", name)
    if plugin is None:
        known = (*READERS, *plugins.names("readers"))
        raise InputError([Diagnostic(f"there is no graph format '{name}'", None, nearest(name, known))])
    found = plugin.call(plugin.load(), source)
    if not isinstance(found, Graph):
        raise plugins.PluginError(f"{plugin} failed: a Graph is expected from it, this is {type(found).__name__}")
    return found


def recognised(source: Source) -> str:
    """The format of what a file holds; InputError when it is none that is known."""
    if source.data:
        return "onnx" if source.data.startswith(_ONNX) else "torch-export"
    if not source.text.strip():
        raise InputError([Diagnostic("the file is empty", source.whole(), "a graph is expected")])
    for name in () if source.text.lstrip().startswith("{") else ("pipedream", "aceso"):
        if reader(name).looks_like(source.text):
            return name
    if not source.text.lstrip().startswith("{"):
        hint = "known formats: " + ", ".join(READERS) + _named()
        raise InputError([Diagnostic("this is no graph file that is known", source.whole(), hint)])
    if reader("native").BEGINNING.match(source.text):
        return "native"  # large files are parsed once only
    root = parsed(source)
    for name in ("native", "dnn-partitioning", "moirai", "piper", "hugging-face"):
        if reader(name).looks_like(root):
            return name
    hint = "known formats: " + ", ".join(READERS) + (_named() or '; name it with format = "…"')
    raise InputError([Diagnostic("this JSON is no graph format that is known", source.whole(), hint)])


def _named() -> str:
    """The formats of plug-ins, which are never guessed from the content."""
    names = plugins.names("readers")
    return f'; by name only, with format = "…": {", ".join(names)}' if names else ""
