"""Names that a format takes, each of them once, from words that may be anything."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Alphabet:
    """What a format takes for a name: ``illegal`` matches what it does not, ``first`` what it may begin with."""

    illegal: re.Pattern[str]
    first: re.Pattern[str]
    reserved: frozenset[str]
    longest: int


_SECTIONS = """
max maximize maximise maximum min minimize minimise minimum subject such st s.t. st. bounds bound free general generals
gen integer integers int binary binaries bin semi semis sos sos1 sos2 sec end inf infinity nan name rows columns rhs
ranges objsense objsen objname marker endata lazy user cuts
"""
_RESERVED = frozenset(_SECTIONS.split())

#: CBC takes a hundred characters, others more.  An "e" in front could be read as part of a number.
LP = Alphabet(re.compile(r"[^A-Za-z0-9_.]+"), re.compile(r"[A-DF-Za-df-z_]"), _RESERVED, 100)
MPS = Alphabet(re.compile(r"[^A-Za-z0-9_.,()\[\]]+"), re.compile(r"[A-Za-z_]"), _RESERVED, 100)
PYTHON = Alphabet(re.compile(r"[^A-Za-z0-9_]+"), re.compile(r"[A-Za-z]"), frozenset(keyword.kwlist), 60)


#: What is left of ``gpu[1]`` needs no underscore at its end.
_BEFORE_THE_NEXT = re.compile(r"_+(?=[.,)\]]|$)")


def legal_names(texts: Iterable[str], alphabet: Alphabet, taken: Iterable[str] = ()) -> list[str]:
    """A legal name for each text, in their order; none occurs twice, nor is any of ``taken`` among them."""
    return unique((_legal(text, alphabet) for text in texts), taken)


def unique(texts: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """The texts, those that have occurred before with a number."""
    used, numbers, out = set(taken), dict[str, int](), []
    for text in texts:
        name = text
        while name in used:
            numbers[text] = numbers.get(text, 1) + 1
            name = f"{text}_{numbers[text]}"
        used.add(name)
        out.append(name)
    return out


def _legal(text: str, alphabet: Alphabet) -> str:
    name = _BEFORE_THE_NEXT.sub("", alphabet.illegal.sub("_", text))
    # A name keeps room for a number.
    name = name[: alphabet.longest - 10]
    if not alphabet.first.match(name) or name.lower() in alphabet.reserved:
        name = ("v" if alphabet is PYTHON else "_") + name
    return name
