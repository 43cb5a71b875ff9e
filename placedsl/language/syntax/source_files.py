"""The text of a spec, from its file."""

from __future__ import annotations

from pathlib import Path

from placedsl.diagnostics import Diagnostic, InputError, Source, nearest
from placedsl.system import paths
from placedsl.system.files import TooLargeError, read_bytes


def read_source(path: Path) -> Source:
    """The text of a spec; InputError names nearby files when there is none by that name."""
    try:
        text = read_bytes(path, "spec-bytes").decode("utf-8-sig")
    except TooLargeError as problem:
        hint = problem.hint('large graphs stand in a file of their own: graph from "model.json"')
        raise InputError([Diagnostic(f"'{path}' cannot be read: {problem.strerror}", None, hint)]) from None
    except FileNotFoundError:
        names = [p.name for p in paths.beside(path) if p.suffix == ".place"]
        raise InputError([Diagnostic(f"there is no file '{path}'", None, nearest(path.name, names))]) from None
    except IsADirectoryError:
        raise InputError([Diagnostic(f"'{path}' is a folder, not a spec")]) from None
    except PermissionError:
        raise InputError([Diagnostic(f"'{path}' may not be read (permission denied)")]) from None
    except UnicodeDecodeError as problem:
        raise InputError(
            [Diagnostic(f"'{path}' is not a text in UTF-8: byte {problem.start} cannot be read")]
        ) from None
    except OSError as problem:
        raise InputError([Diagnostic(f"'{path}' cannot be read: {problem.strerror}")]) from None
    return Source(str(path), text.replace("\r\n", "\n"))
