"""JSON texts: parsed, with every defect at its place.

Beside what is no JSON, these are refused, though Python's own parser lets them pass: a key that stands twice in an
object, a number that is none or beyond floating point, half of a surrogate pair.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from placedsl.diagnostics import Diagnostic, InputError, Source

_MOST = 100
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|-?(?:Infinity|\d[\d.eE+-]*)|NaN', re.DOTALL)
_COLON = re.compile(r"[ \t\r\n]*:")
#: What may be a number beyond floating point, or half of a pair; both are looked for in the whole text first.
_LARGE = re.compile(r"[eE]\+?\d{3}|\d{300}")
#: Whole numbers of more digits than Python reads, and surely beyond floating point.
_MOST_DIGITS = 4000
_MANY_DIGITS = re.compile(rf"\d{{{_MOST_DIGITS}}}")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def parsed(source: Source) -> Any:
    """The value of a JSON text; InputError with every defect."""
    suspicious = _LARGE.search(source.text) is not None or _HALF.search(source.text) is not None

    def fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal suspicious
        out = dict(pairs)
        suspicious |= len(out) < len(pairs)
        return out

    def no_number(text: str) -> float:
        nonlocal suspicious
        suspicious = True
        return float(text)

    def whole(text: str) -> int | float:
        return int(text) if len(text) <= _MOST_DIGITS else float(text)

    try:
        # Such a function is called for every whole number.
        known = whole if _MANY_DIGITS.search(source.text) else None
        root = json.loads(source.text, object_pairs_hook=fields, parse_constant=no_number, parse_int=known)
    except json.JSONDecodeError as problem:
        ended = not source.text[problem.pos :].strip()
        message = "the file ends in the middle of its JSON" if ended else f"this is not JSON: {problem.msg}"
        at = min(problem.pos, max(0, len(source.text.rstrip()) - 1))
        raise InputError([Diagnostic(message, source.span(at), "was it cut off?" if ended else "")]) from None
    except RecursionError:
        raise InputError([Diagnostic("this JSON is nested too deeply", source.whole())]) from None
    if suspicious:
        found = _defects(source)
        if found:
            raise InputError(found)
    return root


def _defects(source: Source) -> list[Diagnostic]:
    """Repeated keys, numbers that are none, halves of pairs, in the order of the text, which is JSON."""
    out: list[Diagnostic] = []
    keys: list[set[str] | None] = []
    last = ""
    text = source.text
    for match in _TOKEN.finditer(text):
        token, span = match[0], source.span
        if token in "{[":
            keys.append(set() if token == "{" else None)
        elif token in "}]":
            keys.pop()
        elif token[0] == '"':
            value = json.loads(token, strict=False)
            if any("\ud800" <= c <= "\udfff" for c in value):
                out.append(
                    Diagnostic(f"{value!a} is no text: half of a surrogate pair stands in it", span(*match.span()))
                )
            if keys and keys[-1] is not None and _COLON.match(text, match.end()):
                if value in keys[-1]:
                    out.append(
                        Diagnostic(f"'{value}' is there twice", span(*match.span()), "a key stands once in an object")
                    )
                keys[-1].add(value)
                last = value
        elif token not in ":,":
            number = _float(token)
            if not math.isfinite(number):
                what = "is not a number" if math.isnan(number) else "is infinite, or too large"
                hint = "a finite number is expected"
                out.append(Diagnostic(f"'{last}' {what}" if last else f"this {what}", span(*match.span()), hint))
        if len(out) >= _MOST:
            break
    return out


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
