"""``exportable_to_NAME``: what a runtime can be told, as the constraints that it is a conjunction of.

They stand in ``models/exports.place``.  Such a constraint counts as each of its parts, so that whoever knows the parts
knows it; parts that speak of what the spec does not decide (copies, degrees) are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from placedsl.arrays import Column
from placedsl.diagnostics import Diagnostic
from placedsl.graph.graph import Graph
from placedsl.graph.layers import Described, units
from placedsl.graph.order import components, topological
from placedsl.language.checking.scope import Definition
from placedsl.language.checking.vocabulary import Vocabulary
from placedsl.language.elaboration import model_library as library
from placedsl.language.syntax import statements as syntax

Named = tuple[syntax.Rule, syntax.ConstraintDefinition | None]

PREFIX = "exportable_"
#: Attributes that nodes have where a rule of the spec asks for them.
UNIT, TIED, TIED_LAYER = "exportable_unit", "exportable_tied", "exportable_tied_layer"
END, RUN, BEGIN = "exportable_end", "exportable_run", "exportable_begin"
#: What a part speaks of that only some specs decide.
_DECIDED = ("tensor", "data", "copies")


def asked(named: Sequence[Named]) -> bool:
    """Whether a rule of the spec is of this kind."""
    return any(rule.name.text.startswith(PREFIX) for rule, definition in named if definition is not None)


def conjuncts(named: Sequence[Named], definitions: Mapping[str, Definition], words: Vocabulary) -> list[Named]:
    """The rules with each conjunction of this kind as the rules that it consists of, none of them twice."""
    given = {_key(rule) for rule, definition in named if not _conjunction(rule, definition)}
    out: list[Named] = []
    for rule, definition in named:
        if definition is None or not _conjunction(rule, definition):
            out.append((rule, definition))
            continue
        for name, by in _parts(_meant(definition, words).body):
            part = definitions[name]
            assert isinstance(part, syntax.ConstraintDefinition), name
            one = syntax.Rule(
                rule.at, syntax.Word(rule.name.at, name), syntax.Word(rule.name.at, by) if by else None, "", None
            )
            if _key(one) not in given and _known(part, words):
                given.add(_key(one))
                out.append((one, part))
    return out


def of_layers(named: Sequence[Named]) -> list[syntax.Rule]:
    """The rules that speak of runs of layers."""
    keys = {END, RUN, BEGIN}
    return [
        rule for rule, definition in named
        if definition is not None and rule.name.text.startswith(PREFIX)
        and keys & {by for _, by in _parts(definition.body)}
    ]  # fmt: skip


def _key(rule: syntax.Rule) -> tuple[str, str]:
    return rule.name.text, rule.by.text if rule.by else ""


def _conjunction(rule: syntax.Rule, definition: syntax.ConstraintDefinition | None) -> bool:
    own = library.constraint_definitions().get(rule.name.text)
    return rule.body is None and own is definition and rule.name.text.startswith(f"{PREFIX}to_")


def _meant(definition: syntax.ConstraintDefinition, words: Vocabulary) -> syntax.ConstraintDefinition:
    """Of some constraints there is another reading for machines without hosts."""
    if any(device.kind == "host" for device in words.machine.devices):
        return definition
    return library.constraint_definitions().get(f"{definition.name.text}_without_hosts", definition)


def _parts(body: syntax.Expression) -> Iterator[tuple[str, str | None]]:
    """The names of constraints, and what they go by."""
    match body:
        case syntax.Binary(operator="and", left=left, right=right):
            yield from _parts(left)
            yield from _parts(right)
        case syntax.Call(name=name, arguments=(syntax.Name(name=key),)):
            yield name, key
        case syntax.Name(name=name):
            yield name, None


def _known(definition: syntax.ConstraintDefinition, words: Vocabulary) -> bool:
    """Whether the spec decides what a part speaks of; plans say by degrees what is said by copies elsewhere."""
    spoken = {
        word for word in _DECIDED if f"{word}(" in definition.body.at.text or f"{word}[" in definition.body.at.text
    }
    if "in clusters" in definition.body.at.text and "clusters" not in words.sets:
        return False
    if "copies" in spoken:
        return "copies" in words.variables and "data" not in words.quantities
    return all(word in words.quantities for word in spoken)


def with_units(graph: Graph, named: Sequence[Named], found: list[Diagnostic]) -> Graph:
    """The graph with the attributes that rules speak of; rules about layers where there are none are reported."""
    if not asked(named):
        return graph
    graph, layers = _with_units(graph)
    hint = "give the nodes an attribute 'layer' (a number from 0), or a 'module' as in model.layers.3.mlp"
    for rule in of_layers(named) if not layers else ():
        message = f"'{rule.name.text}' is about layers, and the graph says of no node which layer it is part of"
        found.append(Diagnostic(message, rule.name.at.span, hint))
    return graph


def _with_units(graph: Graph) -> tuple[Graph, bool]:
    """The graph with the attributes, and the graph as written with them; and whether there are layers."""
    written = graph.written
    order = topological(written.nodes, written.edge_source, written.edge_target)
    assert order is not None, "graphs are acyclic"
    columns = {name: one for name in ("layer", "module", "parameters", "tied")
               if (one := written.attributes.get(name)) is not None}  # fmt: skip
    told = []
    for v in order.tolist():
        given = {name: _value(one[v]) for name, one in columns.items()}
        memory, backward = float(written.memory[v]), bool(written.backward[v])
        told.append(Described.of(str(written.names[v]), given, memory, backward=backward))
    found = units(told)
    unit_of = dict(zip(order.tolist(), found.of_node, strict=True))
    node_of = range(written.nodes) if graph.fusion is None else graph.fusion.node_of.tolist()
    where = [u for u, unit in enumerate(found.units) if unit.layer is not None]
    first, last = (where[0], where[-1]) if where else (0, -1)
    unit = [f"unit {u}" for u in range(len(found.units))]
    end = ["first" if u < first else "last" if u > last else word for u, word in enumerate(unit)]
    run = [
        unit[first] if word == "first" and where else unit[last] if word == "last" and where else word for word in end
    ]
    begin = [unit[first] if word == "first" and where else word for word in end]
    own: dict[str, Column] = {}
    joined: dict[str, Column] = {}
    of = columns.get("tied")
    tied = _tied(unit, unit_of, of)
    with_layers = _tied(unit, unit_of, of, {tied[u] for u in where})
    for name, words in ((UNIT, unit), (TIED, tied), (TIED_LAYER, with_layers), (END, end), (RUN, run), (BEGIN, begin)):
        own[name], joined[name] = np.full(written.nodes, None, dtype=object), np.full(graph.nodes, None, dtype=object)
        for v, operator in enumerate(node_of):
            if (u := unit_of[v]) >= 0:
                own[name][v] = words[u]
                if joined[name][operator] not in ("first", "last"):  # constraints ask for these by name
                    joined[name][operator] = words[u]
    fusion = graph.fusion
    if fusion is not None:
        original = replace(written, attributes={**written.attributes, **own})
        fusion = replace(fusion, original=original)
    return replace(graph, attributes={**graph.attributes, **joined}, fusion=fusion), bool(where)


def _tied(
    unit: Sequence[str], unit_of: Mapping[int, int], tied: Column | None, only: Collection[str] | None = None
) -> list[str]:
    """The unit of each unit, with one for those that have weights in common; ``only``: in these groups alone."""
    if tied is None:
        return list(unit)
    first: dict[object, int] = {}
    same = [(u, first.setdefault(of, u)) for v, u in sorted(unit_of.items()) if u >= 0
            and (of := _value(tied[v])) is not None]  # fmt: skip
    one, other = np.array(same, dtype=np.int64).reshape(-1, 2).T
    both = components(len(unit), np.concatenate([one, other]), np.concatenate([other, one]))
    joined = [f"tied {k}" for k in both.tolist()]
    return joined if only is None else [one if one in only else own for own, one in zip(unit, joined, strict=True)]


def _value(given: object) -> float | str | None:
    if isinstance(given, str):
        return given
    if given is None:
        return None
    number = float(given)  # type: ignore[arg-type]
    return None if np.isnan(number) else number
