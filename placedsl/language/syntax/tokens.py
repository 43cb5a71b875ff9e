"""The tokens of a text as they stand: with comments and line ends, and past what no token begins with.

The parser needs less than this; the formatter, the editor and the highlighting need it all.  Which tokens there are
is the grammar's to say (``grammars/place.lark``); nothing here lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from lark.exceptions import UnexpectedCharacters

from placedsl.language.syntax.keywords import RESERVED
from placedsl.language.syntax.parser import lexed, productions

COMMENT, NEWLINE, UNREADABLE = "COMMENT", "NEWLINE", "UNREADABLE"
_GAP = re.compile(r"#[^\n]*|\r?\n")
_BLANK_LINE_END = re.compile(r"[ \t]*(#[^\n]*)?\r?\n")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its terminal in the grammar (or COMMENT, NEWLINE, UNREADABLE), its text, its character offsets.

    ``begins``: a line end that means something is before it, or the text begins with it.
    """

    type: str
    text: str
    start: int
    end: int
    begins: bool = False

    @property
    def is_word(self) -> bool:
        """Whether it is a keyword or an operator that is a word."""
        return self.text in RESERVED or (self.type not in ("NAME", COMMENT) and self.text[:1].isalpha())


def tokens(text: str) -> list[Token]:
    """All tokens of a text but blanks; what cannot be read is an UNREADABLE token up to the end of its line."""
    out: list[Token] = []
    end = 0
    while end < len(text):
        # Where reading goes on after something unreadable, it is the line end that says what begins.
        begins = not out or _BLANK_LINE_END.match(text, end) is not None
        try:
            for token in lexed(text, end):
                if token.type == "_NL":
                    begins = True
                    continue
                start, stop = token.start_pos or 0, token.end_pos or 0
                out += _gap(text, end, start)
                out.append(Token(token.type, str(token), start, stop, begins))
                end, begins = stop, False
        except UnexpectedCharacters as problem:
            start = problem.pos_in_stream or 0
            out += _gap(text, end, start)
            stop = text.find("\n", start)
            # An unclosed text is unreadable up to the end of the line; of anything else the one character.
            end = (len(text) if stop < 0 else stop) if text[start] == '"' else start + 1
            out.append(Token(UNREADABLE, text[start:end], start, end, begins))
        else:
            out += _gap(text, end, len(text))
            end = len(text)
    return out


def _gap(text: str, start: int, end: int) -> Iterator[Token]:
    """Comments and line ends between two tokens."""
    for match in _GAP.finditer(text, start, end):
        kind = COMMENT if match[0][0] == "#" else NEWLINE
        yield Token(kind, match[0], match.start(), match.end())


def number_and_unit(text: str) -> tuple[str, str]:
    """A quantity as written, taken apart: ``16GiB`` is ``16`` and ``GiB``; the unit of a plain number is empty."""
    match = _NUMBER.match(text)
    if match is None:
        return "", text
    return match[0], text[match.end() :].strip()


@lru_cache(maxsize=16)
def beginnings(rule: str) -> frozenset[str]:
    """The terminals that a rule of the grammar can begin with."""
    rules = productions()
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [rule]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for expansion in rules.get(name, ()):
            if expansion and expansion[0] in rules:
                waiting.append(expansion[0])
            elif expansion:
                found.add(expansion[0])
    return frozenset(found)
