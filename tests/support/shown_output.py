"""What a command prints, without what depends on how fast the machine is: for comparison with what a page shows."""

from __future__ import annotations

import re

#: Seconds that a run took: at the end of the brackets of a summary, in the last column of a table of runs, and beside
#: the rows that a constraint adds to a program.
_OF_RUNS = (
    (re.compile(r"\d+(?:\.\d+)? s\)"), "0 s)"),
    (re.compile(r" +\d+\.\d\d$", re.MULTILINE), " 0.00"),
    (re.compile(r" +\d+\.\d{4}(?= )"), " 0.0000"),
)


def settled(text: str) -> str:
    """The text with every duration of a run as 0."""
    for pattern, zero in _OF_RUNS:
        text = pattern.sub(zero, text)
    return text


def plain(text: str) -> str:
    """The same, one space between words: where lines are broken does not count."""
    return " ".join(settled(text).split())
