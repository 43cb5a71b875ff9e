"""Values from outside: ``--set name=value`` and data files."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from placedsl.diagnostics import Diagnostic, InputError, Source, Span, nearest
from placedsl.graph.readers.json_text import parsed
from placedsl.records import dataclass
from placedsl.system import paths
from placedsl.system.files import TooLargeError, read_bytes


@dataclass(frozen=True)
class ExternalValues:
    """Values for parameters: texts from the command line, and what a data file holds.

    ``schedule`` replaces what the spec says (None: as it says).
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, object] = field(default_factory=dict)
    source: Source | None = None
    schedule: str | None = None

    def place(self, path: Sequence[str]) -> Span | None:
        """Where a value of the data file stands: at its last key."""
        if self.source is None:
            return None
        at, text = 0, self.source.text
        for key in path:
            marks = [f'"{key}"', key]
            found = next((i for i in (text.find(mark, at) for mark in marks) if i >= 0), -1)
            if found < 0:
                break
            at = found
        return self.source.span(at, at + len(path[-1]) + (2 if text[at : at + 1] == '"' else 0))


def load(path: Path) -> Source:
    """The text of a data file; InputError names the nearest files when there is none by that name."""
    try:
        text = read_bytes(path, "data-bytes").decode("utf-8-sig")
        return Source(str(path), text.replace("\r\n", "\n").replace("\r", "\n"))
    except UnicodeDecodeError:
        raise InputError([Diagnostic(f"'{path}' is not a text in UTF-8")]) from None
    except TooLargeError as problem:
        raise InputError([Diagnostic(f"'{path}': {problem.strerror}", None, problem.hint(""))]) from None
    except OSError as problem:
        siblings = [p.name for p in paths.beside(path) if paths.is_file(p)]
        reason = (problem.strerror or "cannot be read").lower()
        raise InputError([Diagnostic(f"'{path}': {reason}", None, nearest(path.name, siblings))]) from None


def read(texts: Mapping[str, str], file: Path | Source | None, schedule: str | None = None) -> ExternalValues:
    """The values of the command line with those of a data file (JSON or TOML), or of its text."""
    if file is None:
        return ExternalValues(texts, schedule=schedule)
    source = load(file) if isinstance(file, Path) else file
    if Path(source.name).suffix == ".toml":
        return ExternalValues(texts, parsed_toml(source), source, schedule)
    root = parsed(source)
    if not isinstance(root, dict):
        hint = 'as in {"budget": 3, "limit": "16 GiB"}'
        raise InputError([Diagnostic("a data file is an object of parameters and values", source.whole(), hint)])
    return ExternalValues(texts, root, source, schedule)


def parsed_toml(source: Source) -> dict[str, object]:
    """What a TOML text holds; InputError at the place of what is wrong."""
    import tomllib  # few specs come with such a file

    try:
        root = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as problem:
        message, at, place = str(problem).partition(" (at ")
        numbers = re.findall(r"\d+", place)
        end = max(0, len(source.text.rstrip()) - 1)
        span = Span(source, int(numbers[0]), int(numbers[1])) if len(numbers) == 2 else source.span(end)
        raise InputError([Diagnostic(f"this is not TOML: {message}", span if at else source.whole())]) from None
    except RecursionError:
        raise InputError([Diagnostic("this TOML is nested too deeply", source.whole())]) from None
    except ValueError:  # Python reads no whole numbers of so many digits
        long = re.search(r"\d[\d_]{4300,}", source.text)
        span = source.whole() if long is None else source.span(*long.span())
        raise InputError([Diagnostic("a number here has too many digits", span)]) from None
    paths = list(_infinite(root))
    if paths:
        held = ExternalValues(source=source)
        hint = "a finite number is expected"
        raise InputError(Diagnostic(f"'{path[-1]}' is no finite number", held.place(path), hint) for path in paths)
    return root


def _infinite(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys that lead to numbers that are none, or beyond floating point."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _infinite(inner, (*path, str(key)))
    elif isinstance(value, list):
        for inner in value:
            yield from _infinite(inner, path)
    elif isinstance(value, int | float) and not abs(value) <= sys.float_info.max:
        yield path
