"""``minimize`` and ``subject to``: objectives, with the prices of soft constraints in the first, and constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from placedsl.language.checking.checker import Checker
from placedsl.language.elaboration import constraints
from placedsl.language.syntax import statements as syntax
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.problem import Constraint, Objective, SoftConstraint, Variable
from placedsl.records import dataclass

Body = core.Expression | core.SetExpression | core.Binder
#: A constraint of ``subject to`` with the definition that it names (None: it has a formula of its own).
Named = tuple[syntax.Rule, syntax.ConstraintDefinition | None]


@dataclass(frozen=True)
class Goals:
    """The checked objectives and constraints of a spec; prices of soft constraints are in the first objective."""

    objectives: tuple[Objective, ...]
    rules: tuple[Constraint, ...]
    soft_constraints: tuple[SoftConstraint, ...]

    def bodies(self, sets: Mapping[str, core.SetExpression], variables: Mapping[str, Variable]) -> list[Body]:
        """All that the spec asks of its elements."""
        bodies: list[Body] = [r.body for r in self.rules]
        binders = [b for v in variables.values() for b in v.binders]
        return [*bodies, *(o.body for o in self.objectives), *sets.values(), *binders]

    def partitioned(self, bodies: Sequence[Body]) -> set[str]:
        """The attributes that some expression partitions the nodes by."""
        parts = (part for body in bodies for part in walks.every(body))
        named = {part.name for part in parts if isinstance(part, core.NamedSet)}
        by = {name.partition(":")[2] for name in named if name.startswith("partition:")}
        return by | {r.by for r in self.rules if r.built_in == "colocated"}


def goals(checker: Checker, minimize: syntax.Minimize | None, named: Sequence[Named]) -> Goals:
    """Check objectives and constraints; what is wrong is reported and left out."""
    objectives = _objectives(checker, minimize)
    hard = [constraints.rule(checker, rule, definition) for rule, definition in named if rule.price is None]
    soft: list[SoftConstraint | None] = []
    if objectives:
        priced = [rule for rule, _ in named if rule.price is not None]
        soft = [constraints.soft_constraint(checker, rule, objectives[0]) for rule in priced]
    costs = tuple(one for one in soft if one is not None)
    if costs:
        objectives = (_with_costs(objectives[0], costs), *objectives[1:])
    return Goals(objectives, tuple(rule for rule in hard if rule is not None), costs)


def _objectives(checker: Checker, statement: syntax.Minimize | None) -> tuple[Objective, ...]:
    out = []
    for expression in statement.objectives if statement else ():
        body, kind = checker.number(expression)
        if kind.kind != "error":
            dimension = checker.vocabulary.as_written(kind.dimension)
            out.append(Objective(" ".join(expression.at.text.split()), body, dimension, expression.at.span))
    return tuple(out)


def _with_costs(objective: Objective, soft: tuple[SoftConstraint, ...]) -> Objective:
    """The objective with what broken soft constraints cost."""
    body = objective.body
    for one in soft:
        body = core.Arithmetic("+", body, one.cost, objective.span)
    return replace(objective, body=body, name=" + ".join([objective.name, *(one.name for one in soft)]))
