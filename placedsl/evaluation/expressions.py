"""Expressions compiled to closures over an environment: one position per bound variable."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

from placedsl.diagnostics import Diagnostic, InputError, Span
from placedsl.evaluation import conditions
from placedsl.evaluation.binder_loops import Elements, Env, Loop, Truth, as_element, loop_over, nested
from placedsl.evaluation.overlap import overlaps
from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.quantities import DEVICE_QUANTITIES, RUN_QUANTITIES, STAGE_QUANTITIES, Quantities
from placedsl.evaluation.tolerance import extreme, product, total
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.values import Values

Number = Callable[[Env], float]
Position = Callable[[Env], int]
#: Conditions of where a node is; as numbers they are 0 or 1.
_PLACES = ("on", "inside")

COMBINE: dict[str, Callable[[Sequence[Any], Sequence[Any]], list[Any]]] = {
    "union": lambda a, b: list(dict.fromkeys([*a, *b])),
    "intersect": lambda a, b: [x for x in a if x in set(b)],
    "except": lambda a, b: [x for x in a if x not in set(b)],
}


def fail(message: str, span: Span) -> InputError:
    """The error for an expression that has no value."""
    return InputError([Diagnostic(message, span)])


def checked_extreme(operator: str, values: Sequence[float], span: Span) -> float:
    """``max`` or ``min``; InputError when there are no values."""
    if not values:
        raise fail(f"the {operator} of nothing has no value", span)
    return extreme(operator, values)


class Compiler:
    """Compiles expressions for one placement; evaluate what it gives on an environment of ``environment()``."""

    def __init__(
        self,
        data: ProblemData,
        quantities: Quantities,
        values: Values | None = None,
        own_sets: dict[str, Sequence[Any]] | None = None,
    ) -> None:
        self.data, self.quantities = data, quantities
        self.values: Values = values or {}
        self.own_sets: dict[str, Sequence[Any]] = {} if own_sets is None else own_sets
        self.registers: dict[str, int] = {}
        self.count = 0

    def environment(self) -> Env:
        """An environment with room for every variable compiled so far."""
        return [-1] * self.count

    # sets and binders

    def named(self, name: str) -> Sequence[Any]:
        """The elements of a named set; pairs are tuples."""
        if name in self.data.sets:
            return self.data.sets[name]
        if name not in self.own_sets:
            sets = self.data.problem.sets
            if name not in sets:
                return ()  # a device family of none
            for part in walks.named_sets(sets, name):  # those that it is made of first: chains may be long
                if part not in self.own_sets:
                    inner = Compiler(self.data, self.quantities, self.values, self.own_sets)
                    elements = inner.elements(sets[part])
                    self.own_sets[part] = elements(inner.environment())
        return self.own_sets[name]

    def elements(self, of: core.SetExpression) -> Elements:
        """The elements of a set."""
        match of:
            case core.NamedSet(name=name):
                listed = self.named(name)
                return lambda _: listed
            case core.Listed(items=items):
                written = [[self.position(e) for e in item] for item in items]
                return lambda env: list(dict.fromkeys(as_element(tuple(e(env) for e in item)) for item in written))
            case core.Range(low=low, high=high):
                first, last = self.position(low), self.position(high)
                return lambda env: range(first(env), last(env) + 1)
            case core.Combined(operator=operator, left=left, right=right):
                combine, a, b = COMBINE[operator], self.elements(left), self.elements(right)
                return lambda env: combine(a(env), b(env))
            case core.Comprehension(binders=binders):
                with self.bound(binders) as loop:
                    take = itemgetter(*(self.registers[slot] for binder in binders for slot in binder.slots))
                return lambda env: [take(env) for _ in loop(env)]
            case core.Members(owner=owner, owner_sort=sort):
                members, position = self.data.members[sort], self.position(owner)
                return lambda env: members[position(env)]
        raise TypeError(f"{type(of).__name__} is no set")

    @contextmanager
    def bound(self, binders: tuple[core.Binder, ...]) -> Iterator[Loop]:
        """Bind variables for what is compiled inside; the loop runs through all their combinations."""
        outside = dict(self.registers)
        loops: list[Loop] = []
        for binder in binders:
            elements = self.elements(binder.set)
            registers = range(self.count, self.count + len(binder.slots))
            self.count += len(registers)
            self.registers |= dict(zip(binder.slots, registers, strict=True))
            condition = None if binder.condition is None else self.truth(binder.condition)
            loops.append(loop_over(elements, registers, condition))
        yield nested(loops)
        self.registers = outside

    # elements and texts

    def position(self, node: core.Expression) -> Position:
        """An element."""
        match node:
            case core.Slot(name=name):
                return itemgetter(self.registers[name])
            case core.Element(position=position):
                return lambda _: position
            case core.Pick(set=of, index=index, span=span):
                elements, which = self.elements(of), self.position(index)
                name = of.name if isinstance(of, core.NamedSet) else "this set"

                def pick(env: Env) -> int:
                    k, listed = which(env), elements(env)
                    if not 1 <= k <= len(listed):
                        raise fail(f"'{name}' has {len(listed)} elements, there is no number {k}", span)
                    return int(listed[k - 1])

                return pick
            case core.Attribute(name="producer" | "first"):
                return self.attribute(node)
        number, place = self.number(node), node.span

        def whole(env: Env) -> int:
            value = number(env)
            if value != round(value):
                raise fail(f"a whole number is expected here, this is {value:g}", place)
            return round(value)

        return whole

    def attribute(self, node: core.Attribute) -> Callable[[Env], Any]:
        """The value of an attribute, whatever it is."""
        column, owner = self.data.attributes[node.sort, node.name], self.position(node.owner)
        if node.device is None:
            return lambda env: column[owner(env)]
        device = self.position(node.device)
        if node.target is not None:
            target = self.position(node.target)
            return lambda env: column[owner(env)][device(env)][target(env)]
        return lambda env: column[owner(env)][device(env)]

    def text(self, node: core.Expression) -> Callable[[Env], str | None]:
        """A text, or None for an attribute that is absent."""
        if isinstance(node, core.Constant):
            value = str(node.value)
            return lambda _: value
        if isinstance(node, core.Attribute):
            return self.attribute(node)
        if isinstance(node, core.Table):
            return self.table(node)
        raise TypeError(f"{type(node).__name__} is no text")

    # numbers

    def number(self, node: core.Expression) -> Number:
        """A number, or a truth as 0 or 1."""
        match node:
            case core.Constant(value=value):
                fixed = float(value)
                return lambda _: fixed
            case core.Slot(name=slot):
                return itemgetter(self.registers[slot])
            case core.Pick():
                return self.position(node)
            case core.Attribute():
                return self.attribute(node)
            case core.Table():
                return self.table(node)
            case core.Decision():
                return self.decision(node)
            case core.Provided(name=name) if name not in _PLACES:
                return self.provided(node)
            case core.Arithmetic():
                return self.arithmetic(node)
            case core.Aggregate():
                return self.aggregate(node)
            case core.Largest(operator=operator, items=items, span=span):
                listed = [self.number(item) for item in items]
                return lambda env: checked_extreme(operator, [item(env) for item in listed], span)
            case core.Absolute(part=part):
                signed = self.number(part)
                return lambda env: abs(signed(env))
            case core.Conditional(condition=condition, then=then, otherwise=otherwise):
                holds, yes, no = self.truth(condition), self.number(then), self.number(otherwise)
                return lambda env: yes(env) if holds(env) else no(env)
        truth = self.truth(node)
        return lambda env: 1.0 if truth(env) else 0.0

    def table(self, node: core.Table) -> Callable[[Env], Any]:
        """A value of an indexed parameter."""
        values = self.data.problem.tables[node.name].values
        return self.looked_up(node, lambda key: values.get(key, values.get(())))

    def decision(self, node: core.Decision) -> Callable[[Env], Any]:
        """The value of one of the spec's own variables."""
        if node.variable not in self.data.problem.variables:
            message = f"'{node.variable}' is a variable of a formulation: it has no value on a placement"
            raise fail(message, node.span)
        return self.looked_up(node, self.values.get(node.variable, {}).get)

    def looked_up(self, node: core.Table | core.Decision, find: Callable[[Any], Any]) -> Callable[[Env], Any]:
        """What is found under the positions of the indices."""
        arguments = [self.position(a) for a in node.arguments]
        problem = self.data.problem
        name, sorts = (
            (node.name, problem.tables[node.name].sorts)
            if isinstance(node, core.Table)
            else (node.variable, problem.variables[node.variable].sorts)
        )

        def value(env: Env) -> Any:
            key = tuple(argument(env) for argument in arguments)
            found = find(key)
            if found is None:
                shown = ", ".join(self.data.label(sort, k) for sort, k in zip(sorts, key, strict=True))
                raise fail(f"'{name}' has no value" + (f" for {shown}" if shown else ""), node.span)
            return found

        return value

    def provided(self, node: core.Provided) -> Number:
        """A quantity of the vocabulary."""
        arguments = [self.position(argument) for argument in node.arguments]
        if node.name in DEVICE_QUANTITIES:
            column = DEVICE_QUANTITIES[node.name](self.quantities)
            (device,) = arguments
            return lambda env: column[device(env)]
        if node.name == "traffic":
            traffic = self.quantities.traffic
            source, target = arguments
            return lambda env: traffic.get((source(env), target(env)), 0.0)
        if node.name in (*RUN_QUANTITIES, *STAGE_QUANTITIES):
            of = self.quantities.of_element
            return lambda env: of(node.name, tuple(argument(env) for argument in arguments))
        try:
            value = self.quantities.scalar(node.name)
        except KeyError:
            raise fail(f"there is no quantity '{node.name}'", node.span) from None
        return lambda _: value

    def arithmetic(self, node: core.Arithmetic) -> Number:
        """``+ - * / mod``; nothing times infinity is nothing (a time where the device does not support the node)."""
        left, right, span = self.number(node.left), self.number(node.right), node.span
        if node.operator == "+":
            return lambda env: left(env) + right(env)
        if node.operator == "-":
            return lambda env: left(env) - right(env)
        if node.operator == "*":
            return lambda env: product(left(env), right(env))
        remainder = node.operator == "mod"

        def quotient(env: Env) -> float:
            divisor = right(env)
            if divisor == 0.0:
                raise fail("division by zero", span)
            if not remainder:
                return left(env) / divisor
            dividend = left(env)
            if math.isinf(dividend):
                raise fail("an infinite number has no remainder", span)
            return dividend % divisor

        return quotient

    def aggregate(self, node: core.Aggregate) -> Number:
        """``sum``, ``count``, ``max`` or ``min`` over binders."""
        operator, span = node.operator, node.span
        with self.bound(node.binders) as loop:
            if operator == "count":
                truth = self.truth(node.body)
                return lambda env: float(sum(1 for _ in loop(env) if truth(env)))
            body = self.number(node.body)
        if operator == "sum":
            return lambda env: total(body(env) for _ in loop(env))
        if operator == "mean":

            def mean(env: Env) -> float:
                values = [body(env) for _ in loop(env)]
                if not values:
                    raise fail("the mean of nothing has no value", span)
                return total(values) / len(values)

            return mean
        return lambda env: checked_extreme(operator, [body(env) for _ in loop(env)], span)

    # truths

    def truth(self, node: core.Expression) -> Truth:
        """A condition."""
        match node:
            case core.Constant(value=value):
                fixed = bool(value)
                return lambda _: fixed
            case core.Attribute():
                attribute = self.attribute(node)
                return lambda env: bool(attribute(env))
            case core.Provided(name="used"):
                used = self.provided(node)
                return lambda env: used(env) > 0.0
            case core.Provided(name="on", arguments=(v, d)):
                placement, at, device = self.quantities.placement, self.position(v), self.position(d)
                return lambda env: placement[at(env)] == device(env)
            case core.Provided(name="moved" | "takes" as name, arguments=arguments):
                of, indices = self.quantities.of_element, [self.position(argument) for argument in arguments]
                return lambda env: of(name, tuple(index(env) for index in indices)) > 0.5
            case core.Provided(name="inside", arguments=(v, c)):
                placement, at, cluster = self.quantities.placement, self.position(v), self.position(c)
                members = self.data.members["cluster"]
                return lambda env: placement[at(env)] in members[cluster(env)]
            case core.Table():
                return self.table(node)
            case core.Decision():
                decided = self.decision(node)
                return lambda env: decided(env) != 0.0
            case core.Not(part=part):
                inner = self.truth(part)
                return lambda env: not inner(env)
            case core.Logic():
                return conditions.logic(node, self)
            case core.Comparison():
                return conditions.comparison(node, self)
            case core.Forall(binders=binders, body=body):
                with self.bound(binders) as loop:
                    each = self.truth(body)
                return lambda env: all(each(env) for _ in loop(env))
            case core.Within():
                return conditions.membership(node, self)
            case core.Glob(subject=subject, pattern=pattern):
                text, matches = self.text(subject), re.compile(fnmatch.translate(pattern)).match

                def alike(env: Env) -> bool:
                    value = text(env)
                    return value is not None and matches(value) is not None

                return alike
            case core.Conditional(condition=condition, then=then, otherwise=otherwise):
                holds, yes, no = self.truth(condition), self.truth(then), self.truth(otherwise)
                return lambda env: yes(env) if holds(env) else no(env)
            case core.SetProperty():
                witness = conditions.witness(node, self)
                return lambda env: not witness(env)
            case core.NoOverlap():
                overlapping = overlaps(node, self)
                return lambda env: next(overlapping(env), None) is None
        raise TypeError(f"{type(node).__name__} is no condition")
