"""What is known of one document at one moment: its text as it is now, and the last meaning that could be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from placedsl.evaluation.expressions import Compiler
from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.quantities import Quantities
from placedsl.language.elaboration.elaborate import Elaborated
from placedsl.server.known_names import KnownNames, words
from placedsl.server.reading import Reading
from placedsl.server.scopes import names
from placedsl.server.symbols import Names


@dataclass(frozen=True, eq=False)
class Meaning:
    """A checked spec, and the elements of its sets."""

    elaborated: Elaborated

    @cached_property
    def data(self) -> ProblemData:
        """The data as plain lists."""
        return ProblemData(self.elaborated.problem)

    @cached_property
    def _compiler(self) -> Compiler:
        nowhere = [-1] * self.data.nodes
        return Compiler(self.data, Quantities(self.data, nowhere))

    def elements(self, name: str) -> Sequence[Any]:
        """The elements of a set by its name, as positions; sets do not depend on where nodes are."""
        return self._compiler.named(name)


@dataclass(frozen=True)
class DocumentState:
    """A document as it is being written.

    ``meanings`` are what the text means now as far as it can be told, then what it meant when it was last without
    errors; ``folder`` is where its file names start from.
    """

    reading: Reading
    meanings: tuple[Meaning, ...]
    folder: str

    @cached_property
    def words(self) -> KnownNames:
        """The names that can be used."""
        return words([meaning.elaborated.vocabulary for meaning in self.meanings])

    @cached_property
    def names(self) -> Names:
        """What each name of the text stands for."""
        return names(self.reading, self.words)
