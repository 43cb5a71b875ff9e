"""Colours for ``.place`` code, in documents and on terminals: a lexer for Pygments.

What is a keyword, a number or a comment, the grammar says; the lexer translates its tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String, Text

from placedsl.language.syntax.keywords import KEYWORDS, SOFT_KEYWORDS
from placedsl.language.syntax.tokens import COMMENT, NEWLINE, UNREADABLE, Token, beginnings, number_and_unit, tokens

_PUNCTUATION = frozenset("()[]{},:.")
#: After these the name of something new stands.
_DECLARING = ("device", "param", "set", "node", "var", "formulation", "constraint", "define", "extend", "part",
              "option")  # fmt: skip
_Piece = tuple[int, Any, str]


class PlaceLexer(Lexer):  # type: ignore[misc]
    """The language of placedsl."""

    name = "Place"
    aliases: ClassVar[list[str]] = ["place"]
    filenames: ClassVar[list[str]] = ["*.place"]

    def get_tokens_unprocessed(self, text: str) -> Iterator[_Piece]:
        """Offset, kind and text of every piece of a text, without gaps."""
        end = 0
        known = [t for t in tokens(text) if t.type != NEWLINE]
        for i, token in enumerate(known):
            if end < token.start:
                yield end, Text, text[end : token.start]
            if token.type == "QUANTITY":
                yield from _quantity(token)
            else:
                before, after = (known[j] if 0 <= j < len(known) else None for j in (i - 1, i + 1))
                yield token.start, _kind(token, before, after), token.text
            end = token.end
        if end < len(text):
            yield end, Text, text[end:]


def coloured(text: str) -> str:
    """A spec with the colours of a terminal."""
    from pygments import highlight
    from pygments.formatters.terminal import TerminalFormatter

    return str(highlight(text, PlaceLexer(stripnl=False, ensurenl=False), TerminalFormatter()))


def _quantity(token: Token) -> Iterator[_Piece]:
    """A number, and its unit as a piece of its own."""
    number, unit = number_and_unit(token.text)
    at = token.end - len(unit)
    yield token.start, Number, number
    if token.start + len(number) < at:
        yield token.start + len(number), Text, token.text[len(number) : -len(unit)]
    yield at, Keyword.Type, unit


def _kind(token: Token, before: Token | None, after: Token | None) -> Any:
    """What Pygments calls a token."""
    plain = {COMMENT: Comment.Single, UNREADABLE: Error, "STRING": String.Double, "NUMBER": Number}
    if token.type in plain:
        return plain[token.type]
    if token.type in beginnings("_aggregate"):
        return Name.Builtin
    if token.is_word:
        return Keyword if token.text in (*KEYWORDS, *SOFT_KEYWORDS) else Keyword.Pseudo
    if token.type == "ORDER":
        return Name
    if token.type == "NAME":
        if before is not None and before.text == ".":
            return Name.Attribute
        if before is not None and before.text in _DECLARING:
            return Name.Variable
        return Name.Function if after is not None and after.text == "(" else Name
    if not token.text.strip():
        return Text
    return Punctuation if token.text in _PUNCTUATION else Operator
