"""Parameters with their values, as text of the language."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from placedsl.grounding.expressions import ExpressionGrounder
from placedsl.grounding.frames import ROOT, Columns
from placedsl.grounding.universe import original
from placedsl.language.checking.checker import Checker
from placedsl.language.checking.vocabulary import PLAIN, Type, types
from placedsl.language.elaboration.elaborate import Elaborated
from placedsl.language.elaboration.indexed_parameters import PARTS
from placedsl.language.elaboration.model_library import constraint_definitions
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.printer import expression, word
from placedsl.problem.problem import Table
from placedsl.units import NUMBER

_Key = tuple[int, ...]


def scalar(spec: Elaborated, item: syntax.Param) -> str:
    """The value of a parameter without indices, wherever it comes from."""
    value, kind = spec.parameters[item.name.text]
    if item.type is not None:  # a plain zero from a data file is a zero of the type that is declared
        kind = types().get(item.type.text, kind)
    return expression(_value(item.at, value, kind))


def values_written_out(spec: Elaborated, item: syntax.Param) -> syntax.Param:
    """An indexed parameter with every value in its list; one that has a formula as it is."""
    table = spec.problem.tables.get(item.name.text)
    if table is None:
        return item
    kind = spec.vocabulary.types[item.type.text] if item.type else PLAIN
    pairs: list[tuple[syntax.Expression, syntax.Expression | None]]
    if any(sort not in ("node", "device", "part", "integer") for sort in table.sorts):
        return _constant(item, table, kind)
    names = _taken(spec)
    pairs = []
    for key, value in sorted(_full(spec, item, table).items()):
        words = tuple(_element(spec, item.at, names, s, p) for s, p in zip(table.sorts, key, strict=True))
        index = words[0] if len(words) == 1 else syntax.TupleOf(item.at, words)
        pairs.append((index, _value(item.at, value, kind)))
    return replace(item, value=syntax.Braces(item.at, tuple(pairs)))


def _value(at: syntax.At, value: float | bool | str, kind: Type) -> syntax.Expression:
    if kind.kind == "text":
        return syntax.Text(at, str(value))
    if kind.kind == "number":
        return syntax.Number(at, float(value), kind.dimension)
    return syntax.Name(at, "true" if value else "false")


def _constant(item: syntax.Param, table: Table, kind: Type) -> syntax.Param:
    """Tensors and groups have no names, so one value is all that can be given for all of them: a formula."""
    sets: Mapping[str, syntax.Expression] = {
        "node": syntax.Name(item.at, "nodes"), "device": syntax.Name(item.at, "devices"),
        "tensor": syntax.Name(item.at, "tensors"),
        "part": syntax.Braces(item.at, tuple((syntax.Name(item.at, part), None) for part in PARTS)),
        "integer": syntax.Range(item.at, _whole(item.at, 0), _whole(item.at, 0)),
    }  # fmt: skip
    items = []
    for i, sort in enumerate(table.sorts):
        by = (syntax.Name(item.at, "nodes"), syntax.Name(item.at, sort.partition(":")[2]))
        of = sets.get(sort) or syntax.Call(item.at, "partition", by, None)
        items.append(syntax.Binary(item.at, "in", syntax.Name(item.at, f"i{i}"), of))
    value = table.values.get(())
    given = syntax.Braces(item.at, ()) if value is None else _value(item.at, value, kind)
    return replace(item, items=tuple(items), value=given)


def _full(spec: Elaborated, item: syntax.Param, table: Table) -> dict[_Key, float | bool | str]:
    """Every index that has a value of its own, and where there is one for all others, every other index."""
    own = {key: value for key, value in table.values.items() if key}
    if () not in table.values:
        return own
    problem = spec.problem
    sizes = {"node": problem.graph.nodes, "device": len(problem.machine.devices), "part": len(PARTS)}
    keys: Iterable[_Key]
    if "integer" in table.sorts:
        # Whole numbers have no end: those that the parameter ranges over.
        checker = Checker(spec.vocabulary, dict(spec.parameters), [], {})
        expressions = ExpressionGrounder(original(problem), Columns(), problem.sets, problem.tables)
        frame, _ = expressions.sets.expand(ROOT, checker.binders(item.items))
        keys = zip(*(np.asarray(column).tolist() for column in frame.slots.values()), strict=True)
    else:
        keys = itertools.product(*(range(sizes[sort]) for sort in table.sorts))
    return dict.fromkeys(keys, table.values[()]) | own


def _taken(spec: Elaborated) -> set[str]:
    """The words that are not taken for a node."""
    words = spec.vocabulary
    out = {"true", "false", "nodes", *PARTS, *constraint_definitions(), *spec.parameters}
    for known in (words.families, words.variables, words.tables, words.quantities, words.sets):
        out |= known.keys()
    return out | {
        s.name.text for s in spec.statements
        if isinstance(s, syntax.Define | syntax.ConstraintDefinition | syntax.Formulation | syntax.Part)
    }  # fmt: skip


def _whole(at: syntax.At, number: int) -> syntax.Number:
    return syntax.Number(at, float(number), NUMBER)


def _element(spec: Elaborated, at: syntax.At, taken: set[str], sort: str, position: int) -> syntax.Expression:
    """How a list calls one element."""
    if sort == "integer":
        return _whole(at, position)
    if sort == "part":
        return syntax.Name(at, PARTS[position])
    if sort == "device":
        device = spec.problem.machine.devices[position]
        family = device.family
        base = syntax.Name(at, family) if word(family) == family else syntax.Text(at, family)
        number = device.name.removeprefix(family).strip("[]")
        return syntax.Index(at, base, (_whole(at, int(number)),)) if number else base
    name = str(spec.problem.graph.ids[position])
    if word(name) == name and name not in taken:
        return syntax.Name(at, name)
    return syntax.Index(at, syntax.Name(at, "nodes"), (syntax.Text(at, name),))
