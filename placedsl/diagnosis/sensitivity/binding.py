"""Which constraints bind on a placement, and which devices hold the objective up: by the evaluator's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from placedsl.diagnostics import Span
from placedsl.evaluation.conditions import approximate, size_of_terms
from placedsl.evaluation.constraint_instances import instances
from placedsl.evaluation.evaluate import quantities_of
from placedsl.evaluation.expressions import Compiler
from placedsl.evaluation.load_components import Components
from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.tolerance import loosely, same, total
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.execution import Execution
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values
from placedsl.tolerances import EQUAL_COSTS, SAME_VALUE


@dataclass(frozen=True)
class Binding:
    """A rule and its instances without slack; ``total`` counts the instances that compare numbers (0: none does)."""

    name: str
    span: Span
    instances: tuple[str, ...]
    total: int


@dataclass(frozen=True)
class Bottleneck:
    """A device that the first objective equals, or is made of.

    ``value`` is its load (in one pass, where passes count apart: ``part``) or its memory; ``moving`` the part of a load
    that moves tensors, ``streamed`` the part that streams what does not fit.
    """

    device: str
    value: float
    moving: float = 0.0
    part: str = ""
    streamed: float = 0.0


def binding(problem: Problem, placement: Sequence[int], values: Values | None = None) -> tuple[Binding, ...]:
    """For each rule the comparisons of numbers that hold with equality; other conditions have no slack to speak of."""
    data = ProblemData(problem)
    # The starts of an answer are those that it was verified with.
    kept = "start" in problem.execution.schedule_decisions and "start" in (values or {})
    compiler = Compiler(data, quantities_of(data, placement, values, not_before=kept), values)
    out = []
    for rule in problem.constraints:
        tight, compared = [], 0
        for instance in instances(problem, rule):
            body = instance.body
            if not isinstance(body, core.Comparison) or body.of != "number" or not walks.decided(body):
                continue
            compared += 1
            left, right = compiler.number(body.left), compiler.number(body.right)
            size = size_of_terms(body, compiler, left, right)
            environment = compiler.environment()
            one, other = left(environment), right(environment)
            if same(one, other, partial(size, environment)) or (
                approximate(body, compiler) and loosely("==", one, other, max(abs(one), abs(other)))
            ):
                tight.append(instance.label)
        out.append(Binding(rule.name, rule.span, tuple(tight), compared))
    return tuple(out)


def bottlenecks(problem: Problem, placement: Sequence[int], values: Values | None = None) -> tuple[Bottleneck, ...]:
    """The devices whose load, or memory, the first objective is; none where it is no such largest value."""
    data = ProblemData(problem)
    quantities = quantities_of(data, placement, values)
    goal = problem.objectives[0].body
    name = goal.name if isinstance(goal, core.Provided) else ""
    if name == "peak_memory":
        held = {d: quantities.memory[d] for d in data.sets["accelerators"]}
        return tuple(Bottleneck(data.device_names[d], held[d]) for d in _largest(held))
    if name != "time_per_sample":
        return ()
    out = []
    parts = ("forward", "backward") if problem.execution.passes > 1 else ("",)
    for part, components, loads in zip(parts, quantities.components, quantities.phase_loads, strict=True):
        for d in _largest(dict(enumerate(loads))):
            moving = _moving(problem.execution, components[d], loads[d], quantities.copies[d])
            out.append(Bottleneck(data.device_names[d], loads[d], moving, part, total(components[d].streamed)))
    return tuple(out)


def _moving(execution: Execution, work: Components, load: float, copies: float) -> float:
    """How much of a load is transfers; beside computation they count only where they take longest."""
    if execution.communication == "sequential":
        return total(work.transfers) / max(1.0, copies)
    alone = work.busy(execution.communication)  # synchronisation of weights adds to the load, and is no transfer
    return load * (total(work.computation) < alone and load * copies <= alone * (1 + EQUAL_COSTS))


def _largest(values: dict[int, float]) -> list[int]:
    """The devices with the largest value; none when that is zero."""
    most = max(values.values(), default=0.0)
    return [d for d, value in values.items() if value > 0.0 and value >= most * (1.0 - SAME_VALUE)]
