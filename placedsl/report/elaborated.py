"""The elaborated problem as a spec: defaults filled in, parameters resolved, units normalised."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import Counter

from placedsl.language import syntax
from placedsl.language.elaborate import Elaborated
from placedsl.language.formatting import block, expression, statement, word
from placedsl.language.library import constraint_definitions
from placedsl.language.vocabulary import Type
from placedsl.problem import Labels
from placedsl.units import exact

_ORDER = (
    syntax.GraphFile, syntax.GraphInline, syntax.Param, syntax.DeviceFamily, syntax.LinkBetween, syntax.Interconnect,
    syntax.SetOf, syntax.Define, syntax.Variable, syntax.ConstraintDefinition, syntax.Formulation, syntax.Schedule,
    syntax.Minimize, syntax.Subject, syntax.Solve,
)  # fmt: skip


def elaborated(spec: Elaborated) -> str:
    """A spec that means the same; what is built in stands beside it as comments."""
    problem = spec.problem
    counts = Counter(d.family for d in problem.machine.devices)
    lines: list[str] = []
    by_kind = sorted(spec.statements, key=lambda s: next((i for i, k in enumerate(_ORDER) if isinstance(s, k)), 99))
    schedule_said = any(isinstance(s, syntax.Schedule) for s in spec.statements)
    previous: type | None = None
    for item in by_kind:
        if not isinstance(item, _ORDER):
            continue
        if isinstance(item, syntax.Minimize) and not schedule_said:
            lines += ["", f"schedule {problem.schedule}"]
            previous = syntax.Schedule
        if type(item) is not previous:
            lines.append("")
        previous = type(item)
        if isinstance(item, syntax.GraphFile | syntax.GraphInline):
            graph = problem.graph
            lines.append(f"# {graph.nodes} nodes, {len(graph.edge_source)} edges, {graph.tensors} tensors")
        if isinstance(item, syntax.Param):
            lines.append(_indexed(spec, item) if item.items else _parameter(spec, item))
        elif isinstance(item, syntax.DeviceFamily):
            number = "" if item.count is None else f"[{counts[item.name.text]}]"
            kind_word = f": {item.kind.text}" if item.kind else ""
            lines.append(f"device {word(item.name.text)}{number}{kind_word}{block(item.block)}")
        elif isinstance(item, syntax.Subject):
            lines.append("subject to")
            for rule in item.rules:
                lines += _meaning(rule)
                lines.append("    " + statement(syntax.Subject(item.at, (rule,))).split("\n    ", 1)[1])
        else:
            lines.append(statement(item))
    return "\n".join(lines).strip("\n") + "\n"


def _parameter(spec: Elaborated, item: syntax.Param) -> str:
    """A parameter with the value that it has."""
    value, kind = spec.parameters[item.name.text]
    return f"param {word(item.name.text)}{': ' + item.type.text if item.type else ''} = {_value(value, kind)}"


def _value(value: float | bool | str, kind: Type) -> str:
    if kind.kind == "number":
        return exact(float(value), kind.dimension)
    return json.dumps(value, ensure_ascii=False) if kind.kind == "text" else str(bool(value)).lower()


def _indexed(spec: Elaborated, item: syntax.Param) -> str:
    """An indexed parameter: its formula, or the list of its values, those of a data file as well."""
    table = spec.problem.tables.get(item.name.text)
    if table is None:
        return statement(item)
    kind = spec.vocabulary.tables[item.name.text].type
    values = dict(table.values)
    note = ""
    if () in values:  # what a data file says of all others
        others = values.pop(())
        sizes = {"node": spec.problem.graph.nodes, "device": len(spec.problem.machine.devices), "part": 2}
        if all(sort in sizes for sort in table.sorts):
            every = itertools.product(*(range(sizes[sort]) for sort in table.sorts))
            values |= {key: others for key in every if key not in values}
        else:
            note = f"  # all others: {_value(others, kind)}"
    entries = []
    for key, value in sorted(values.items()):
        index = [_element(spec, sort, position) for sort, position in zip(table.sorts, key, strict=True)]
        entries.append(f"{index[0] if len(index) == 1 else '(' + ', '.join(index) + ')'}: {_value(value, kind)}")
    head = statement(dataclasses.replace(item, value=None))
    return f"{head} = {{{', '.join(entries)}}}{note}"


def _element(spec: Elaborated, sort: str, position: int) -> str:
    """An element as a spec writes it."""
    if sort == "node":
        return f"nodes[{json.dumps(str(spec.problem.graph.ids[position]), ensure_ascii=False)}]"
    if sort == "device":
        device = spec.problem.machine.devices[position]
        return word(device.family) + device.name.removeprefix(device.family)
    return Labels(spec.problem).of(sort, position)


def _meaning(rule: syntax.Rule) -> list[str]:
    """What a built-in constraint says, as a comment."""
    if rule.body is not None:
        return []
    known = constraint_definitions().get(rule.name.text)
    return [] if known is None else [f"    # {rule.name.text}: {expression(known.body)}"]
