"""What a text declares, and everywhere that it names something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from placedsl.problem.expressions import Sort
from placedsl.server.reading import Place


@dataclass(frozen=True, eq=False)
class Symbol:
    """One thing that a text declares.

    ``kind``: parameter, set, device, node, variable (bound), decision, constraint, formulation or key;
    ``at`` where its name is declared, ``node`` the syntax that declares it, ``sort`` what a bound variable ranges over.
    """

    kind: str
    name: str
    at: Place
    node: Any
    sort: Sort = ""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at a place.

    ``kind`` as of symbols, or quantity, attribute, built-in, entry, rule, word; ``symbol`` is what the text declares
    by that name, if it does; ``sort`` whose attribute it is; ``plain``: only a plain word can stand here, no text in
    quotes; ``quoted``: only a text in quotes can.
    """

    at: Place
    name: str
    kind: str
    symbol: Symbol | None = None
    sort: Sort = ""
    plain: bool = True
    quoted: bool = False


@dataclass(frozen=True)
class Names:
    """All symbols and occurrences of a text, in the order of the text."""

    symbols: tuple[Symbol, ...]
    occurrences: tuple[Occurrence, ...]

    def at(self, offset: int) -> Occurrence | None:
        """The name under an offset; right behind one is still that one."""
        found = [o for o in self.occurrences if o.at[0] <= offset <= o.at[1]]
        return min(found, key=lambda o: (o.at[1] - o.at[0], o.at[1] == offset), default=None)

    def of(self, symbol: Symbol) -> list[Occurrence]:
        """Everywhere that a symbol is named, its declaration included."""
        return [o for o in self.occurrences if o.symbol is symbol]
