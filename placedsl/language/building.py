"""Lark's reductions to syntax nodes."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from lark import Token, Transformer

from placedsl.language import syntax
from placedsl.language.syntax import At
from placedsl.units import NUMBER, UnitError, parse_unit


def _place(part: Any) -> At | None:
    if isinstance(part, Token):
        return (part.start_pos or 0, part.end_pos or 0)
    return getattr(part, "at", None)


def _cover(parts: list[Any]) -> At:
    """From the first to the last part that has a place."""
    places = [p for p in map(_place, parts) if p is not None]
    return (places[0][0], places[-1][1]) if places else (0, 1)


def _unquote(token: Token) -> str:
    try:
        return str(json.loads(str(token)))
    except json.JSONDecodeError:
        return str(token)[1:-1]


def _word(token: Token) -> syntax.Word:
    at = (token.start_pos or 0, token.end_pos or 0)
    return syntax.Word(at, _unquote(token) if token.type == "STRING" else str(token))


Pair = tuple[Any, Any]
Statements = tuple[Any, ...]


class TreeBuilder(Transformer[Token, Any]):
    """One method a grammar rule; ``parts`` are its tokens and nodes (None for what was left out)."""

    # expressions

    def number(self, parts: list[Any]) -> syntax.Number:
        (token,) = parts
        return syntax.Number((token.start_pos, token.end_pos), float(token), NUMBER)

    def quantity(self, parts: list[Any]) -> syntax.Number:
        (token,) = parts
        text = str(token)
        i = 0
        while text[i] in "0123456789.":
            i += 1
        if text[i] in "eE" and i + 1 < len(text) and text[i + 1] in "+-0123456789":
            i += 2
            while text[i] in "0123456789":
                i += 1
        unit = text[i:].strip()
        try:
            size = parse_unit(unit)
        except UnitError as problem:
            # Told where the number is used, with whatever else is wrong.
            return syntax.Number((token.end_pos - len(unit), token.end_pos), 0.0, NUMBER, unit, str(problem))
        value = size.times(float(text[:i]))
        return syntax.Number((token.start_pos, token.end_pos), value, size.dimension, unit)

    def text(self, parts: list[Any]) -> syntax.Text:
        return syntax.Text(_cover(parts), _unquote(parts[0]))

    def name_expr(self, parts: list[Any]) -> syntax.Name:
        (token,) = parts
        return syntax.Name((token.start_pos, token.end_pos), str(token))

    def attribute(self, parts: list[Any]) -> syntax.Attribute:
        return syntax.Attribute(_cover(parts), parts[0], str(parts[1]))

    def index(self, parts: list[Any]) -> syntax.Index:
        return syntax.Index(_cover(parts), parts[0], tuple(parts[2:-1]))

    def call(self, parts: list[Any]) -> syntax.Call:
        arguments = tuple(p for p in parts[2:-2] if p is not None)
        return syntax.Call(_cover(parts), str(parts[0]), arguments, parts[-2])

    def aggregate(self, parts: list[Any]) -> syntax.Aggregate:
        return syntax.Aggregate(_cover(parts), str(parts[0]), tuple(parts[2:-2]), parts[-2])

    def group(self, parts: list[Any]) -> Any:
        return dataclasses.replace(parts[1], at=_cover(parts))

    def tuple(self, parts: list[Any]) -> syntax.TupleOf:
        return syntax.TupleOf(_cover(parts), tuple(parts[1:-1]))

    def pair(self, parts: list[Any]) -> Pair:
        return (parts[0], parts[1])

    def braces(self, parts: list[Any]) -> syntax.Braces:
        return syntax.Braces(_cover(parts), tuple(p for p in parts[1:-1] if p is not None))

    def unary(self, parts: list[Any]) -> syntax.Unary:
        return syntax.Unary(_cover(parts), str(parts[0]), parts[1])

    def binary(self, parts: list[Any]) -> syntax.Binary:
        return syntax.Binary(_cover(parts), str(parts[1]), parts[0], parts[2])

    def compare(self, parts: list[Any]) -> syntax.Compare:
        return syntax.Compare(_cover(parts), tuple(map(str, parts[1::2])), tuple(parts[0::2]))

    def match(self, parts: list[Any]) -> syntax.Match:
        return syntax.Match(_cover(parts), parts[0], _unquote(parts[2]))

    def item(self, parts: list[Any]) -> Any:
        if parts[1] is None:
            return parts[0]
        return syntax.Where(_cover(parts), parts[0], parts[1])

    def forall(self, parts: list[Any]) -> syntax.Forall:
        return syntax.Forall(_cover(parts), tuple(parts[1:-1]), parts[-1])

    def conditional(self, parts: list[Any]) -> syntax.Conditional:
        return syntax.Conditional(_cover(parts), parts[1], parts[2], parts[3])

    # pieces of statements

    def name(self, parts: list[Any]) -> syntax.Word:
        return _word(parts[0])

    def label(self, parts: list[Any]) -> syntax.Word:
        return _word(parts[0])

    def entry(self, parts: list[Any]) -> syntax.Entry:
        return syntax.Entry(_cover(parts), parts[0], parts[1])

    def block(self, parts: list[Any]) -> syntax.Block:
        return tuple(p for p in parts if p is not None)

    def endpoint(self, parts: list[Any]) -> syntax.Endpoint:
        return syntax.Endpoint(_cover(parts), parts[0], parts[1])

    # statements

    def start(self, parts: list[Any]) -> Statements:
        return tuple(p for p in parts if p is not None)

    def graph_file(self, parts: list[Any]) -> syntax.GraphFile:
        return syntax.GraphFile(_cover(parts[:2]), _word(parts[1]), parts[2] or ())

    def graph_inline(self, parts: list[Any]) -> syntax.GraphInline:
        return syntax.GraphInline(_cover(parts[:1]), tuple(p for p in parts[1:] if p is not None))

    def node(self, parts: list[Any]) -> syntax.Node:
        return syntax.Node(_cover(parts[:2]), parts[1], parts[2] or ())

    def chain(self, parts: list[Any]) -> syntax.Chain:
        return syntax.Chain(_cover(parts[:-1]), tuple(parts[:-1]), parts[-1] or ())

    def device(self, parts: list[Any]) -> syntax.DeviceFamily:
        return syntax.DeviceFamily(_cover(parts[:4]), parts[1], parts[2], parts[3], parts[4] or ())

    def link(self, parts: list[Any]) -> syntax.LinkBetween:
        both = str(parts[2]) == "<->"
        return syntax.LinkBetween(_cover(parts[:4]), parts[1], parts[3], both, parts[4] or ())

    def interconnect(self, parts: list[Any]) -> syntax.Interconnect:
        return syntax.Interconnect(_cover(parts[:2]), parts[1], parts[2] or ())

    def param(self, parts: list[Any]) -> syntax.Param:
        return syntax.Param(_cover(parts), parts[1], parts[2], parts[3])

    def set(self, parts: list[Any]) -> syntax.SetOf:
        return syntax.SetOf(_cover(parts), parts[1], parts[2])

    def schedule(self, parts: list[Any]) -> syntax.Schedule:
        return syntax.Schedule(_cover(parts), parts[1])

    def minimize(self, parts: list[Any]) -> syntax.Minimize:
        return syntax.Minimize(_cover(parts), tuple(parts[1:]))

    objective = minimize

    def subject(self, parts: list[Any]) -> syntax.Subject:
        return syntax.Subject(_cover(parts), tuple(p for p in parts[1:] if p is not None))

    def tight(self, parts: list[Any]) -> syntax.Tight:
        return syntax.Tight(_cover(parts), _word(parts[1]), ())

    def rule(self, parts: list[Any]) -> syntax.Rule:
        label = parts[2].text if parts[2] is not None else ""
        return syntax.Rule(_cover(parts), _word(parts[0]), parts[1], label, parts[3])

    def solve(self, parts: list[Any]) -> syntax.Solve:
        return syntax.Solve(_cover(parts[:1]), parts[1])

    def constraint(self, parts: list[Any]) -> syntax.ConstraintDefinition:
        label = parts[3].text if parts[3] is not None else ""
        return syntax.ConstraintDefinition(_cover(parts), _word(parts[1]), parts[2], label, parts[4])

    def variable(self, parts: list[Any]) -> syntax.Variable:
        items = tuple(parts[2:-3])
        kind = syntax.Word(_cover([parts[-3]]), str(parts[-3])) if parts[-3] is not None else None
        return syntax.Variable(_cover(parts), _word(parts[1]), items, kind, parts[-2], parts[-1])

    def provides(self, parts: list[Any]) -> syntax.Provides:
        return syntax.Provides(_cover(parts), parts[1], parts[2])

    def formulation(self, parts: list[Any]) -> syntax.Formulation:
        clauses = tuple(p for p in parts[2:] if p is not None)
        return syntax.Formulation(_cover(parts[:2]), _word(parts[1]), clauses)
