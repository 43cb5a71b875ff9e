"""Text to syntax tree (Lark, LALR), with every independent syntax error in one run."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedInput

from placedsl import limits
from placedsl.diagnostics import Diagnostic, InputError, Source, nearest
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.keywords import KEYWORDS, SOFT_KEYWORDS, STATEMENTS
from placedsl.language.syntax.syntax_errors import syntax_error
from placedsl.language.syntax.tree_builder import TreeBuilder
from placedsl.system.installation import cache_folder, grammar_text

_MOST_ERRORS = 20
#: Half of a surrogate pair, written as such or escaped.
_HALF = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")
_TRIES = 60

# A line goes on when its last token or the next line's first one is one of these.
_CONTINUES_BEFORE = frozenset((
    "IFF", "IMPLIES", "OR", "AND", "UNION", "INTERSECT", "EXCEPT", "AT", "COMPARE", "TILDE", "PLUS", "MINUS", "TIMES",
    "OVER", "MOD", "EQUAL", "WHERE", "THEN", "ELSE", "RBRACE", "ARROW", "LINK_ARROW",
))  # fmt: skip
_CONTINUES_AFTER = (_CONTINUES_BEFORE - {"RBRACE"}) | {
    "NOT", "ON", "IN", "COLON", "COMMA", "LBRACE", "IF", "BY", "TO", "FROM", "FORALL", "EXISTS", "SUBJECT", "__DOTDOT",
}  # fmt: skip


class _LineEnds:
    """Drops the line ends that mean nothing: within brackets, beside operators, at both ends."""

    always_accept = ("_NL",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return self._meaningful(_soft_keywords(stream))

    def _meaningful(self, stream: Iterator[Token]) -> Iterator[Token]:
        depth = 0
        previous = ""
        pending: Token | None = None
        for token in stream:
            kind = token.type
            if kind == "_NL":
                if not depth and previous and previous not in _CONTINUES_AFTER:
                    pending = token
                continue
            if pending is not None:
                if kind not in _CONTINUES_BEFORE:
                    yield pending
                pending = None
            if kind in ("LPAR", "LSQB"):
                depth += 1
            elif kind in ("RPAR", "RSQB") and depth:
                depth -= 1
            previous = kind
            yield token


def _soft_keywords(stream: Iterator[Token]) -> Iterator[Token]:
    """Keywords that are so only where a name follows at once; elsewhere they are names."""
    kinds = {word.upper() for word in SOFT_KEYWORDS}
    held: Token | None = None
    for token in stream:
        if held is not None:
            followed = token.type in ("NAME", "STRING", "PARALLELISM", *kinds)
            yield held if followed else held.update(type="NAME")
            held = None
        if token.type in kinds:
            held = token
        else:
            yield token
    if held is not None:
        yield held.update(type="NAME")


#: The parser holds the builder, and the builder the text that it is at: one parse at a time.
_BUILDER = TreeBuilder()
_ONE_AT_A_TIME = threading.Lock()


@lru_cache(maxsize=1)
def _parser() -> Lark:
    options: dict[str, Any] = {
        "parser": "lalr",
        "lexer": "basic",  # keywords are reserved everywhere; _LineEnds looks one token ahead
        "postlex": _LineEnds(),
        "maybe_placeholders": True,
        "transformer": _BUILDER,
    }
    folder = cache_folder()
    if folder is None:
        return Lark(grammar_text(), **options)
    # The tables of the grammar take longer to make than most specs to read; Lark keeps them in a file whose
    # content it checks against the grammar and its own version.
    return Lark(grammar_text(), cache=str(folder / "place.tables"), **options)


def lexed(text: str, start: int = 0) -> Iterator[Token]:
    """The tokens of a text from an offset on, without blanks, comments, and line ends that mean nothing."""
    # What is passed over becomes blanks, so offsets stay.  Lark.lex would build its lexer anew at every call.
    reading = _parser().parse_interactive(" " * start + text[start:])
    found: Iterator[Token] = reading.lexer_thread.lex(reading.parser_state)  # type: ignore[no-untyped-call]
    return found


def productions() -> dict[str, list[tuple[str, ...]]]:
    """The grammar: for each rule the symbols that it can be made of."""
    out: dict[str, list[tuple[str, ...]]] = {}
    for rule in _parser().rules:
        out.setdefault(rule.origin.name, []).append(tuple(symbol.name for symbol in rule.expansion))
    return out


def terminals() -> dict[str, str]:
    """The tokens of the grammar that are always the same text: keywords, operators, brackets."""
    return {t.name: str(t.pattern.value) for t in _parser().terminals if t.pattern.type == "str"}


def parse(source: Source) -> syntax.Module:
    """The syntax tree of a text; raises InputError with all syntax errors found."""
    module, found = parse_readable(source)
    if found:
        raise InputError(found)
    return module


def parse_readable(source: Source) -> tuple[syntax.Module, list[Diagnostic]]:
    """The statements of a text that can be read, and all syntax errors found in the rest."""
    halves = _halves(source) if _HALF.search(source.text) else []
    if halves:
        return syntax.Module(source, ()), halves
    try:
        statements_of_text = _statements(source.text, source)
    except InputError as problem:
        whole = problem
    else:
        deepest = limits.count("nesting")
        deep = [(s, p) for s in statements_of_text for p in _nested_parts(s) if _nesting_depth(p) > deepest]
        message = f"an expression here is nested more than {deepest} deep"
        hint = limits.hint("take it apart with param and set, and write long sums as sum(v in …: …)", "nesting")
        kept = tuple(s for s in statements_of_text if all(s is not d for d, _ in deep))
        return syntax.Module(source, kept), [Diagnostic(message, p.at.span, hint) for _, p in deep]
    found: list[Diagnostic] = []
    statements: list[syntax.Statement] = []
    chunks = _chunks(source, found)
    for start, end in chunks:
        _parse_chunk(source, start, end, found, statements)
        if len(found) >= _MOST_ERRORS:
            break
    else:
        # Past a bracket that nothing closes, statements are known by the margin that they begin at.
        for start, end in _cut_at_line_starts(source.text, chunks[-1][1] if chunks else 0):
            _parse_chunk(source, start, end, [], statements)
    return syntax.Module(source, tuple(statements)), list(dict.fromkeys(found)) or list(whole.diagnostics)


def _halves(source: Source) -> list[Diagnostic]:
    """Halves of surrogate pairs, which are no characters, outside of comments."""
    out = []
    for match in _SCAN.finditer(source.text):
        token = match[0]
        if token[0] == '"' and any("\ud800" <= c <= "\udfff" for c in _unquoted(token)):
            out.append(
                Diagnostic(f"{token!a} is no text: half of a surrogate pair stands in it", source.span(*match.span()))
            )
    raw = re.search("[\ud800-\udfff]", source.text)
    if raw and not out:
        out.append(Diagnostic(f"{raw[0]!a} is no character", source.span(raw.start())))
    return out[:_MOST_ERRORS]


def _unquoted(token: str) -> str:
    try:
        return str(json.loads(token))
    except json.JSONDecodeError:
        return token


def _nested_parts(statement: syntax.Statement) -> tuple[syntax.Statement | syntax.Rule, ...]:
    """What is nested by itself: the rules of a statement, or it as a whole."""
    if isinstance(statement, syntax.GraphInline):
        return ()
    return statement.rules if isinstance(statement, syntax.Subject) else (statement,)


def _nesting_depth(statement: syntax.Statement | syntax.Rule) -> int:
    """How many pieces of syntax lie within one another."""
    deepest = 0
    stack: list[tuple[object, int]] = [(statement, 1)]
    while stack:
        part, level = stack.pop()
        deepest = max(deepest, level)
        if isinstance(part, tuple):
            stack.extend((p, level) for p in part if not isinstance(p, str | int))
        elif hasattr(part, "__slots__"):
            stack.extend((getattr(part, s), level + 1) for s in part.__slots__ if s != "at")
    return deepest


def _statements(text: str, source: Source) -> tuple[syntax.Statement, ...]:
    """Parse a text whose offsets are those of the source."""
    try:
        with _ONE_AT_A_TIME:
            _BUILDER.source = source
            built = _parser().parse(text)
    except UnexpectedInput as problem:
        raise InputError([syntax_error(problem, source, terminals(), len(text.rstrip()))]) from None
    except RecursionError:
        raise InputError([Diagnostic("the text is nested too deeply to be read", source.whole())]) from None
    statements: Any = built  # what the transformer makes of the tree
    return attach_rules(statements)


def _extent(first: syntax.Subject | syntax.Tight, last: syntax.Rule) -> syntax.At:
    return syntax.At(first.at.start, last.at.end, first.at.source)


def attach_rules(statements: tuple[syntax.Statement | syntax.Rule, ...]) -> tuple[syntax.Statement, ...]:
    """Hang each rule under the ``subject to`` before it."""
    out: list[Any] = []
    for statement in statements:
        if not isinstance(statement, syntax.Rule):
            out.append(statement)
        elif out and isinstance(out[-1], syntax.Subject | syntax.Tight):
            head = out[-1]
            rules = (*head.rules, statement)
            out[-1] = replace(head, at=_extent(head, statement), rules=rules)
        else:
            hint = nearest(statement.name.text, KEYWORDS)
            if "did you mean" not in hint:
                hint = "constraints stand after 'subject to'"
            raise InputError([Diagnostic(f"'{statement.name.text}' is no statement", statement.name.at.span, hint)])
    merged: list[Any] = []
    for statement in out:
        if isinstance(statement, syntax.Formulation | syntax.Part):
            clauses: Any = attach_rules(statement.clauses)  # type: ignore[arg-type]
            merged.append(replace(statement, clauses=clauses))
        else:
            merged.append(statement)
    return tuple(merged)


_SCAN = re.compile(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|[(){}\[\]]|\n')
_PAIRS = {")": "(", "]": "[", "}": "{"}


#: A part and an option begin a statement; the names ``part`` and ``option`` do not.
_SOFT_STATEMENT = re.compile(r"(?:part[ \t]+(?!in\b)[^\W\d]\w*[ \t]*\{|option[ \t]+(?:\"|(?!in\b)[^\W\d]\w*[ \t]*\())")


def _chunks(source: Source, found: list[Diagnostic]) -> list[tuple[int, int]]:
    """Top-level statements as (start, end) offsets: cut at keywords that begin a line outside brackets."""
    text = source.text
    cuts = [0]
    stack: list[tuple[str, int]] = []
    for match in _SCAN.finditer(text):
        token = match[0]
        if token in "([{":
            stack.append((token, match.start()))
        elif token in _PAIRS:
            if not stack or stack[-1][0] != _PAIRS[token]:
                found.append(Diagnostic(f"'{token}' closes nothing", source.span(match.start())))
                return []
            stack.pop()
        elif token == "\n":
            word = re.compile(r"[ \t]*([a-z]+)\b(?![ \t]*:)").match(text, match.end())
            if word and (word[1] in STATEMENTS or _SOFT_STATEMENT.match(text, word.start(1))):
                if not stack:
                    cuts.append(match.end())
                elif stack[-1][0] != "{" and word.end() - len(word[1]) == match.end():
                    break  # a keyword at the margin: the bracket was forgotten
    if stack:
        opener, at = stack[-1]
        found.append(Diagnostic(f"'{opener}' is never closed", source.span(at)))
        cuts = [c for c in cuts if c <= stack[0][1]]
        end = max((c for c in cuts), default=0)
        return list(itertools.pairwise(cuts)) if end else []
    cuts.append(len(text))
    return list(itertools.pairwise(cuts))


def _cut_at_line_starts(text: str, start: int) -> list[tuple[int, int]]:
    """Parts of a text from an offset on, cut where a line begins with a keyword of a statement."""
    cuts = [
        m.start()
        for m in re.finditer(rf"^(?:(?:{'|'.join(STATEMENTS)})\b|{_SOFT_STATEMENT.pattern})", text, re.MULTILINE)
    ]
    cuts = [c for c in cuts if c >= start]
    return list(itertools.pairwise([*cuts, len(text)]))


def _parse_chunk(source: Source, start: int, end: int, found: list[Diagnostic], out: list[syntax.Statement]) -> None:
    """Parse one chunk; after an error, blank its line and try again for the next error."""
    text = source.text
    body = text[start:end]
    blanked: set[int] = set()
    for _ in range(_TRIES):
        padded = "\n" * text.count("\n", 0, start) + " " * (start - text.count("\n", 0, start)) + body
        try:
            out.extend(_statements(padded, source))
            return
        except InputError as problem:
            (diagnostic,) = problem.diagnostics
            found.append(diagnostic)
            if diagnostic.span is None or len(found) >= _MOST_ERRORS:
                return
            line = diagnostic.span.line
            first = start
            for _ in range(line - 1 - text.count("\n", 0, start)):
                first = text.find("\n", first) + 1
            last = text.find("\n", first)
            last = end if last < 0 else min(last, end)
            shown = body[first - start : last - start]
            if line in blanked or any(shown.count(a) != shown.count(b) for a, b in ("()", "[]", "{}")):
                return
            blanked.add(line)
            head = re.match(r"[ \t]*subject[ \t]+to\b", shown)  # what stands below still stands below it
            kept = head[0] if head else ""
            body = body[: first - start] + kept.ljust(last - first) + body[last - start :]
