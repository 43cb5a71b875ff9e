"""What can be read of a text that is being written: tokens, the statements that parse, the errors in the rest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property

from placedsl.diagnostics import Diagnostic, Source
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.parser import parse_readable
from placedsl.language.syntax.tokens import NEWLINE, Token, tokens

#: From one character offset to another.
Place = tuple[int, int]


def place(at: syntax.At) -> Place:
    """Where a piece of syntax stands, as offsets."""
    return at[0], at[1]


@dataclass(frozen=True)
class Reading:
    """One version of a document: its text, the statements that can be read, and the syntax errors."""

    source: Source
    module: syntax.Module
    errors: tuple[Diagnostic, ...]

    @cached_property
    def tokens(self) -> list[Token]:
        """All tokens, comments included, line ends not."""
        return [t for t in tokens(self.source.text) if t.type != NEWLINE]

    @cached_property
    def _starts(self) -> list[int]:
        return [t.start for t in self.tokens]

    def token_at(self, offset: int) -> Token | None:
        """The token under an offset; right behind one is still that one."""
        after = bisect_right(self._starts, offset)
        touching = [t for t in self.tokens[max(0, after - 2) : after] if t.start <= offset <= t.end]
        # Between two tokens, a word or a number is meant rather than a bracket.
        return max(touching, key=lambda t: (t.text[0].isalnum() or t.text[0] in '_"', t.start), default=None)

    def tokens_in(self, at: syntax.At | Place) -> list[Token]:
        """The tokens of a piece of syntax."""
        return self.tokens[bisect_left(self._starts, at[0]) : bisect_left(self._starts, at[1])]

    def before(self, offset: int) -> list[Token]:
        """The tokens that end before an offset or at it."""
        return [t for t in self.tokens[: bisect_left(self._starts, offset)] if t.end <= offset]

    def first(self, at: syntax.At, *kinds: str) -> Place:
        """Where the first token of these kinds stands in a piece of syntax (brackets around it are passed over)."""
        return next(((t.start, t.end) for t in self.tokens_in(at) if t.type in kinds), place(at))

    def last(self, at: syntax.At, text: str) -> Place:
        """Where a word stands last in a piece of syntax."""
        return next(((t.start, t.end) for t in reversed(self.tokens_in(at)) if t.text == text), place(at))


def read(text: str, name: str) -> Reading:
    """Read a text, whatever is wrong with it; ``name`` is how messages call it."""
    source = Source(name, text)
    module, errors = parse_readable(source)
    return Reading(source, module, tuple(errors))
