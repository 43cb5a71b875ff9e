"""Indexed parameters: ``param weight[v in nodes]: time``, by formula, by a list of values, or from a data file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from placedsl.diagnostics import Diagnostic, nearest
from placedsl.language.checking.checker import Checker
from placedsl.language.checking.constant_folding import known_number
from placedsl.language.checking.vocabulary import PLAIN, Family, Type, Vocabulary
from placedsl.language.elaboration.external_values import ExternalValues
from placedsl.language.elaboration.parameters import from_data
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expressions as core
from placedsl.problem.expressions import Sort
from placedsl.problem.problem import Table
from placedsl.units import whole

#: What stands for every index that is not named.
OTHERS = "*"
#: The parts of a graph, as they are called.
PARTS = ("forward", "backward")


def read(
    checker: Checker, declared: Sequence[syntax.Param], given: ExternalValues
) -> tuple[dict[str, Family], dict[str, Table], dict[str, syntax.Define]]:
    """How each indexed parameter is used, the values of those that are listed, and the formulas of the others."""
    families: dict[str, Family] = {}
    values: dict[str, Table] = {}
    formulas: dict[str, syntax.Define] = {}
    for statement in declared:
        if not statement.items or statement.name.text in families:
            continue
        name = statement.name.text
        with checker.bound():
            binders = checker.binders(statement.items)
        kind = _declared(checker, statement)
        sorts = tuple(sort for binder in binders for sort in binder.sorts)
        if len(binders) < len(statement.items) or kind is None:
            families[name] = Family(sorts, Type("error"))
        elif name in given.data:
            families[name] = Family(sorts, kind)
            values[name] = _from_file(checker, statement, sorts, kind, given)
        elif isinstance(statement.value, syntax.Braces):
            families[name] = Family(sorts, kind)
            values[name] = _listed(checker, statement, statement.value, sorts, kind)
        elif statement.value is not None:
            formulas[name] = _formula(checker, statement, statement.value)
            families[name] = Family(sorts, kind)
        else:
            known = positions_of(checker.vocabulary, sorts[0])[1] if sorts else []
            index = next(iter(known), OTHERS)
            hint = f'give them in a data file (--data FILE), as in {{"{name}": {{"{index}": 2}}}}, or by a formula'
            checker.error(statement.name, f"parameter '{name}' has no values", hint)
            families[name] = Family(sorts, Type("error"))
    return families, values, formulas


def _declared(checker: Checker, statement: syntax.Param) -> Type | None:
    if statement.type is None:
        return PLAIN
    name, known = statement.type.text, checker.vocabulary.types
    if name not in known:
        checker.error(statement.type, f"'{name}' is no type", nearest(name, known))
        return None
    return known[name]


def _formula(checker: Checker, statement: syntax.Param, body: syntax.Expression) -> syntax.Define:
    """``param share[v in nodes] = v.memory / (1 GiB)`` as a definition."""
    parameters = []
    for item in statement.items:
        match item:
            case syntax.Binary(operator="in", left=syntax.Name(name=name, at=at), right=of):
                parameters.append(syntax.Parameter(item.at, syntax.Word(at, name), of, None))
            case _:
                checker.error(item, "one name and its set are expected here", "as in v in nodes")
    return syntax.Define(statement.at, statement.name, tuple(parameters), body)


def _listed(
    checker: Checker, statement: syntax.Param, braces: syntax.Braces, sorts: tuple[Sort, ...], kind: Type
) -> Table:
    """``{gpu[1]: 2 ms, gpu[2]: 3 ms}``; a pair of indices is written ``(v, d)``."""
    out: dict[tuple[int, ...], float | bool | str] = {}
    for key, value in braces.pairs:
        parts = key.items if isinstance(key, syntax.TupleOf) else (key,)
        if len(parts) != len(sorts) or value is None:
            checker.error(key, f"an index of '{statement.name.text}' and its value are expected", "as in {gpu[1]: 2}")
            continue
        choices = [_positions_written(checker, part, sort) for part, sort in zip(parts, sorts, strict=True)]
        body, got = checker.check(value)
        constant = body.value if isinstance(body, core.Constant) else None
        if got.kind == "error" or any(c is None for c in choices):
            continue
        if constant is None:
            checker.error(value, "a value known beforehand is expected here")
        elif got != kind and not (known_number(body) == 0.0 and kind.kind == "number"):
            checker.error(value, f"'{statement.name.text}' is {kind}, this is {got}")
        else:
            for position in itertools.product(*(c for c in choices if c is not None)):
                if position in out:
                    checker.error(key, "this index stands here twice")
                out[position] = constant
    return Table(sorts, out)


def _positions_written(checker: Checker, node: syntax.Expression, sort: Sort) -> Sequence[int] | None:
    """The element of an index, or all of a device family."""
    if isinstance(node, syntax.Name) and sort == "device" and node.name in checker.vocabulary.families:
        return checker.vocabulary.families[node.name]
    if isinstance(node, syntax.Name) and sort == "part" and node.name in PARTS:
        return (PARTS.index(node.name),)
    before = len(checker.found)
    out = checker.element(node, sort)
    if len(checker.found) > before:
        return None
    value = known_number(out)
    if isinstance(out, core.Element):
        return (out.position,)
    if value is not None and value.is_integer():
        return (int(value),)
    checker.error(node, "an index known beforehand is expected here")
    return None


def _from_file(
    checker: Checker, statement: syntax.Param, sorts: tuple[Sort, ...], kind: Type, given: ExternalValues
) -> Table:
    name = statement.name.text
    out: dict[tuple[int, ...], float | bool | str] = {}
    finders = [positions_of(checker.vocabulary, sort) for sort in sorts]

    def walk(raw: object, path: list[str], positions: tuple[int, ...], level: int) -> None:
        if level == len(sorts):
            value, got = from_data(checker, given, path, raw, kind)
            if got.kind != "error" and out.setdefault(positions, value) != value:
                hint = "its members are fused, and need one value"
                checker.found.append(Diagnostic(f"'{name}' has two values for one operator", given.place(path), hint))
            return
        if not isinstance(raw, Mapping):
            hint = 'as in {"gpu[1]": 2, "*": 1}'
            checker.found.append(Diagnostic(f"'{name}' has a value for each index here", given.place(path), hint))
            return
        find, known = finders[level]
        for key, inner in raw.items():
            if key == OTHERS:
                continue
            found = find(str(key))
            if not found:
                what = "whole number" if sorts[level] == "integer" else sorts[level].partition(":")[0]
                place = given.place([*path, str(key)])
                checker.found.append(Diagnostic(f"there is no {what} '{key}'", place, nearest(str(key), known)))
            for position in found:
                walk(inner, [*path, str(key)], (*positions, position), level + 1)

    walk(given.data[name], [name], (), 0)
    others = _others(given.data[name])
    if others is not None:
        value, got = from_data(checker, given, [name, OTHERS], others, kind)
        if got.kind != "error":
            out[()] = value
    return Table(sorts, out)


def _others(raw: object) -> object | None:
    return raw.get(OTHERS) if isinstance(raw, Mapping) else None


def positions_of(words: Vocabulary, sort: Sort) -> tuple[Callable[[str], Sequence[int]], list[str]]:
    """What finds the elements of a sort by the name that a data file gives them, and the names there are."""
    names: dict[str, tuple[int, ...]] = {}
    if sort == "node":
        names = {name: (position,) for name, position in words.node_positions.items()}
    elif sort == "cluster":
        for position, cluster in enumerate(words.machine.clusters):
            names[cluster.name] = (position,)
            if not cluster.alone:
                names[cluster.family] = (*names.get(cluster.family, ()), position)
    elif sort == "device":
        names = {name: (i,) for name, i in words.machine.positions.items()} | dict(words.families)
    elif sort == "part":
        names = {name: (i,) for i, name in enumerate(PARTS)}
    elif sort == "integer":
        return lambda key: () if (number := whole(key)) is None else (number,), []
    return lambda key: names.get(key, ()), list(names)
