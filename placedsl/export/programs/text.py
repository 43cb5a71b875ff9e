"""Numbers, places and comments as they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from placedsl.arrays import Floats
from placedsl.diagnostics import Span
from placedsl.export.programs.named_program import Family

_LONGEST_COMMENT = 160


def number(value: float) -> str:
    """The shortest text that reads back to the same number."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def numbers(values: Floats) -> list[str]:
    """The text of each number; infinities are ``inf``."""
    known, back = np.unique(values, return_inverse=True)
    texts = [number(v) if np.isfinite(v) else repr(v) for v in known.tolist()]
    return [texts[i] for i in back.tolist()]


def place(span: Span | None) -> str:
    """``inline.place:17``: file and line; empty for what stands nowhere."""
    if span is None:
        return ""
    return f"{span.source.name.replace(chr(92), '/').rsplit('/', 1)[-1]}:{span.line}"


def title(family: Family) -> str:
    """Where a family comes from, its name, and the line that says so, on one line."""
    line = "" if family.span is None else family.span.source.line(family.span.line).strip()
    if family.name.partition("(")[0] in line:
        return f"{place(family.span)} {line}"
    return f"{place(family.span)} {family.name}".strip() + (f": {line}" if line else "")


def comments(lines: Iterable[str], sign: str, *, plain: bool) -> Iterator[str]:
    """The lines as comments; ``plain``: only the characters that every reader takes."""
    for line in lines:
        text = "".join(c if c.isprintable() else " " for c in line)
        if plain:
            text = text.encode("ascii", "replace").decode("ascii")
        yield sign + " " + (text if len(text) <= _LONGEST_COMMENT else text[: _LONGEST_COMMENT - 2] + " …"[not plain :])
