"""Syntax back to text: one layout, units in their canonical form, parentheses only where they mean something."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from placedsl.diagnostics import UsageError
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.keywords import RESERVED
from placedsl.units import exact

#: How tightly operators bind; what is as loose or looser than its surroundings gets parentheses.
_LEVEL = {
    "<=>": 1, "=>": 2, "or": 3, "and": 4, "not": 5, "on": 6, "in": 6, "union": 7, "intersect": 7, "except": 7,
    "..": 8, "+": 9, "-": 9, "*": 10, "/": 10, "mod": 10,
}  # fmt: skip
#: The terminal ORDER of the grammar: a schedule that is no word, and needs no quotes.
_ORDER = "1f1b"
_COMPARISON, _OPERAND, _RANGE, _NEGATIVE, _ATOM = 6, 7, 8, 11, 12


def expression(node: syntax.Expression, level: int = 0) -> str:
    """An expression as text, in parentheses if its operator binds no tighter than ``level`` asks."""
    text, own = _plain(node)
    return f"({text})" if own < level else text


def _plain(node: syntax.Expression) -> tuple[str, int]:
    match node:
        case syntax.Number(value=value, dimension=dimension):
            return exact(value, dimension), _ATOM
        case syntax.Text(value=value):
            return json.dumps(value, ensure_ascii=False), _ATOM
        case syntax.Name(name=name):
            return name, _ATOM
        case syntax.Attribute(base=base, name=name):
            return f"{expression(base, _ATOM)}.{name}", _ATOM
        case syntax.Index(base=base, arguments=arguments):
            return f"{expression(base, _ATOM)}[{_list(arguments)}]", _ATOM
        case syntax.Call(name=name, arguments=arguments, body=body):
            return f"{name}({_list(arguments)}{_after(body)})", _ATOM
        case syntax.Aggregate(operator=operator, items=items, body=body):
            return f"{operator}({_list(items)}{_after(body)})", _ATOM
        case syntax.TupleOf(items=items):
            return f"({_list(items)})", _ATOM
        case syntax.Braces(pairs=pairs):
            return "{" + ", ".join(expression(k) + _after(v) for k, v in pairs) + "}", _ATOM
        case syntax.Unary(operator="not", operand=operand):
            return f"not {expression(operand, _LEVEL['not'])}", _LEVEL["not"]
        case syntax.Unary(operand=operand):
            return f"-{expression(operand, _NEGATIVE)}", _NEGATIVE
        case syntax.Binary(operator=operator, left=left, right=right):
            own = _LEVEL[operator]
            # '=>' groups to the right, '<=>', 'on' and 'in' not at all, the others to the left.
            first = own + 1 if operator in ("<=>", "=>", "on", "in") else own
            second = own if operator == "=>" else own + 1
            return f"{expression(left, first)} {operator} {expression(right, second)}", own
        case syntax.Range(low=low, high=high):
            return f"{expression(low, _RANGE + 1)}..{expression(high, _RANGE + 1)}", _RANGE
        case syntax.Compare(operators=operators, operands=operands):
            texts = [expression(o, _COMPARISON + 1) for o in operands]
            parts = [texts[0], *(f"{op} {text}" for op, text in zip(operators, texts[1:], strict=True))]
            return " ".join(parts), _COMPARISON
        case syntax.Match(subject=subject, pattern=pattern):
            return f"{expression(subject, _COMPARISON + 1)} ~ {json.dumps(pattern, ensure_ascii=False)}", _COMPARISON
        case syntax.Where(item=item, condition=condition):
            return f"{expression(item)} where {expression(condition)}", 0
        case syntax.Forall(items=items, body=body, quantifier=quantifier):
            return f"{quantifier} {_list(items)}: {expression(body)}", 0
        case syntax.Conditional(condition=condition, then=then, otherwise=otherwise):
            return f"if {expression(condition)} then {expression(then)} else {expression(otherwise)}", 0


def _list(items: Iterable[syntax.Expression]) -> str:
    return ", ".join(expression(i) for i in items)


def _after(body: syntax.Expression | None) -> str:
    return "" if body is None else f": {expression(body)}"


def word(text: str) -> str:
    """A name, in quotes where it is not a plain word; UsageError for what is no text."""
    if not isinstance(text, str):
        raise UsageError(f"a name is a text, this is {text!r}")
    plain = re.fullmatch(r"[^\W\d]\w*", text) is not None and text not in RESERVED
    return text if plain else json.dumps(text, ensure_ascii=False)


def block(entries: syntax.Block) -> str:
    """`` { name = value, … }``, or nothing."""
    if not entries:
        return ""
    return " { " + ", ".join(_entries(entries)) + " }"


def _entries(entries: syntax.Block) -> list[str]:
    return [f"{word(e.name.text)} = {expression(e.value)}" for e in entries]


def rule(node: syntax.Rule) -> str:
    """One rule under ``subject to``."""
    by = f" by {word(node.by.text)}" if node.by else ""
    given = f"({_list(node.arguments)})" if node.arguments else ""
    if node.price is not None:
        price = expression(node.price, _RANGE + 1)
        return f"soft {node.name.text}{_label(node.label)} at {price}{_after(node.body)}"
    replaced = "replace " if node.replaces else ""
    return f"{replaced}{node.name.text}{by}{given}{_label(node.label)}{_after(node.body)}"


def statement(node: syntax.Statement) -> str:
    """One statement as text."""
    match node:
        case syntax.GraphFile(path=path, block=entries):
            return f"graph from {json.dumps(path.text, ensure_ascii=False)}{block(entries)}"
        case syntax.GraphInline(items=items):
            return "\n".join(["graph {", *(f"    {_graph_item(i)}" for i in items), "}"])
        case syntax.Fuse(types=types, by=by):
            return f"fuse by {word(by.text)}" if by else "fuse " + " + ".join(word(t.text) for t in types)
        case syntax.DeviceFamily(name=name, count=count, kind=kind, block=entries):
            number = "" if count is None else f"[{expression(count)}]"
            return f"device {word(name.text)}{number}" + (f": {kind.text}" if kind else "") + block(entries)
        case syntax.Cluster(name=name, count=count, items=parts):
            number = "" if count is None else f"[{expression(count)}]"
            inner = "\n".join(statement(part) for part in parts).replace("\n", "\n    ")
            return f"cluster {word(name.text)}{number} {{\n    {inner}\n}}"
        case syntax.LinkBetween(source=source, target=target, both=both, block=entries):
            return f"link {_endpoint(source)} {'<->' if both else '->'} {_endpoint(target)}{block(entries)}"
        case syntax.Interconnect(name=label, block=entries):
            return f"interconnect{' ' + word(label.text) if label else ''}{block(entries)}"
        case syntax.Param(name=name, items=items, type=kind, value=value):
            given = "" if value is None else f" = {expression(value)}"
            return f"param {word(name.text)}{_indices(items)}{': ' + kind.text if kind else ''}{given}"
        case syntax.Import(path=path):
            return f"import {json.dumps(path.text, ensure_ascii=False)}"
        case syntax.Variable():
            return clause(node)
        case syntax.Define(name=name, parameters=parameters, body=body):
            return f"define {name.text}{_formal(parameters)} = {expression(body)}"
        case syntax.SetOf(name=name, value=value):
            return f"set {word(name.text)} = {expression(value)}"
        case syntax.Schedule(name=name, block=entries):
            return f"schedule {name.text if name.text == _ORDER else word(name.text)}{block(entries)}"
        case syntax.Parallelism(block=entries):
            return f"parallelism{block(entries) or ' {}'}"
        case syntax.Option(name=name, items=items, block=entries):
            return f"option {word(name.text)}{f'({_list(items)})' if items else ''}{block(entries)}"
        case syntax.Minimize(objectives=objectives):
            return "minimize " + " then ".join(expression(o) for o in objectives)
        case syntax.Subject(rules=rules):
            return "\n".join(["subject to", *(f"    {rule(r)}" for r in rules)])
        case syntax.Solve(block=entries):
            return f"solve{block(entries) or ' {}'}"
        case syntax.ConstraintDefinition(name=name, by=by, parameters=parameters, label=label, body=body):
            key = f" by {word(by.text)}" if by else ""
            return f"constraint {name.text}{key}{_formal(parameters)}{_label(label)} = {expression(body)}"
        case syntax.Formulation(name=name, clauses=clauses, extends=extends):
            inner = "\n".join(clause(c) for c in clauses).replace("\n", "\n    ")
            return f"{'extend' if extends else 'formulation'} {name.text} {{\n    {inner}\n}}"
        case syntax.Part(name=name, clauses=clauses):
            inner = "\n".join(clause(c) for c in clauses).replace("\n", "\n    ")
            return f"part {name.text} {{\n    {inner}\n}}"
        case syntax.Alias(name=name, of=of, conditions=conditions):
            return f"formulation {name.text} = {of.text}" + (f" under {_conditions(conditions)}" if conditions else "")


def clause(node: syntax.Clause) -> str:
    """One clause of a formulation."""
    match node:
        case syntax.Variable(name=name, items=items, type=kind, low=low, high=high):
            bounds = ""
            if low is not None and high is not None:
                bounds = f" in {expression(low, _RANGE + 1)}..{expression(high, _RANGE + 1)}"
            return f"var {name.text}{_indices(items)}{': ' + kind.text if kind else ''}{bounds}"
        case syntax.Provides(pattern=pattern, value=value, replaces=replaces):
            return f"{'replace ' if replaces else ''}provides {expression(pattern)} = {expression(value)}"
        case syntax.Parallel(name=name):
            return f"parallelism {name.text}"
        case syntax.Tight(variables=names, rules=rules):
            return "\n".join([f"tight {', '.join(n.text for n in names)}", *(f"    {rule(r)}" for r in rules)])
        case syntax.Use(names=names, block=entries):
            return f"use {', '.join(n.text for n in names)}{block(entries)}"
        case syntax.Under(conditions=conditions, clause=inner):
            return f"under {_conditions(conditions)}" + ("" if inner is None else f": {clause(inner)}")
        case _:
            return statement(node)


def _conditions(conditions: tuple[syntax.Condition, ...]) -> str:
    return ", ".join(
        f"{c.axis.text} {' or '.join(v.text if v.text == _ORDER else word(v.text) for v in c.values)}"
        for c in conditions
    )


def _indices(items: tuple[syntax.Expression, ...]) -> str:
    return f"[{_list(items)}]" if items else ""


def _formal(parameters: tuple[syntax.Parameter, ...]) -> str:
    return f"({', '.join(map(_parameter, parameters))})" if parameters else ""


def _parameter(node: syntax.Parameter) -> str:
    if node.set is not None:
        return f"{node.name.text} in {expression(node.set, _OPERAND)}"
    return f"{node.name.text}: {node.type.text if node.type else ''}"


def _label(label: str) -> str:
    return f" ({json.dumps(label, ensure_ascii=False)})" if label else ""


def _endpoint(node: syntax.Endpoint) -> str:
    return word(node.name.text) + ("" if node.index is None else f"[{expression(node.index)}]")


def _graph_item(node: syntax.Node | syntax.Chain) -> str:
    if isinstance(node, syntax.Node):
        parts = [*_entries(node.block), *map(statement, node.options)]
        return f"node {word(node.name.text)}" + (f" {{ {', '.join(parts)} }}" if parts else "")
    return " -> ".join(word(n.text) for n in node.names) + block(node.block)
