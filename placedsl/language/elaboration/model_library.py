"""What comes with placedsl in the language itself: formulations, parts and built-in constraints of ``models/``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from placedsl import plugins
from placedsl.diagnostics import Source
from placedsl.language.checking.schedule_vocabulary import QUANTITIES
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.kept_trees import tree
from placedsl.language.syntax.source_files import read_source
from placedsl.system.installation import model_files

#: How statements begin; in these files all do so at the margin.
_HEAD = re.compile(r"^(constraint|define|formulation|part)[ \t]+(\w+)", re.MULTILINE)


def sources() -> tuple[Source, ...]:
    """The texts of the files of ``models/``."""
    return tuple(_source(path) for path in model_files())


def modules() -> tuple[syntax.Module, ...]:
    """The parsed files of ``models/``."""
    return tuple(_module(path) for path in model_files())


@lru_cache(maxsize=64)
def _module(path: Path) -> syntax.Module:
    return tree(_source(path), path.name)


@lru_cache(maxsize=64)
def _source(path: Path) -> Source:
    return read_source(path)


@lru_cache(maxsize=64)
def _heads(path: Path) -> tuple[tuple[str, str], ...]:
    """Keyword and name of each statement of a file, which is not parsed for that."""
    return tuple((match[1], match[2]) for match in _HEAD.finditer(_source(path).text))


def _stated(keyword: str) -> Iterator[syntax.Statement]:
    """The statements of the files that have some that begin so; the others are not parsed."""
    files = (path for path in model_files() if any(kind == keyword for kind, _ in _heads(path)))
    return (statement for path in files for statement in _module(path).statements)


@lru_cache(maxsize=1)
def constraint_definitions() -> Mapping[str, syntax.ConstraintDefinition]:
    """Built-in constraints by name."""
    return {s.name.text: s for s in _stated("constraint") if isinstance(s, syntax.ConstraintDefinition)}


def from_plugins(wanted: Iterable[str]) -> dict[str, syntax.ConstraintDefinition]:
    """The constraints by these names that plug-ins bring."""
    out: dict[str, syntax.ConstraintDefinition] = {}
    for name in wanted:
        plugin = plugins.find("constraints", name)
        if plugin is None:
            continue
        given = plugin.load()
        text = given if isinstance(given, str) else plugin.text(given)
        module = tree(Source(f"<{plugin}>", text))
        definitions = {s.name.text: s for s in module.statements if isinstance(s, syntax.ConstraintDefinition)}
        if name not in definitions or len(definitions) < len(module.statements):
            raise plugins.PluginError(f"{plugin} gives a text that does not hold 'constraint {name} = …' alone")
        out[name] = definitions[name]
    return out


def models() -> dict[str, syntax.Formulation]:
    """The formulations of ``models/`` by name, not yet composed of their parts."""
    return {s.name.text: s for s in _stated("formulation") if isinstance(s, syntax.Formulation)}


class _Parts(Mapping[str, syntax.Part]):
    """Parts by name, parsed when they are asked for."""

    def __init__(self) -> None:
        self._files = {name: path for path in model_files() for kind, name in _heads(path) if kind == "part"}

    def __getitem__(self, name: str) -> syntax.Part:
        statements = _module(self._files[name]).statements
        return next(s for s in statements if isinstance(s, syntax.Part) and s.name.text == name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def parts() -> Mapping[str, syntax.Part]:
    """The parts of ``models/`` by name."""
    return _Parts()


def aliases() -> dict[str, syntax.Alias]:
    """Other names of the formulations of ``models/``, by name."""
    return {s.name.text: s for s in _stated("formulation") if isinstance(s, syntax.Alias)}


def derived() -> dict[str, syntax.Define]:
    """What ``models/`` defines: quantities that follow from others."""
    return {s.name.text: s for s in _stated("define") if isinstance(s, syntax.Define)}


def defined_for_specs() -> dict[str, syntax.Define]:
    """Those that every spec may use by their definition: what the vocabulary does not know itself."""
    return {name: one for name, one in derived().items() if name not in QUANTITIES}
