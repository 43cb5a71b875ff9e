"""Lark's reductions to syntax nodes."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from lark import Token, Transformer

from placedsl.diagnostics import Source
from placedsl.language.syntax import statements as syntax
from placedsl.language.syntax.statements import At
from placedsl.units import NUMBER, UnitError, parse_unit


def _unquote(token: Token) -> str:
    try:
        return str(json.loads(str(token)))
    except json.JSONDecodeError:
        return str(token)[1:-1]


Pair = tuple[Any, Any]
Statements = tuple[Any, ...]


class TreeBuilder(Transformer[Token, Any]):
    """One method a grammar rule; ``parts`` are its tokens and nodes (None for what was left out).

    ``source`` is the text that is being parsed.
    """

    source = Source("", "")

    def _place(self, part: Any) -> At | None:
        if isinstance(part, Token):
            return At(part.start_pos or 0, part.end_pos or 0, self.source)
        return getattr(part, "at", None)

    def _cover(self, parts: list[Any]) -> At:
        """From the first to the last part that has a place."""
        places = [p for p in map(self._place, parts) if p is not None]
        return At(places[0].start, places[-1].end, self.source) if places else At(0, 1, self.source)

    def _word(self, token: Token) -> syntax.Word:
        at = At(token.start_pos or 0, token.end_pos or 0, self.source)
        return syntax.Word(at, _unquote(token) if token.type == "STRING" else str(token))

    # expressions

    def number(self, parts: list[Any]) -> syntax.Number:
        (token,) = parts
        return syntax.Number(self._cover(parts), float(token), NUMBER)

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
            return syntax.Number(
                At(token.end_pos - len(unit), token.end_pos, self.source), 0.0, NUMBER, unit, str(problem)
            )
        value = size.times(float(text[:i]))
        return syntax.Number(self._cover(parts), value, size.dimension, unit)

    def text(self, parts: list[Any]) -> syntax.Text:
        return syntax.Text(self._cover(parts), _unquote(parts[0]))

    def name_expr(self, parts: list[Any]) -> syntax.Name:
        (token,) = parts
        return syntax.Name(self._cover(parts), str(token))

    def attribute(self, parts: list[Any]) -> syntax.Attribute:
        return syntax.Attribute(self._cover(parts), parts[0], str(parts[1]))

    def index(self, parts: list[Any]) -> syntax.Index:
        return syntax.Index(self._cover(parts), parts[0], tuple(parts[2:-1]))

    def call(self, parts: list[Any]) -> syntax.Call:
        arguments = tuple(p for p in parts[2:-2] if p is not None)
        return syntax.Call(self._cover(parts), str(parts[0]), arguments, parts[-2])

    def aggregate(self, parts: list[Any]) -> syntax.Aggregate:
        return syntax.Aggregate(self._cover(parts), str(parts[0]), tuple(parts[2:-2]), parts[-2])

    def group(self, parts: list[Any]) -> Any:
        return dataclasses.replace(parts[1], at=self._cover(parts))

    def tuple(self, parts: list[Any]) -> syntax.TupleOf:
        return syntax.TupleOf(self._cover(parts), tuple(parts[1:-1]))

    def pair(self, parts: list[Any]) -> Pair:
        return (parts[0], parts[1])

    def braces(self, parts: list[Any]) -> syntax.Braces:
        return syntax.Braces(self._cover(parts), tuple(p for p in parts[1:-1] if p is not None))

    def unary(self, parts: list[Any]) -> syntax.Unary:
        return syntax.Unary(self._cover(parts), str(parts[0]), parts[1])

    def binary(self, parts: list[Any]) -> syntax.Binary:
        return syntax.Binary(self._cover(parts), str(parts[1]), parts[0], parts[2])

    def compare(self, parts: list[Any]) -> syntax.Compare:
        return syntax.Compare(self._cover(parts), tuple(map(str, parts[1::2])), tuple(parts[0::2]))

    def range(self, parts: list[Any]) -> syntax.Range:
        return syntax.Range(self._cover(parts), parts[0], parts[1])

    def match(self, parts: list[Any]) -> syntax.Match:
        return syntax.Match(self._cover(parts), parts[0], _unquote(parts[2]))

    def item(self, parts: list[Any]) -> Any:
        if parts[1] is None:
            return parts[0]
        return syntax.Where(self._cover(parts), parts[0], parts[1])

    def forall(self, parts: list[Any]) -> syntax.Forall:
        return syntax.Forall(self._cover(parts), tuple(parts[1:-1]), parts[-1], str(parts[0]))

    def conditional(self, parts: list[Any]) -> syntax.Conditional:
        return syntax.Conditional(self._cover(parts), parts[1], parts[2], parts[3])

    # pieces of statements

    def name(self, parts: list[Any]) -> syntax.Word:
        return self._word(parts[0])

    order = name

    def key(self, parts: list[Any]) -> syntax.Word:
        return self._word(parts[0])

    def label(self, parts: list[Any]) -> syntax.Word:
        return self._word(parts[0])

    def given(self, parts: list[Any]) -> list[Any]:
        return parts

    def formal(self, parts: list[Any]) -> list[Any]:
        return parts

    def parameter(self, parts: list[Any]) -> syntax.Parameter:
        if len(parts) == 3:
            return syntax.Parameter(self._cover(parts), self._word(parts[0]), parts[2], None)
        return syntax.Parameter(self._cover(parts), self._word(parts[0]), None, self._word(parts[1]))

    def entry(self, parts: list[Any]) -> syntax.Entry:
        return syntax.Entry(self._cover(parts), parts[0], parts[1])

    def block(self, parts: list[Any]) -> syntax.Block:
        return tuple(p for p in parts if p is not None)

    node_block = block

    def endpoint(self, parts: list[Any]) -> syntax.Endpoint:
        return syntax.Endpoint(self._cover(parts), parts[0], parts[1])

    # statements

    def start(self, parts: list[Any]) -> Statements:
        return tuple(p for p in parts if p is not None)

    def graph_file(self, parts: list[Any]) -> syntax.GraphFile:
        return syntax.GraphFile(self._cover(parts[:2]), self._word(parts[1]), parts[2] or ())

    def graph_inline(self, parts: list[Any]) -> syntax.GraphInline:
        return syntax.GraphInline(self._cover(parts[:1]), tuple(p for p in parts[1:] if p is not None))

    def fuse(self, parts: list[Any]) -> syntax.Fuse:
        return syntax.Fuse(self._cover(parts), tuple(parts[1::2]), None)

    def fuse_by(self, parts: list[Any]) -> syntax.Fuse:
        return syntax.Fuse(self._cover(parts), (), parts[1])

    def node(self, parts: list[Any]) -> syntax.Node:
        block = parts[2] or ()
        entries = tuple(p for p in block if isinstance(p, syntax.Entry))
        return syntax.Node(self._cover(parts[:2]), parts[1], entries, tuple(p for p in block if p not in entries))

    def node_option(self, parts: list[Any]) -> syntax.Option:
        return syntax.Option(self._cover(parts[:2]), parts[1], (), parts[2] or ())

    def chain(self, parts: list[Any]) -> syntax.Chain:
        return syntax.Chain(self._cover(parts[:-1]), tuple(parts[:-1]), parts[-1] or ())

    def device(self, parts: list[Any]) -> syntax.DeviceFamily:
        return syntax.DeviceFamily(self._cover(parts[:4]), parts[1], parts[2], parts[3], parts[4] or ())

    def cluster(self, parts: list[Any]) -> syntax.Cluster:
        items = tuple(p for p in parts[3:] if p is not None)
        return syntax.Cluster(self._cover(parts[:3]), parts[1], parts[2], items)

    def link(self, parts: list[Any]) -> syntax.LinkBetween:
        both = str(parts[2]) == "<->"
        return syntax.LinkBetween(self._cover(parts[:4]), parts[1], parts[3], both, parts[4] or ())

    def interconnect(self, parts: list[Any]) -> syntax.Interconnect:
        return syntax.Interconnect(self._cover(parts[:2]), parts[1], parts[2] or ())

    def param(self, parts: list[Any]) -> syntax.Param:
        items = tuple(p for p in parts[2:-2] if p is not None)
        return syntax.Param(self._cover(parts), parts[1], items, parts[-2], parts[-1])

    def import_(self, parts: list[Any]) -> syntax.Import:
        return syntax.Import(self._cover(parts), self._word(parts[1]))

    def set(self, parts: list[Any]) -> syntax.SetOf:
        return syntax.SetOf(self._cover(parts), parts[1], parts[2])

    def schedule(self, parts: list[Any]) -> syntax.Schedule:
        return syntax.Schedule(self._cover(parts[:2]), parts[1], parts[2] or ())

    def parallelism(self, parts: list[Any]) -> syntax.Parallelism:
        return syntax.Parallelism(self._cover(parts[:1]), parts[1])

    def option(self, parts: list[Any]) -> syntax.Option:
        return syntax.Option(self._cover(parts[:-1]), parts[1], tuple(parts[3:-2]), parts[-1])

    def parallel(self, parts: list[Any]) -> syntax.Parallel:
        return syntax.Parallel(self._cover(parts), self._word(parts[1]))

    def minimize(self, parts: list[Any]) -> syntax.Minimize:
        return syntax.Minimize(self._cover(parts), tuple(parts[1:]))

    objective = minimize

    def subject(self, parts: list[Any]) -> syntax.Subject:
        return syntax.Subject(self._cover(parts), tuple(p for p in parts[1:] if p is not None))

    def tight(self, parts: list[Any]) -> syntax.Tight:
        return syntax.Tight(self._cover(parts), tuple(self._word(p) for p in parts[1:]), ())

    def rule(self, parts: list[Any]) -> syntax.Rule:
        name, by, given, body = parts
        if body is None:
            return syntax.Rule(self._cover(parts[:2]), self._word(name), by, "", None, tuple(given or ()))
        return syntax.Rule(self._cover(parts), self._word(name), by, _label(given), body)

    def replacement(self, parts: list[Any]) -> syntax.Rule:
        _, name, given, body = parts
        return syntax.Rule(self._cover(parts), self._word(name), None, _label(given), body, replaces=True)

    def soft(self, parts: list[Any]) -> syntax.Rule:
        _, name, given, _, price, body = parts
        return syntax.Rule(self._cover(parts), self._word(name), None, _label(given), body, price=price)

    def solve(self, parts: list[Any]) -> syntax.Solve:
        return syntax.Solve(self._cover(parts[:1]), parts[1])

    def constraint(self, parts: list[Any]) -> syntax.ConstraintDefinition:
        _, name, by, formal, label, body = parts
        said = label.text if label is not None else ""
        return syntax.ConstraintDefinition(self._cover(parts), self._word(name), by, tuple(formal or ()), said, body)

    def define(self, parts: list[Any]) -> syntax.Define:
        _, name, formal, body = parts
        return syntax.Define(self._cover(parts), self._word(name), tuple(formal or ()), body)

    def variable(self, parts: list[Any]) -> syntax.Variable:
        items = tuple(p for p in parts[2:-3] if p is not None)
        kind = syntax.Word(self._cover([parts[-3]]), str(parts[-3])) if parts[-3] is not None else None
        return syntax.Variable(self._cover(parts), self._word(parts[1]), items, kind, parts[-2], parts[-1])

    def provides(self, parts: list[Any]) -> syntax.Provides:
        return syntax.Provides(self._cover(parts), parts[1], parts[2])

    def replaced_provides(self, parts: list[Any]) -> syntax.Provides:
        return syntax.Provides(self._cover(parts), parts[2], parts[3], True)

    def formulation(self, parts: list[Any]) -> syntax.Formulation:
        clauses = tuple(p for p in parts[2:] if p is not None)
        return syntax.Formulation(self._cover(parts[:2]), self._word(parts[1]), clauses)

    def part(self, parts: list[Any]) -> syntax.Part:
        clauses = tuple(p for p in parts[2:] if p is not None)
        return syntax.Part(self._cover(parts[:2]), self._word(parts[1]), clauses)

    def alias(self, parts: list[Any]) -> syntax.Alias:
        conditions = tuple(p for p in parts[3:] if isinstance(p, syntax.Condition))
        return syntax.Alias(self._cover(parts), self._word(parts[1]), self._word(parts[2]), conditions)

    def use(self, parts: list[Any]) -> syntax.Use:
        names = tuple(self._word(p) for p in parts[1:-1])
        return syntax.Use(self._cover(parts[:-1]), names, parts[-1] or ())

    def condition(self, parts: list[Any]) -> syntax.Condition:
        values = tuple(p for p in parts[1:] if isinstance(p, syntax.Word))
        return syntax.Condition(self._cover(parts), self._word(parts[0]), values)

    def under(self, parts: list[Any]) -> syntax.Under:
        conditions = tuple(p for p in parts if isinstance(p, syntax.Condition))
        return syntax.Under(self._cover(parts), conditions, parts[-1] if parts[-1] not in conditions else None)

    def extend(self, parts: list[Any]) -> syntax.Formulation:
        clauses = tuple(p for p in parts[2:] if p is not None)
        return syntax.Formulation(self._cover(parts[:2]), self._word(parts[1]), clauses, True)


def _label(given: list[Any] | None) -> str:
    """The equation number in ``name(17): …``, as it is written."""
    return ", ".join(p.value if isinstance(p, syntax.Text) else p.at.text for p in given or ())
