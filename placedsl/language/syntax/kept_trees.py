"""Syntax trees of files, kept in the user's cache folder: to read one back takes a tenth of parsing, and no parser.

What is kept holds for a text at its place, for this grammar, this package and this Python; else it is made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import pickle
import sys
from functools import lru_cache
from pathlib import Path

from placedsl import limits
from placedsl.diagnostics import Source, UsageError
from placedsl.language.syntax.statements import Module
from placedsl.system.files import write
from placedsl.system.installation import cache_folder, grammar_text

#: Characters of the longest text whose tree is kept.
_LONGEST = 1 << 18
#: Files of this package beside the syntax that trees are made of.
_BESIDE = ("diagnostics.py", "records.py")


def tree(source: Source, name: str = "") -> Module:
    """The tree of a text; InputError with all syntax errors found where it cannot be parsed.

    ``name``: of the file in the cache folder; without one the files of specs share 256, and a text that comes from no
    file is parsed every time.
    """
    folder = cache_folder() if name or not source.name.startswith("<") else None
    if folder is None or len(source.text) > _LONGEST:
        return _parsed(source)
    file, made_of = folder / f"{name or _shared(source)}.tree", _made_of(source)
    # Whatever is wrong with such a file, it is made anew.  The folder is the user's own, as for the grammar's tables.
    with contextlib.suppress(Exception):
        of, kept = pickle.loads(file.read_bytes())
        if of == made_of and isinstance(module := _Reader(io.BytesIO(kept), source).load(), Module):
            return module
    module = _parsed(source)
    with contextlib.suppress(UsageError, RecursionError):  # no room, or nested deeply: it is parsed again
        kept = io.BytesIO()
        _Writer(kept, source).dump(module)
        write(file, pickle.dumps((made_of, kept.getvalue()), pickle.HIGHEST_PROTOCOL))
    return module


class _Writer(pickle.Pickler):
    """Keeps a tree without its source."""

    def __init__(self, file: io.BytesIO, source: Source) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.source = source

    def persistent_id(self, part: object) -> str | None:
        return "source" if part is self.source else None


class _Reader(pickle.Unpickler):
    """Reads a tree back, as one of this very source."""

    def __init__(self, file: io.BytesIO, source: Source) -> None:
        super().__init__(file)
        self.source = source

    def persistent_load(self, _name: str) -> Source:
        return self.source


def _parsed(source: Source) -> Module:
    # Not for every run: Lark takes as long to import as all of this package.
    from placedsl.language.syntax.parser import parse

    return parse(source)


def _shared(source: Source) -> str:
    """The file for the tree of a spec: one for each name, or for some names together."""
    return f"spec-{hashlib.sha256(source.name.encode(errors='surrogatepass')).hexdigest()[:2]}"


def _made_of(source: Source) -> str:
    parts = (_version(), str(limits.count("nesting")), source.name, source.text)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


@lru_cache(maxsize=1)
def _version() -> str:
    """What trees depend on beside the text: the grammar, and the files of this package."""
    folder = Path(__file__).parent
    files = sorted([*folder.glob("*.py"), *(folder.parents[1] / name for name in _BESIDE)])
    states = ((file.name, file.stat()) for file in files)
    own = "\n".join(f"{name} {state.st_mtime_ns} {state.st_size}" for name, state in states)
    return hashlib.sha256(f"{sys.version}\n{grammar_text()}\n{own}".encode()).hexdigest()
