"""Syntax trees of the files of ``models/``, kept in the user's cache folder: to read one back takes a tenth of parsing.

What is kept holds for a text at its place, for this grammar, this package and this Python; else it is made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import sys
from functools import lru_cache
from pathlib import Path

from placedsl.diagnostics import Source, UsageError
from placedsl.language.syntax.parser import parse
from placedsl.language.syntax.statements import Module
from placedsl.system.files import write
from placedsl.system.installation import cache_folder, grammar_text


def tree(source: Source) -> Module:
    """The tree of a file; InputError where it cannot be parsed."""
    folder = cache_folder()
    if folder is None:
        return parse(source)
    file, made_of = folder / f"{Path(source.name).name}.tree", f"{_version()} {source.name} {source.text}"
    # Whatever is wrong with such a file, it is made anew.  The folder is the user's own, as for the grammar's tables.
    with contextlib.suppress(Exception):
        of, kept = pickle.loads(file.read_bytes())
        if of == made_of and isinstance(module := pickle.loads(kept), Module):
            return module
    module = parse(source)
    with contextlib.suppress(UsageError):  # no room: it is parsed again
        tree_of = pickle.dumps(module, pickle.HIGHEST_PROTOCOL)
        write(file, pickle.dumps((made_of, tree_of), pickle.HIGHEST_PROTOCOL))
    return module


@lru_cache(maxsize=1)
def _version() -> str:
    """What trees depend on beside the text: the grammar, and the files of this package."""
    states = ((file.name, file.stat()) for file in sorted(Path(__file__).parent.glob("*.py")))
    own = "\n".join(f"{name} {state.st_mtime_ns} {state.st_size}" for name, state in states)
    return hashlib.sha256(f"{sys.version}\n{grammar_text()}\n{own}".encode()).hexdigest()
