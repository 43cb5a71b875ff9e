"""What the parser stumbles over, in the user's words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from placedsl.diagnostics import Diagnostic, Source, nearest
from placedsl.language.syntax.keywords import KEYWORDS, RESERVED, STATEMENTS

_WORDS = {
    "NAME": "a name", "NUMBER": "a number", "QUANTITY": "a quantity like '16 GiB'", "STRING": "a quoted text",
    "ORDER": "'1f1b'",
    "_NL": "the end of the line", "$END": "the end of the text", "COLON": "':'", "EQUAL": "'='",
    "COMMA": "','", "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'",
    "RBRACE": "'}'", "COMPARE": "a comparison", "DOT": "'.'", "__DOTDOT": "'..'",
}  # fmt: skip


#: What a line cannot end with: the next one goes on with it.
_GOES_ON = r"(?:\b(?:then|and|or|not|on|in|where)|<=>|=>|[<>=!]=|[<>=+*/,:-])"
#: Such a line, and the name of a rule that the next one begins with.
_RULE_INSTEAD = re.compile(rf"({_GOES_ON})[ \t]*(?:#[^\n]*)?\n\s*[A-Za-z_]\w*[ \t]*$")


def syntax_error(
    problem: UnexpectedInput, source: Source, terminals: Mapping[str, str], end: int | None = None
) -> Diagnostic:
    """A Lark error in the user's words; ``end``: where what was read ends, if that is not the whole text."""
    text = source.text if end is None else source.text[:end]
    if isinstance(problem, UnexpectedCharacters):
        at = problem.pos_in_stream or 0
        shown = text[at] if at < len(text) else ""
        if shown == '"':
            return Diagnostic("this quoted text is never closed", source.span(at), 'end it with " on the same line')
        return Diagnostic(f"'{shown}' cannot stand here", source.span(at), _keyword_hint(text, at))
    if not isinstance(problem, UnexpectedToken):
        return Diagnostic("the text ends too early", source.span(max(0, len(text) - 1)))
    token = problem.token
    expected = _expected(problem, terminals)
    if token.type in ("$END", "_NL") and "ELSE" in (problem.accepts or problem.expected):
        line = re.search(r"[^\n]*$", text[: token.start_pos if token.type == "_NL" else len(text.rstrip())])
        expected += f"; an implication is written {_implication(line[0] if line else '') or 'A => B'}"
    if token.type == "$END":
        stop = len(text.rstrip()) - 1
        what = "the text ends in the middle of a statement"
        if source.text[len(text) :].strip():
            what = "a statement ends too early"
        return Diagnostic(what, source.span(max(0, stop)), expected)
    start = token.start_pos or 0
    if token.type == "_NL":
        return Diagnostic("the line ends too early", source.span(start), expected)
    shown = str(token)
    unfinished = _RULE_INSTEAD.search(text[:start]) if shown == ":" else None
    if unfinished is not None:
        return Diagnostic("the line ends too early", source.span(*unfinished.span(1)), "expected: an expression")
    before = re.search(r"(?:^|\n)[ \t]*([a-z]+)[ \t]*$", text[:start])
    if shown == ":" and before is not None and before[1] in RESERVED:
        place = source.span(before.start(1), before.end(1))
        return Diagnostic(f"'{before[1]}' is a word of the language", place, "choose another name for the constraint")
    hint = _other_spelling_hint(text, start)
    # A word at the margin reads as a rule of 'subject to', which is seldom what it was meant to be.
    first = re.search(r"(?:^|\n)([A-Za-z_]\w*)[ \t]+$", text[:start])
    if first is not None and not hint and first[1] not in RESERVED:
        place = source.span(first.start(1), first.end(1))
        meant = _keyword_hint(text, start) or f"known: {', '.join(STATEMENTS)}"
        if first[1] in _CLUSTERS:
            meant = "devices in one place, and the links between them, are a cluster: cluster big { device … }"
        return Diagnostic(f"no statement begins with '{first[1]}'", place, meant)
    hint = hint or _keyword_hint(text, start)
    hint = hint or expected
    return Diagnostic(f"unexpected '{shown}'", source.span(start, start + len(shown)), hint)


#: What people call clusters.
_CLUSTERS = ("server", "servers", "machine", "node", "pod", "rack")
#: What comes before the place and at it, and what is written instead.
_OTHERWISE = (
    (r"\bsubject\s+to\s*$", r":", "the constraints stand below, one a line, each indented; no colon"),
    (r":\s*[\w\"]+\s*$", r",[\w\s\",]+\bon\b", "for several nodes: forall v in {a, b}: v on cpu"),
    (r"\bcongestion\s+by\s+$", r"\w", "congestion is by port or by link"),
    (r"\bon\s+[\w\[\]\"]+\s*$", r"==|!=|<=|>=|<|>", "put brackets around it: (v on d) == (w on d)"),
    (r"\b(?:where|and|or|if|not)\b[^\n]*$", r"=(?!=)", "a comparison is written =="),
    (r"\b(?:any|some)\s+$", r"\w", "as in exists v in nodes: v on cpu"),
    (r"(?:^|\n)\s*maximi[sz]e\s+$", r".", "minimise its negative: minimize -x"),
    (
        r"(?:^|\n)\s*fuse\s[^\n]*$",
        rf"(?:{'|'.join(RESERVED)})\b",
        'a word of the language stands in quotes: fuse "sum" + bn',
    ),
    (r"\bminimize\b[^\n]*$", r",", "several objectives stand in order: minimize a then b"),
)


#: What begins a formula, and what goes on with one: where a name with a colon is missing.
_OPENS = re.compile(r"(?:(?:not|forall|exists|if|sum|count|max|min|mean)\b|[({\d-])")
_CONTINUES = re.compile(r"(?:on|not|and|or|in)\b|==|!=|<=>|<=|>=|=>|[<>+*/.\[-]")


def _implication(line: str) -> str:
    """``A => B`` for a line with ``if A then B`` that has no ``else``; empty for any other."""
    found = re.search(r"\bif\s+(.+?)\s+then\s+(.+)$", line)
    return f"{found[1]} => {found[2]}" if found is not None and " else " not in line else ""


def _other_spelling_hint(text: str, at: int) -> str:
    """How something is said here that other languages say otherwise."""
    before, rest = text[max(0, at - 400) : at], text[at:]
    here = rest.partition("\n")[0].partition("#")[0].rstrip()
    denied = re.search(r"([\w.]+(?:\[[^\]\n]*\])?)\s+$", before)
    negated = re.match(r"not\s+(on\s+[^\s()]+)(.*)", here) if denied is not None else None
    if negated is not None and denied is not None:
        here = f"not ({denied[1]} {negated[1]}){negated[2]}"
        before = before[: denied.start()]
    line = re.search(r"(?:^|\n)(?:[ \t]+|[ \t]*subject[ \t]+to[ \t]+)(|\S[^\n:]*)$", before)
    margin = re.findall(r"^[a-z]+", text[:at], re.MULTILINE)
    if line is not None and margin[-1:] == ["subject"] and (_CONTINUES if line[1] else _OPENS).match(rest):
        stated = "the negation stands in front, and a formula needs a name" if negated else "a formula needs a name"
        whole = line[1] + here
        return f"{stated}: rule: {_implication(whole) or whole}"
    if negated is not None:
        return f"the negation stands in front: {here}"
    return next((h for left, here, h in _OTHERWISE if re.search(left, before) and re.match(here, rest)), "")


def _expected(problem: UnexpectedToken, terminals: Mapping[str, str]) -> str:
    names = problem.accepts or problem.expected
    if {"NAME", "NUMBER", "LPAR", "MINUS"} <= set(names):
        return "expected: an expression"
    if "GRAPH" in names and "DEVICE" in names:
        return "expected: a statement (" + ", ".join(STATEMENTS) + ")"
    words = [_WORDS.get(n) or f"'{terminals.get(n, n.lower())}'" for n in sorted(names)]
    if len(words) > 8:
        punctuation = [_WORDS[n] for n in ("COLON", "EQUAL", "RPAR", "RSQB", "RBRACE", "COMMA", "_NL") if n in names]
        words = punctuation or words[:8]
    return "expected: " + " or ".join(dict.fromkeys(words))


def _keyword_hint(text: str, at: int) -> str:
    """The keyword that the first word of the line may have been meant to be."""
    line_start = text.rfind("\n", 0, at) + 1
    first = re.match(r"\s*([A-Za-z_]+)", text[line_start:])
    if first is None or first[1] in KEYWORDS:
        return ""
    hint = nearest(first[1], KEYWORDS)
    return hint if "did you mean" in hint else ""
