"""What a placement costs and what it violates."""

from __future__ import annotations

from collections.abc import Sequence

from placedsl.cost import constraints, custom
from placedsl.cost.expressions import Compiler, OwnValues
from placedsl.cost.facts import Facts
from placedsl.cost.quantities import Quantities
from placedsl.cost.verdict import Evaluation, Violation
from placedsl.diagnostics import Diagnostic, InputError
from placedsl.problem import Problem

__all__ = ["Evaluation", "Violation", "evaluate", "quantities_of"]


def quantities_of(facts: Facts, placement: Sequence[int], values: OwnValues | None = None) -> Quantities:
    """The quantities of a placement; where ``values`` say nothing of copies, there is one of everything."""
    plain = Quantities(facts, placement)
    told = (values or {}).get("copies") if facts.problem.replication is not None else None
    if not told:
        return plain
    return Quantities(facts, placement, [told.get((d,), number) for d, number in enumerate(plain.copies)])


def evaluate(problem: Problem, placement: Sequence[int], values: OwnValues | None = None) -> Evaluation:
    """Cost and violations of a placement: a device position per node, -1 for a node not placed.

    ``values`` are those of the spec's own variables, by name and the positions of their indices.
    While a node is on no device the objectives are nan and the rules are not looked at.  Raises
    InputError for a placement of the wrong length and for an expression without a value.
    """
    facts = Facts(problem)
    given = [int(device) for device in placement]
    if len(given) != facts.nodes:
        message = f"the placement has {len(given)} entries, the graph has {facts.nodes} nodes"
        raise InputError([Diagnostic(message)])
    values = values or {}
    known = [d if 0 <= d < facts.devices else -1 for d in given]
    quantities = quantities_of(facts, known, values)
    if problem.replication is not None:
        values = {**values, "copies": {(d,): number for d, number in enumerate(quantities.copies)}}
    violations = list(constraints.missing(facts, given))
    complete = not violations
    violations += constraints.unsupported(facts, quantities)
    objectives = [float("nan")] * len(problem.objectives)
    soft: list[float] = []
    unknown = [name for name in problem.variables if name not in values]
    violations += [constraints.unvalued(problem.variables[name]) for name in unknown]
    if complete and not unknown:
        compiler = Compiler(facts, quantities, values)
        violations += constraints.out_of_bounds(problem, facts, values)
        violations += constraints.copies(facts, quantities)
        soft = [float(compiler.number(one.cost)(compiler.environment())) for one in problem.soft]
        for i, objective in enumerate(problem.objectives):
            value = compiler.number(objective.body)
            objectives[i] = float(value(compiler.environment()))
        for rule in problem.rules:
            if rule.built_in:
                violations += constraints.CHECKS[rule.built_in](rule, facts, quantities)
            else:
                found = custom.check(rule, compiler)
                violations += [] if found is None else [found]
    return Evaluation(
        objectives=tuple(objectives),
        violations=tuple(violations),
        loads=tuple(quantities.loads),
        memory=tuple(quantities.memory),
        nodes=tuple(tuple(nodes) for nodes in quantities.nodes),
        soft=tuple(soft),
        values={name: dict(known) for name, known in values.items()},
    )
