"""Write the TextMate grammar of the language: ``python editors/vscode/textmate.py``.

Keywords, operators and units are those of placedsl's own grammar; run this after a change of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from placedsl.language.syntax.keywords import KEYWORDS, RESERVED
from placedsl.language.syntax.parser import terminals
from placedsl.language.syntax.tokens import beginnings
from placedsl.units import UNIT_PATTERN

TARGET = Path(__file__).resolve().parent / "syntaxes" / "place.tmLanguage.json"
_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_NAME = r"[^\W\d]\w*"
_DECLARING = {"device", "param", "set", "node", "var", "formulation", "constraint", "define", "extend"} & RESERVED


def grammar() -> dict[str, Any]:
    """The TextMate grammar."""
    texts = terminals()
    aggregates = {texts[name] for name in beginnings("_aggregate")}
    others = RESERVED - set(KEYWORDS) - aggregates
    signs = {t for t in texts.values() if not t[0].isalnum()} - set("()[]{},:.")
    signs |= {"<=", ">=", "==", "!=", "<", ">"}  # one token of the grammar
    patterns = [
        _match("comment.line.number-sign.place", "#.*$"),
        {
            "name": "string.quoted.double.place",
            "begin": '"',
            "end": '"|$',
            "patterns": [_match("constant.character.escape.place", r"\\.")],
        },
        _captures(rf"\b({_NUMBER})[ \t]*({UNIT_PATTERN})(?!\w)", "constant.numeric.place", "keyword.other.unit.place"),
        _match("constant.numeric.place", rf"\b{_NUMBER}\b"),
        _match("keyword.operator.range.place", r"\.\."),
        _captures(rf"(\.)({_NAME})", "punctuation.accessor.place", "variable.other.property.place"),
        _captures(rf"\b({_any(_DECLARING)})[ \t]+({_NAME})", "keyword.control.place", "entity.name.type.place"),
        _match("keyword.control.place", rf"\b(?:{_any(KEYWORDS)})\b"),
        _match("support.function.aggregate.place", rf"\b(?:{_any(aggregates)})\b"),
        _match("keyword.operator.word.place", rf"\b(?:{_any(others)})\b"),
        _match("constant.language.place", r"\b(?:true|false|accelerator|host)\b"),
        _match("entity.name.function.place", rf"\b{_NAME}(?=\()"),
        _match("keyword.operator.place", _any(signs)),
        _match("punctuation.separator.place", "[,:]"),
    ]
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "Place",
        "scopeName": "source.place",
        "fileTypes": ["place"],
        "patterns": patterns,
    }


def _any(texts: Iterable[str]) -> str:
    """One of the texts, the longest that fits."""
    return "|".join(re.escape(text) for text in sorted(texts, key=lambda text: (-len(text), text)))


def _match(name: str, pattern: str) -> dict[str, Any]:
    return {"name": name, "match": pattern}


def _captures(pattern: str, first: str, second: str) -> dict[str, Any]:
    return {"match": pattern, "captures": {"1": {"name": first}, "2": {"name": second}}}


def text() -> str:
    """The file as it is to be."""
    return json.dumps(grammar(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
