"""A spec built in Python, statement by statement; it becomes ``.place`` text, which is read as any other."""

from __future__ import annotations

import json
import linecache
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placedsl.api import arguments
from placedsl.api.spec import Spec, spec_of
from placedsl.diagnostics import Source, UsageError
from placedsl.expr import Element, Family, Set, Term
from placedsl.expr.terms import Place, named, place_of_caller, term
from placedsl.graph.networkx_graphs import native_text
from placedsl.graph.option_columns import MOVED
from placedsl.language.elaboration.statement_entries import STATEMENTS
from placedsl.language.syntax.printer import word
from placedsl.system import files
from placedsl.units import DATA, TIME, exact

if TYPE_CHECKING:
    from placedsl.planner.answer import Answer

#: What a plain number means where the language wants a dimension: SI units, bytes.
_DIMENSIONS = {
    name: dimension
    for statement in ("device", "link", "edge", "solve")
    for name, dimension in STATEMENTS[statement].dimensions.items()
} | {"time": TIME, "parameters": DATA, "stash": DATA, "sharded": DATA}


class Model:
    """A spec under construction: each method adds the statement of its name.

    Values are numbers (seconds, bytes, B/s …), texts in the language ("16 GiB", "2 * room"), or terms of
    :mod:`placedsl.expr`.  File names are relative to ``folder``; ``name`` is what messages call the text.
    """

    def __init__(self, name: str = "model", folder: str | Path = ".") -> None:
        self.name, self.folder = arguments.text("name", name, "'model'"), arguments.path("folder", folder)
        self._statements: list[tuple[str, Place]] = []
        self._graph_items: list[tuple[str, Place]] = []
        self._rules: list[tuple[str, Place]] = []
        self._held: dict[str, Source] = {}
        #: Parameters, and attributes that declared sets ask for: one name cannot be both.
        self._parameters: set[str] = set()
        self._asked: set[str] = set()

    # the graph

    def graph(
        self,
        graph: Any,
        *,
        format: str | None = None,
        time_unit: str | None = None,
        attributes: Collection[str] | None = None,
        sizes: Mapping[str, Any] | None = None,
        profile: str | Path | None = None,
    ) -> None:
        """``graph from "FILE"`` of a path, or a ``networkx.DiGraph``.

        ``time_unit`` says what plain numbers of time are in ("ms"); without it they have no unit.  ``format`` is that
        of a file; ``attributes`` names the further node attributes to take from networkx (None: all).  docs/python.md
        has the attributes with a meaning.  ``sizes`` are those of a model's symbolic dimensions, ``profile`` names a
        file of measured times (docs/reading-models.md).  Raises InputError for a graph of networkx that cannot be
        used.
        """
        settings = []
        if isinstance(graph, str | Path):
            path = Path(graph).as_posix()
            settings += [f"format = {json.dumps(format)}"] if format is not None else []
            settings += [f"time_unit = {_unit(time_unit)}"] if time_unit is not None else []
        else:
            if format is not None:
                raise UsageError("'format' says how a file is written; this graph is none")
            path = f"{self.name}.graph.json"
            self._held[path] = Source(path, native_text(graph, time_unit, attributes))
        settings += [f"{word(name)} = {term(size)}" for name, size in (sizes or {}).items()]
        if profile is not None:
            settings.append(f"profile = {json.dumps(Path(profile).as_posix(), ensure_ascii=False)}")
        block = f" {{ {', '.join(settings)} }}" if settings else ""
        self._add(f"{_graph_from(path)}{block}")

    def node(
        self,
        name: str,
        *,
        options: Mapping[str, Mapping[str, Any] | Sequence[Mapping[str, Any]]] | None = None,
        **entries: Any,
    ) -> Element:
        """One ``node`` of a ``graph { … }``; ``time`` may be a mapping from device kinds to times.

        ``options`` are further ways to run it: entries by name, or a list of these where a name has several degrees.
        """
        further = [
            f"option {word(own)}{_block(given)}"
            for own, several in arguments.mapping("options", options, '{"recomputed": {"time": "52 ms"}}').items()
            for given in ([several] if isinstance(several, Mapping) else several)
        ]
        self._graph_items.append((f"node {word(name)}{_block(entries, further)}", place_of_caller()))
        return Set("nodes")[name]

    def edge(self, *nodes: str | Element, **entries: Any) -> None:
        """``a -> b -> c`` of a ``graph { … }``, with names or what :meth:`node` gave; ``output``, ``transfer``."""
        self._graph_items.append((" -> ".join(map(_node_name, nodes)) + _block(entries), place_of_caller()))

    # the machine

    def device(self, name: str, kind: str, count: Any = None, **entries: Any) -> Family:
        """``device name[count]: kind { … }``: the family, to be ranged over; ``family[1]`` is its first device."""
        number = "" if count is None else f"[{term(count)}]"
        self._add(f"device {word(name)}{number}: {kind}{_block(entries)}")
        return Family(word(name))

    def link(self, source: Any, target: Any, *, both: bool = True, **entries: Any) -> None:
        """``link a <-> b { bandwidth = …, latency = … }``; ``->`` when not ``both``."""
        self._add(f"link {_end(source)} {'<->' if both else '->'} {_end(target)}{_block(entries)}")

    def interconnect(self, name: str | None = None, **entries: Any) -> None:
        """``interconnect { bandwidth = …, latency = … }``."""
        self._add(f"interconnect{'' if name is None else ' ' + word(name)}{_block(entries)}")

    @contextmanager
    def cluster(self, name: str, count: Any = None) -> Iterator[Set]:
        """``cluster name[count] { … }`` around what is added in its ``with`` block; gives the set of clusters.

        Without a count it is the one cluster, and in ``d in …`` the set of its devices.
        """
        number = "" if count is None else f"[{term(count)}]"
        self._add(f"cluster {word(name)}{number} {{")
        start = len(self._statements)
        yield Set(word(name))
        self._statements[start:] = _indented(self._statements[start:])
        self._add("}")

    def fuse(self, *types: str, by: str | None = None) -> None:
        """``fuse conv + bn`` of operator types, or ``fuse by layer`` of an attribute."""
        if (by is None) == (not types):
            raise UsageError('fuse takes types, as in fuse("conv", "bn"), or by="attribute"')
        self._add("fuse " + (" + ".join(map(word, types)) if by is None else f"by {word(by)}"))

    def parallelism(self, data: Any, weights: str | None = None) -> None:
        """``parallelism { data = 1..4 }``: how many devices may share a stage, a text, a range or a collection of
        numbers; ``weights`` is the attribute of nodes that holds the bytes to exchange."""
        if isinstance(data, range) and len(data) and data.step == 1:
            said = f"{data[0]}..{data[-1]}"
        elif not isinstance(data, str | Collection):
            raise arguments.wrong("data", data, "numbers of devices are expected, as in range(1, 5) or [1, 2, 4]")
        else:
            said = data if isinstance(data, str) else "{" + ", ".join(map(str, data)) + "}"
        self._add("parallelism" + _block({"data": named(said), "weights": weights}))

    # values and sets

    def param(self, name: str, value: Any = None, type: str | None = None) -> Term:
        """``param name: type = value``: the parameter, for expressions."""
        given = "" if value is None else f" = {term(value)}"
        self._parameters.add(name)
        self._hidden()
        self._add(f"param {word(name)}{'' if type is None else ': ' + type}{given}")
        return named(word(name))

    def set(self, name: str, of: Any) -> Set:
        """``set name = …`` of a set, narrowed or not, or a text in the language."""
        if isinstance(of, Set):
            self._asked |= of.asked_for()
            self._hidden()
        self._add(f"set {word(name)} = {of if isinstance(of, str) else term(of)}")
        return Set(word(name), pairs=isinstance(of, Set) and of.pairs)

    # what is wanted

    def schedule(self, name: str) -> None:
        """``schedule name``."""
        self._add(f"schedule {name}")

    def minimize(self, *objectives: Any) -> None:
        """``minimize a then b``: the first objective, and among the best of it the second."""
        self._add("minimize " + " then ".join(str(term(o)) for o in objectives))

    def subject_to(self, name: str, formula: Any = None, *, by: str | None = None) -> None:
        """A constraint that has a name (``"memory"``; ``"colocated", by="layer"``), or a formula and a name for it."""
        rule = (
            arguments.text("name", name, "'memory'")
            + ("" if by is None else f" by {word(by)}")
            + ("" if formula is None else f": {term(formula)}")
        )
        self._rules.append((rule, _built(formula)))

    def constraint(self, name: str, formula: Any, *, by: str | None = None) -> None:
        """``constraint name by key = formula``: a definition, for :meth:`subject_to`."""
        key = "" if by is None else f" by {word(by)}"
        self._statements.append((f"constraint {name}{key} = {term(formula)}", _built(formula)))

    def settings(self, **entries: Any) -> None:
        """``solve { time_limit = …, gap = …, … }``: what :meth:`solve` does when nothing else is asked for."""
        self._add(f"solve{_block(entries) or ' {}'}")

    def add(self, statements: str) -> None:
        """Statements as they are in a ``.place`` file: formulations, and whatever has no method here."""
        self._add(arguments.text("statements", statements, "'fuse conv + bn'").strip("\n"))

    # what becomes of it

    def text(self) -> str:
        """The spec.  The text only names a graph of networkx, which stands in a file of its own (:meth:`write`)."""
        return "".join(f"{line}\n" for line, _ in self._lines())

    def source(self) -> Source:
        """The text, which knows where in Python each of its lines was built."""
        lines = self._lines()
        built = tuple((i + 1, _shown(place)) for i, (_, place) in enumerate(lines) if place is not None)
        return Source(f"<{self.name}>", self.text(), built)

    def write(self, path: str | Path) -> None:
        """Write the spec, and a graph of networkx beside it, as ``STEM.graph.json`` of a ``STEM.place``.

        UsageError where they cannot be written.
        """
        path, text = arguments.path("path", path), self.text()
        for name, held in self._held.items():
            beside = path.with_name(f"{path.stem}.graph.json")
            files.write(beside, held.text)
            text = text.replace(_graph_from(name), _graph_from(beside.name), 1)
        files.write(path, text)

    def spec(self, parameters: Mapping[str, str] | None = None) -> Spec:
        """The checked spec; InputError with every error, each with its place in the text and in Python."""
        return spec_of(self.source(), self.folder, parameters, held=self._held)

    def solve(self, **wanted: Any) -> Answer:
        """The answer; arguments are those of :meth:`placedsl.Spec.solve`."""
        return self.spec().solve(**wanted)

    def check(self) -> None:
        """As :meth:`placedsl.Spec.check`: InputError for what is wrong, nothing is solved."""
        self.spec().check()

    def __repr__(self) -> str:
        count = len(self._statements) + len(self._graph_items) + len(self._rules)
        return f"<Model {self.name}: {count} statements; print(model.text()) shows them>"

    def __str__(self) -> str:
        return self.text()

    def _add(self, statement: str) -> None:
        self._statements.append((statement, place_of_caller()))

    def _hidden(self) -> None:
        """UsageError where a parameter would stand for the attribute that the condition of a set asks for."""
        both = sorted(self._parameters & self._asked)
        if both:
            raise UsageError(f"'{both[0]}' is a parameter, and an attribute that a set asks for: rename the parameter")

    def _lines(self) -> list[tuple[str, Place | None]]:
        """The text line by line, each with the place that it was built at."""
        out: list[tuple[str, Place | None]] = []
        if self._graph_items:
            out += [("graph {", None), *_indented(self._graph_items), ("}", None)]
        out += [(line, place) for text, place in self._statements for line in text.split("\n")]
        if self._rules:
            out += [("subject to", None), *_indented(self._rules)]
        return out


def _indented(items: list[tuple[str, Place]]) -> list[tuple[str, Place]]:
    return [("    " + line, place) for text, place in items for line in text.split("\n")]


def _node_name(node: str | Element) -> str:
    """A name, or that in ``nodes["name"]``."""
    return word(node if isinstance(node, str) else json.loads(str(node).removeprefix("nodes[").removesuffix("]")))


def _block(entries: Mapping[str, Any], further: Sequence[str] = ()) -> str:
    """`` { name = value, … }``, or nothing; what is None is left out."""
    given = [f"{word(name)} = {_value(name, value)}" for name, value in entries.items() if value is not None]
    given += further
    return f" {{ {', '.join(given)} }}" if given else ""


def _value(name: str, value: Any) -> str:
    """A value of a block: a plain number is in SI units where the language wants a dimension."""
    if isinstance(value, Mapping):
        keys = {key: word(str(key)) if name in MOVED else key for key in value}  # by node, else by kind of device
        return "{" + ", ".join(f"{keys[key]}: {_value(name, one)}" for key, one in value.items()) + "}"
    plain = isinstance(value, Real) and not isinstance(value, bool)
    if plain and name in _DIMENSIONS and math.isfinite(value):
        return exact(int(value) if isinstance(value, Integral) else float(value), _DIMENSIONS[name])
    return str(term(value))


def _graph_from(file: str) -> str:
    return f"graph from {json.dumps(file, ensure_ascii=False)}"


def _unit(text: str) -> str:
    return text if text.lstrip()[:1].isdigit() else f"1 {text}"


def _end(device: Any) -> str:
    return str(device) if isinstance(device, Term) else device


def _built(formula: Any) -> Place:
    """Where a formula was built, or, for a text, where it is given."""
    return formula.built_at if isinstance(formula, Term) else place_of_caller()


def _shown(place: Place) -> str:
    """``FILE:LINE``, with the line where it can be had."""
    file, number = place
    line = linecache.getline(file, number).strip()
    return f"{file}:{number}" + (f": {line}" if line else "")
