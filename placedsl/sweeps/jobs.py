"""Runs with the texts that they read, checked before anything is run, and each with a key of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from placedsl.diagnostics import Diagnostic, InputError, PlacedslError, Source, UsageError, nearest
from placedsl.sweeps.runs import Run
from placedsl.system.installation import package_version


@dataclass(frozen=True, eq=False)
class Texts:
    """All that a spec reads, so that it can be solved where its files are not.

    ``held`` are the texts of imports, of the graph file and its profile, by their names from ``folder``.
    """

    source: Source
    folder: Path
    held: Mapping[str, Source]
    data: Source | None = None


@dataclass(frozen=True, eq=False)
class Job:
    """One run, its texts and its key."""

    run: Run
    texts: Texts
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", key(self.run, self.texts))


def key(run: Run, texts: Texts) -> str:
    """The same for the same run of the same texts by the same version, whatever the folder.

    64 hexadecimal digits of what is asked for, the spec and all it reads, and placedsl's version.
    """
    asked = run.document() | {"spec": Path(run.spec).name, "data": None}
    read = [texts.source.text, *(source.text for source in texts.held.values())]
    read.append("" if texts.data is None else f"{Path(texts.data.name).suffix}\n{texts.data.text}")
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in read]
    digests += [hashlib.sha256(source.data).hexdigest() for source in texts.held.values() if source.data]
    whole = json.dumps([package_version(), asked, digests], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def jobs_of(runs: Sequence[Run], known: Sequence[Diagnostic] = ()) -> list[Job]:
    """The runs with what they read.  InputError with all that is wrong with any of them, and what is ``known`` to be.

    It has the exit code of a UsageError where all the files are as they should be, and only what is asked for is not.
    """
    found = [*known, *_unknown_names(runs)]
    faults: list[Diagnostic] = []
    read: dict[tuple[str, str | None], Texts] = {}
    for asked in dict.fromkeys((run.spec, run.data) for run in runs):
        try:
            read[asked] = texts_of(*asked)
        except InputError as problem:
            faults += problem.diagnostics
    for asked, texts in read.items():
        own = [run for run in runs if (run.spec, run.data) == asked]
        wrong = _wrong_parameters(texts, own)
        found += wrong
        faults += [] if wrong else _wrong_together(texts, own)
    if found or faults:
        error = InputError(dict.fromkeys([*found, *faults]))
        error.exit_code = InputError.exit_code if faults else UsageError.exit_code
        raise error
    return [Job(run, read[run.spec, run.data]) for run in runs]


def texts_of(spec: str, data: str | None) -> Texts:
    """Read a spec, what it imports, its graph file and a data file; InputError for what cannot be read."""
    from placedsl.graph.readers import load_graph
    from placedsl.language.elaboration import external_values
    from placedsl.language.elaboration.graph_file import files
    from placedsl.language.elaboration.imports import imported
    from placedsl.language.syntax import statements as syntax
    from placedsl.language.syntax.kept_trees import tree
    from placedsl.language.syntax.source_files import read_source

    path = Path(spec)
    source, folder = read_source(path), path.parent
    found: list[Diagnostic] = []
    texts = imported(tree(source), folder, found)
    held = {_from(folder, Path(s.name)): s for s in texts.folders if s is not source}
    for statement in texts.statements:
        if isinstance(statement, syntax.GraphFile):
            for named in files(statement):
                file = texts.folder(statement.at) / named.text
                try:
                    held[_from(folder, file)] = load_graph(file)
                except InputError as problem:
                    found += [replace(d, span=named.at.span) if d.span is None else d for d in problem.diagnostics]
    if found:
        raise InputError(found)
    return Texts(source, folder, held, None if data is None else external_values.load(Path(data)))


def _from(folder: Path, file: Path) -> str:
    """The name of a file from a folder, such that folder / name is that file as the spec names it."""
    return str(file.relative_to(folder)) if file.is_relative_to(folder) else str(file)


def _unknown_names(runs: Iterable[Run]) -> list[Diagnostic]:
    """Methods, solvers and schedules that do not exist."""
    from placedsl.planner.request import methods, solver_names
    from placedsl.problem.execution import SCHEDULES

    runs = list(runs)
    asked = {
        "method": (dict.fromkeys(run.method for run in runs), methods()),
        "solver": (dict.fromkeys(run.solver for run in runs), solver_names()),
        "schedule": (dict.fromkeys(run.schedule for run in runs), tuple(SCHEDULES)),
    }
    return [
        Diagnostic(f"there is no {what} '{word}'", None, nearest(word, known))
        for what, (words, known) in asked.items()
        for word in words
        if word is not None and word not in known
    ]


def _wrong_parameters(texts: Texts, runs: Sequence[Run]) -> list[Diagnostic]:
    """Names and values that fit no parameter of the spec."""
    from placedsl.language.elaboration import external_values
    from placedsl.language.elaboration.imports import imported
    from placedsl.language.elaboration.value_errors import wrong_values
    from placedsl.language.syntax.kept_trees import tree

    pairs = dict.fromkeys(pair for run in runs for pair in run.parameters.items())
    if not pairs:
        return []
    held = {texts.folder / name: source for name, source in texts.held.items()}
    statements = imported(tree(texts.source), texts.folder, [], held).statements
    wrong = wrong_values(statements, external_values.read({}, texts.data), pairs)
    return [replace(d, message=f"{texts.source.name}: {d.message}") if d.span is None else d for d in wrong]


def _wrong_together(texts: Texts, runs: Sequence[Run]) -> list[Diagnostic]:
    """What elaboration finds: each value is looked at in one run at least, not in every one that it is part of."""
    from placedsl.api.spec import spec_of
    from placedsl.problem.execution import SCHEDULES

    seen: set[tuple[str, str | None]] = set()
    told: list[tuple[Run, Sequence[Diagnostic]]] = []
    for run in runs:
        pairs = {*run.parameters.items(), ("schedule", run.schedule)}
        if told and pairs <= seen:
            continue
        seen |= pairs
        schedule = run.schedule if run.schedule in SCHEDULES else None
        try:
            spec_of(texts.source, texts.folder, run.parameters, texts.data, texts.held, schedule=schedule)
            told.append((run, ()))
        except InputError as problem:
            told.append((run, problem.diagnostics))
        except PlacedslError as problem:
            told.append((run, [Diagnostic(f"{texts.source.name}: {problem}")]))
    # What is wrong in every run has nothing to do with what varies; else the first run that has it is named.
    always = set(told[0][1]).intersection(*(found for _, found in told))
    out: dict[Diagnostic, Diagnostic] = {}
    for run, found in told:
        words = ", ".join(f"{name}={value}" for name, value in run.parameters.items())
        for one in found:
            out.setdefault(one, one if one in always else replace(one, message=f"{one.message} (with {words})"))
    return list(out.values())
