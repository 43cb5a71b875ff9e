"""What comes with placedsl in the language itself: formulations, parts and built-in constraints of ``models/``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from placedsl import plugins
from placedsl.diagnostics import Source
from placedsl.language.checking.schedule_vocabulary import QUANTITIES
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.parser import parse, parse_file, read_source
from placedsl.system.installation import model_files


def modules() -> tuple[syntax.Module, ...]:
    """The parsed files of ``models/``."""
    return tuple(_module(path) for path in model_files())


@lru_cache(maxsize=64)
def _module(path: Path) -> syntax.Module:
    return parse_file(path)


@lru_cache(maxsize=1)
def constraint_definitions() -> Mapping[str, syntax.ConstraintDefinition]:
    """Built-in constraints by name.  Files that have none, which are most of the text, are not parsed for them."""
    own = [path for path in model_files() if "\nconstraint " in "\n" + read_source(path).text]
    return {
        s.name.text: s for path in own for s in _module(path).statements if isinstance(s, syntax.ConstraintDefinition)
    }


def from_plugins(wanted: Iterable[str]) -> dict[str, syntax.ConstraintDefinition]:
    """The constraints by these names that plug-ins bring."""
    out: dict[str, syntax.ConstraintDefinition] = {}
    for name in wanted:
        plugin = plugins.find("constraints", name)
        if plugin is None:
            continue
        given = plugin.load()
        text = given if isinstance(given, str) else plugin.text(given)
        module = parse(Source(f"<{plugin}>", text))
        definitions = {s.name.text: s for s in module.statements if isinstance(s, syntax.ConstraintDefinition)}
        if name not in definitions or len(definitions) < len(module.statements):
            raise plugins.PluginError(f"{plugin} gives a text that does not hold 'constraint {name} = …' alone")
        out[name] = definitions[name]
    return out


def models() -> dict[str, syntax.Formulation]:
    """The formulations of ``models/`` by name, not yet composed of their parts."""
    return {s.name.text: s for s in _library() if isinstance(s, syntax.Formulation)}


def parts() -> dict[str, syntax.Part]:
    """The parts of ``models/`` by name."""
    return {s.name.text: s for s in _library() if isinstance(s, syntax.Part)}


def aliases() -> dict[str, syntax.Alias]:
    """Other names of the formulations of ``models/``, by name."""
    return {s.name.text: s for s in _library() if isinstance(s, syntax.Alias)}


def derived() -> dict[str, syntax.Define]:
    """What ``models/`` defines: quantities that follow from others.  Files that define none are not parsed for them."""
    own = [path for path in model_files() if "\ndefine " in "\n" + read_source(path).text]
    return {s.name.text: s for path in own for s in _module(path).statements if isinstance(s, syntax.Define)}


def defined_for_specs() -> dict[str, syntax.Define]:
    """Those that every spec may use by their definition: what the vocabulary does not know itself."""
    return {name: one for name, one in derived().items() if name not in QUANTITIES}


def _library() -> Iterator[syntax.Statement]:
    return (s for module in modules() for s in module.statements)
