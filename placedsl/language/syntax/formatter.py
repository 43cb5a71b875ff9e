"""The one layout of a spec: blanks and indentation are set anew, and nothing else is changed.

It looks at tokens, not at the tree, so a construct needs no care here: line breaks stay where the user made them,
every token and every comment stays as it is, and what goes between two tokens follows from the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from placedsl.diagnostics import Source, UsageError
from placedsl.language.syntax.parser import parse
from placedsl.language.syntax.tokens import COMMENT, NEWLINE, Token, beginnings, number_and_unit, tokens

_STEP = 4
_OPENERS, _CLOSERS = ("(", "[", "{"), (")", "]", "}")
#: Rules stand under these, indented.
_HEADS = ("SUBJECT", "TIGHT")
#: What an operand can end with: a minus after it takes two operands, a bracket after it belongs to it.
_OPERANDS = ("NAME", "STRING", "NUMBER", "QUANTITY", "ORDER")

_Line = list[Token]


def formatted(text: str, name: str = "<text>") -> str:
    """The text in the one layout; InputError with all syntax errors when there are any.

    ``name`` is how messages call the text.  Line ends are ``\\n``, or ``\\r\\n`` where the text has such.
    """
    if not isinstance(text, str):
        raise UsageError(f"a text is formatted, this is {text!r}")
    end = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    parse(Source(name, text))
    known = tokens(text)
    result = "".join(f"{line}\n" for line in _Formatter().lines(text, known))
    if _significant_tokens(tokens(result)) != _significant_tokens(known):
        raise RuntimeError("laying out this text would change more than its blanks")
    return result.replace("\n", end)


def _significant_tokens(known: Iterable[Token]) -> list[tuple[str, object, bool]]:
    """What the parser and a reader see of a text, by its tokens."""
    return [
        (t.type, number_and_unit(t.text) if t.type == "QUANTITY" else t.text.rstrip(), t.begins)
        for t in known
        if t.type != NEWLINE
    ]


@dataclass
class _Bracket:
    """An open bracket: whether it is a block of statements or entries, and how deep its line is indented.

    ``statement`` is how deep the statement that it belongs to is indented, ``rules`` whether rules stand in it now.
    """

    block: bool
    indent: int
    statement: int = 0
    rules: bool = False

    @property
    def inside(self) -> int:
        """How deep the lines of it are indented."""
        return self.indent + _STEP


@dataclass
class _Formatter:
    """One walk over the lines of a text."""

    #: The text as a whole is the outermost block.
    brackets: list[_Bracket] = field(default_factory=lambda: [_Bracket(True, -_STEP)])
    previous: Token | None = None
    before_previous: Token | None = None
    statement: int = 0

    def lines(self, text: str, known: Iterable[Token]) -> Iterator[str]:
        """The lines of a text in their new layout; ``known`` are its tokens."""
        waiting: list[tuple[Token | None, int]] = []
        empty = True
        for line in _lines_of(known):
            column = _column(text, line[0]) if line else 0
            if not line or line[0].type == COMMENT:
                waiting.append((line[0] if line else None, column))
                continue
            inside = self._inside()
            indent = self._indent(line)
            for shown in _comments(waiting, inside, indent, column, line[0].text in _CLOSERS):
                if shown or not empty:
                    yield shown
                    empty = False
            waiting.clear()
            yield " " * indent + self._line(line, indent)
            empty = False
        while waiting and waiting[-1][0] is None:
            waiting.pop()
        for shown in _comments(waiting, self._inside(), 0, 0, False):
            if shown or not empty:
                yield shown
                empty = False

    def _inside(self) -> int:
        """How deep a line would be indented that begins here and leaves nothing."""
        innermost = self.brackets[-1]
        return innermost.inside + (_STEP if innermost.rules else 0)

    def _indent(self, line: _Line) -> int:
        first, innermost = line[0], self.brackets[-1]
        if first.text in _CLOSERS:
            return innermost.indent
        if not innermost.block:
            return innermost.inside
        if not self._begins_entry(line):
            return self.statement + _STEP
        if not begins_rule(first):
            innermost.rules = False
        self.statement = self._inside()
        return self.statement

    def _begins_entry(self, line: _Line) -> bool:
        """Whether a statement, a rule or an entry of a block begins with this line."""
        if line[0].begins or self.previous is None or self.previous.text == "{":
            return True
        is_entry = len(line) > 1 and line[1].text == "=" and line[0].type in ("NAME", "STRING")
        return self.previous.text == "," and (is_entry or line[0].type == "OPTION")

    def _line(self, line: _Line, indent: int) -> str:
        parts: list[str] = []
        for token in line:
            if parts:
                parts.append(self._space_before(token))
            parts.append(_printed(token))
            if token.type == COMMENT:
                continue
            if token.text in _OPENERS:
                block = token.text == "{" and opens_block(self.previous)
                self.brackets.append(_Bracket(block, indent, self.statement))
            elif token.text in _CLOSERS:
                self.statement = self.brackets.pop().statement
            elif token.type in _HEADS:
                self.brackets[-1].rules = True
            self.before_previous, self.previous = self.previous, token
        return "".join(parts)

    def _space_before(self, token: Token) -> str:
        """What goes between the previous token and this one of the same line."""
        before = self.previous
        assert before is not None
        if token.type == COMMENT:
            return "  "
        if "{" in before.text[:1] or token.text == "}":
            both = before.text == "{" and token.text == "}"
            return " " if self.brackets[-1].block and not both else ""
        if before.text in ("(", "[", ".", "..") or token.text in (")", "]", ".", "..", ",", ":"):
            return ""
        if before.text == "-" and not is_operand(self.before_previous):
            return ""
        if token.text == "[":
            return "" if is_operand(before) else " "
        if token.text == "(":
            return "" if is_operand(before) or before.type in beginnings("_aggregate") else " "
        return " "


def _lines_of(known: Iterable[Token]) -> Iterator[_Line]:
    line: _Line = []
    for token in known:
        if token.type == NEWLINE:
            yield line
            line = []
        else:
            line.append(token)
    yield line


def _comments(
    waiting: list[tuple[Token | None, int]], inside: int, following: int, column: int, closes: bool
) -> Iterator[str]:
    """Empty lines (one for several) and comments before a line that is indented by ``following``.

    A comment is indented like that line.  Only where that line leaves a block or the rules under a head
    (``inside`` is deeper), a comment that stood deeper than it does belongs to what is left.
    """
    empty = False
    for comment, at in waiting:
        if comment is None:
            empty = True
            continue
        if empty:
            yield ""
            empty = False
        deeper = closes or (following < inside and at > column)
        yield " " * (inside if deeper else following) + _printed(comment)
    if empty:
        yield ""


def _column(text: str, token: Token) -> int:
    """How deep a line is indented as it was written."""
    start = text.rfind("\n", 0, token.start) + 1
    return len(text[start : token.start].expandtabs(_STEP))


def _printed(token: Token) -> str:
    if token.type == COMMENT:
        return token.text.rstrip()
    if token.type == "QUANTITY":
        number, unit = number_and_unit(token.text)
        return number + unit if unit == "%" else f"{number} {unit}"
    return token.text


def begins_rule(token: Token) -> bool:
    """Whether a rule under ``subject to`` can begin with this token."""
    return token.type in beginnings("rule") | beginnings("soft")


def is_operand(token: Token | None) -> bool:
    """Whether an operand can end with this token."""
    return token is not None and (token.type in _OPERANDS or token.text in _CLOSERS)


def opens_block(before: Token | None) -> bool:
    """Whether a brace after this token opens a block, and is not a set or a map."""
    return is_operand(before) or (before is not None and before.type in beginnings("start"))
