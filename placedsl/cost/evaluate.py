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

__all__ = ["Evaluation", "Violation", "evaluate"]


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
    quantities = Quantities(facts, known)
    if problem.replication is not None:
        # A placement that says nothing of copies has one of everything.
        shared = {(d,): copies for d, copies in enumerate(quantities.copies)} | dict(values.get("copies", {}))
        values = {**values, "copies": shared}
        quantities = Quantities(facts, known, [shared[d,] for d in range(facts.devices)])
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
