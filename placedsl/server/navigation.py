"""From a name to where it is declared, to everywhere it is used, and to another name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from placedsl.diagnostics import Source
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.keywords import RESERVED
from placedsl.language.syntax.printer import word
from placedsl.server.built_in import built_in_constraints, formulas, parts
from placedsl.server.document_state import DocumentState
from placedsl.server.known_names import KnownNames
from placedsl.server.reading import Place, place, read
from placedsl.server.scopes import names
from placedsl.server.symbols import Names, Occurrence, Symbol

T = TypeVar("T")
_RENAMED = ("parameter", "set", "device", "node", "variable", "decision", "constraint", "key", "formulation",
            "part", "definition")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """A place in a text: the document's own, or a file of ``models/``."""

    source: Source
    at: Place


class RenameError(ValueError):
    """Why a name cannot be changed into another one."""


def definition(state: DocumentState, offset: int) -> Target | None:
    """Where the name under an offset is declared; built-in constraints and quantities are so in ``models/``."""
    found = state.names.at(offset)
    if found is None:
        return None
    if found.symbol is not None:
        return Target(state.reading.source, found.symbol.at)
    imported = _imported(state, found.name)
    if imported is not None:
        return imported
    if found.kind == "constraint" and found.name in built_in_constraints():
        node, source = built_in_constraints()[found.name]
        return Target(source, place(node.name.at))
    if found.kind == "quantity":
        return _provided(state, found.name)
    if found.kind == "part" and found.name in parts():
        word = parts()[found.name].name
        return Target(word.at.source, place(word.at))
    return None


def _imported(state: DocumentState, name: str) -> Target | None:
    """Where a text that is imported declares a name."""
    for meaning in state.meanings:
        for statement in meaning.elaborated.statements:
            word = getattr(statement, "name", None)
            source = statement.at.source
            if isinstance(word, syntax.Word) and word.text == name and source.name != state.reading.source.name:
                return None if source.name == "" else Target(source, place(word.at))
    return None


def _provided(state: DocumentState, name: str) -> Target | None:
    """The formula of a quantity, in the formulation of the schedule that the text is for."""
    schedules = [s.name.text for s in state.reading.module.statements if isinstance(s, syntax.Schedule)]
    wanted = schedules[0] if schedules else "pipedream"
    at = next(formulas(state.reading.module.statements, name, wanted), None)
    return None if at is None else Target(at.source, place(at))


def references(state: DocumentState, offset: int, declaration: bool = True) -> list[Place]:
    """Everywhere that what is named at an offset is named; for what the text does not declare, where it is used."""
    found = state.names.at(offset)
    if found is None:
        return []
    if found.symbol is None:
        alike = [o for o in state.names.occurrences if (o.kind, o.name, o.sort) == (found.kind, found.name, found.sort)]
        return [o.at for o in alike]
    return [o.at for o in state.names.of(found.symbol) if declaration or o.at != found.symbol.at]


def renamable(state: DocumentState, offset: int) -> Occurrence:
    """The name under an offset, if it can be changed; RenameError says why it cannot."""
    if state.reading.errors:
        raise RenameError("the text has syntax errors: what is named there could be missed")
    found = state.names.at(offset)
    if found is None:
        raise RenameError("there is no name here")
    if found.symbol is None or found.symbol.kind not in _RENAMED:
        raise RenameError(f"'{found.name}' is not declared in this text")
    return found


def rename(state: DocumentState, offset: int, new: str) -> list[tuple[Place, str]]:
    """The edits that give what is named at an offset another name everywhere; RenameError says why there are none.

    What the text means stays the same: a name that is reserved or that would be taken for something else is refused.
    """
    found = renamable(state, offset)
    symbol = found.symbol
    assert symbol is not None
    places = state.names.of(symbol)
    plain = word(new) == new and (new[0].isalpha() or new[0] == "_") if new else False
    if new in RESERVED and any(o.plain for o in places):
        raise RenameError(f"'{new}' is a word of the language")
    if not plain and (any(o.plain for o in places) or symbol.kind in ("decision", "constraint", "formulation", "key")):
        raise RenameError(f"'{new}' is no plain word, and in an expression a name cannot stand in quotes")
    if not new or any(c in new for c in "\n\r"):
        raise RenameError("a name is one line of text")
    _refuse_clash(state.names, state.words, symbol, new)
    edits = [(o.at, json.dumps(new, ensure_ascii=False) if o.quoted else word(new)) for o in places]
    _refuse_change(state, symbol, new, edits)
    return edits


def _refuse_clash(known: Names, words: KnownNames, symbol: Symbol, new: str) -> None:
    """What goes by that name already where this one does."""
    apart = ("constraint", "formulation")
    if symbol.kind in apart:
        taken = {s.name: s.kind for s in known.symbols if s.kind == symbol.kind and s is not symbol}
        built_in = set(built_in_constraints()) if symbol.kind == "constraint" else set()
    else:
        taken = {s.name: s.kind for s in known.symbols if s.kind not in (*apart, "variable", "key") and s is not symbol}
        built_in = {*words.sets, *words.quantities, *words.nodes, "true", "false", "accelerator", "host"}
    if new in taken:
        raise RenameError(f"'{new}' is the name of a {taken[new]} already")
    if new in built_in - {symbol.name}:
        raise RenameError(f"'{new}' has a meaning already")


def _refuse_change(state: DocumentState, symbol: Symbol, new: str, edits: list[tuple[Place, str]]) -> None:
    """Read the new text: it must have the same names in the same places, each standing for what it stood for."""
    text = state.reading.source.text
    for (start, end), replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    again = read(text, state.reading.source.name)
    if again.errors:
        raise RenameError(f"with '{new}' the text would not be read any more: {again.errors[0].message}")
    was, now = _meant(state.names, symbol, new), _meant(names(again, _renamed(state.words, symbol, new)), None, "")
    if was != now:
        raise RenameError(f"'{new}' would be taken for something else, or something else for it")


def _renamed(words: KnownNames, symbol: Symbol, new: str) -> KnownNames:
    """The words of the data with the new name in place of the old one."""
    if symbol.kind not in ("device", "set", "node"):
        return words

    def changed(known: Mapping[str, T]) -> dict[str, T]:
        return {new if name == symbol.name else name: value for name, value in known.items()}

    return replace(words, sets=changed(words.sets), families=changed(words.families), nodes=changed(words.nodes))


def _meant(known: Names, symbol: Symbol | None, new: str) -> list[tuple[str, str, str, int]]:
    """Each name with its kind and the number of the symbol that it stands for, in the order of the text."""
    number: dict[Symbol | None, int] = {s: i for i, s in enumerate(known.symbols)}
    return [
        (o.kind, new if symbol is not None and o.symbol is symbol else o.name, o.sort[:6], number.get(o.symbol, -1))
        for o in known.occurrences
    ]
