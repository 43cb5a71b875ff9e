"""The instances of a rule: one condition for each combination of what its ``forall`` ranges over.

An instance is a rule of its own, with elements in the place of bound variables, so that everything that takes a
rule takes it: grounding, every solver, the evaluator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import islice
from typing import Any

from placedsl.evaluation.expressions import Compiler
from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.quantities import Quantities
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.problem import Constraint, Problem

#: More instances than this are not told apart by the last of the variables that a rule ranges over.
MOST = 2000


@dataclass(frozen=True)
class Instance:
    """One instance of ``rule``: ``label`` says which (``d=gpu[1]``; empty where the rule has but one).

    ``elements`` holds the bound variables in order, each with its sort and position.
    """

    rule: Constraint
    label: str
    elements: tuple[tuple[str, core.Sort, int], ...]
    body: core.Expression

    def as_rule(self, name: str) -> Constraint:
        """The instance as a rule by this name."""
        return replace(self.rule, name=name, built_in="", by="", body=self.body)


def instances(problem: Problem, rule: Constraint, most: int = MOST) -> tuple[Instance, ...]:
    """Every instance that says anything; a group of nodes is one of ``colocated``, and contiguity is a whole."""
    data = ProblemData(problem)
    split = _Split(data, rule)
    deepest = 1 if rule.built_in == "colocated" else 9
    for depth in range(deepest, -1, -1):
        found = tuple(islice(split.under(rule.body, (), depth), most + 1))
        if len(found) <= most or not depth:
            return found
    raise AssertionError("without a variable a rule has one instance a part")


@dataclass(frozen=True, eq=False)
class _Split:
    data: ProblemData
    rule: Constraint

    def under(
        self, node: core.Expression, bound: tuple[tuple[str, core.Sort, int], ...], depth: int
    ) -> Iterator[Instance]:
        """The instances of a condition without free variables; ``depth`` variables may still be told apart."""
        match node:
            case core.Forall(binders=binders, body=body) if depth > 0:
                first, rest = binders[0], binders[1:]
                inner = core.Forall(rest, body, node.span) if rest else body
                for positions in self._elements(first):
                    chosen = dict(zip(first.slots, positions, strict=True))
                    elements = {s: _written(sort, chosen[s], first) for s, sort in _sorted(first)}
                    kept = tuple(entry for entry in bound if entry[0] not in chosen)
                    more = tuple((s, sort, chosen[s]) for s, sort in _sorted(first))
                    yield from self.under(substituted(inner, elements), kept + more, depth - len(chosen))
            case core.Logic(operator="and", parts=parts) if not self.rule.built_in:
                for part in parts:
                    yield from self.under(part, bound, depth)
            case core.Logic(operator="=>", parts=(left, right)) if not walks.decided(left):
                if self._compiler().truth(left)([]):
                    yield from self.under(right, bound, depth)
            case _:
                if not self._says_nothing(bound):
                    yield Instance(self.rule, self._label(node, bound), bound, node)

    def _elements(self, binder: core.Binder) -> list[tuple[int, ...]]:
        compiler = self._compiler()
        with compiler.bound((binder,)) as loop:
            environment = compiler.environment()
            registers = [compiler.registers[slot] for slot in binder.slots]
            return [tuple(environment[r] for r in registers) for _ in loop(environment)]

    def _compiler(self) -> Compiler:
        return Compiler(self.data, Quantities(self.data, [-1] * self.data.nodes))

    def _says_nothing(self, bound: tuple[tuple[str, core.Sort, int], ...]) -> bool:
        """A group of one node, or the memory of a device that has no limit."""
        if self.rule.built_in == "colocated" and bound:
            return len(self.data.group_members[self.rule.by][bound[0][2]]) < 2
        return self.rule.built_in == "memory" and bool(bound) and self.data.device_memory[bound[0][2]] == float("inf")

    def _label(self, node: core.Expression, bound: tuple[tuple[str, core.Sort, int], ...]) -> str:
        shown = ((name.partition("'")[0], self.data.label(sort, position)) for name, sort, position in bound)
        label = ", ".join(f"{name}={element}" for name, element in shown)
        if label or node is self.rule.body:
            return label
        line = node.span.source.line(node.span.line)
        return line[node.span.column - 1 : node.span.column - 1 + node.span.length]


def _written(sort: core.Sort, position: int, binder: core.Binder) -> core.Expression:
    """An element outright; a whole number is its own."""
    if sort == "integer":
        return core.Constant(float(position), binder.span)
    return core.Element(sort, position, binder.span)


def _sorted(binder: core.Binder) -> zip[tuple[str, core.Sort]]:
    return zip(binder.slots, binder.sorts, strict=True)


def substituted(node: Any, elements: Mapping[str, core.Expression]) -> Any:
    """An expression with elements in the place of free variables."""
    if not elements:
        return node
    match node:
        case core.Slot(name=name):
            return elements.get(name, node)
        case core.Forall(binders=binders, body=body) | core.Aggregate(binders=binders, body=body):
            bound, inner = _rebound(binders, elements)
            return replace(node, binders=bound, body=substituted(body, inner))
        case core.SetProperty(outer=outer, inner=binder, membership=membership):
            bound, inner = _rebound((*outer, binder), elements)
            return replace(node, outer=bound[:-1], inner=bound[-1], membership=substituted(membership, inner))
        case core.NoOverlap(binders=binders):
            bound, inner = _rebound(binders, elements)
            parts = {name: substituted(getattr(node, name), inner) for name in ("presence", "start", "finish")}
            return replace(node, binders=bound, **parts)
        case core.Binder():
            return _rebound((node,), elements)[0][0]
    if isinstance(node, tuple):
        return tuple(substituted(part, elements) for part in node)
    if is_dataclass(node) and not isinstance(node, type) and type(node).__module__ == core.__name__:
        parts = {f.name: getattr(node, f.name) for f in fields(node)}
        return replace(node, **{k: substituted(v, elements) for k, v in parts.items()})
    return node


def _rebound(
    binders: tuple[core.Binder, ...], elements: Mapping[str, core.Expression]
) -> tuple[tuple[core.Binder, ...], Mapping[str, core.Expression]]:
    """Binders with elements put in, and what is still free after them: a variable bound again hides the outer one."""
    out = []
    for binder in binders:
        of = substituted(binder.set, elements)
        elements = {k: v for k, v in elements.items() if k not in binder.slots}
        out.append(replace(binder, set=of, condition=substituted(binder.condition, elements)))
    return tuple(out), elements
