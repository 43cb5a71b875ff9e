"""``import "file"``: the statements of other files, each file once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from placedsl.diagnostics import Diagnostic, InputError, Source, nearest
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.kept_trees import tree
from placedsl.language.syntax.source_files import read_source
from placedsl.records import dataclass
from placedsl.system import paths
from placedsl.system.installation import folder as folder_of_installation


@dataclass
class Texts:
    """A spec with what it imports: statements in the order of their texts, imports in their place.

    ``folders``: what the file names of each text are relative to.
    """

    statements: list[syntax.Statement] = field(default_factory=list)
    folders: dict[Source, Path] = field(default_factory=dict)

    def folder(self, at: syntax.At) -> Path:
        """What a file name at that place is relative to."""
        return self.folders.get(at.source, Path())


def imported(
    module: syntax.Module, base: Path, found: list[Diagnostic], held: Mapping[Path, Source] | None = None
) -> Texts:
    """Follow the imports of a spec; what is wrong with them goes to ``found``.

    Nothing is read but the ``.place`` files that are named, and of these none whose text is ``held``.
    """
    out = Texts()
    try:
        start = Path(module.source.name).resolve()
    except OSError:
        start = Path(module.source.name)
    _add(module, base, out, {start: ""}, [start], found, held or {})
    return out


def _add(
    module: syntax.Module,
    folder: Path,
    out: Texts,
    known: dict[Path, str],
    open_files: list[Path],
    found: list[Diagnostic],
    held: Mapping[Path, Source],
) -> None:
    out.folders[module.source] = folder
    for statement in module.statements:
        if not isinstance(statement, syntax.Import):
            out.statements.append(statement)
            continue
        path = _named(statement, folder, found, held)
        if path is None:
            continue
        resolved = path.resolve()
        if resolved in open_files:
            chain = " imports ".join(p.name for p in [*open_files[open_files.index(resolved) :], resolved])
            found.append(Diagnostic("this import goes round in a circle", statement.path.at.span, chain))
        elif resolved not in known:
            known[resolved] = statement.path.text
            try:
                inner = tree(held[path] if path in held else read_source(path))
            except InputError as problem:
                place = statement.path.at.span
                found += [Diagnostic(d.message, place, d.hint) if d.span is None else d for d in problem.diagnostics]
                continue
            _add(inner, path.parent, out, known, [*open_files, resolved], found, held)


def _named(statement: syntax.Import, folder: Path, found: list[Diagnostic], held: Mapping[Path, Source]) -> Path | None:
    """The file that an import names, or None after reporting."""
    given = Path(statement.path.text)
    path = given if given.is_absolute() else folder / given
    ours = folder_of_installation("models") / given
    if path not in held and not given.is_absolute() and not paths.is_file(path) and paths.is_file(ours):
        path = ours  # one that comes with placedsl
    place = statement.path.at.span
    if given.suffix != ".place" or "\0" in str(given):
        found.append(Diagnostic("only .place files can be imported", place, 'as in import "devices.place"'))
        return None
    if path not in held and not paths.is_file(path):
        parent = path.parent
        nearby = [p.name for p in parent.iterdir() if p.suffix == ".place"] if paths.is_folder(parent) else []
        found.append(Diagnostic(f"there is no file '{path}'", place, nearest(path.name, nearby)))
        return None
    return path


def first_at(here: syntax.At, there: syntax.At) -> str:
    """Where something stood first, as said beside its second place."""
    span = there.span
    return f"first in line {span.line}" if here.source == there.source else f"first at {span}"
