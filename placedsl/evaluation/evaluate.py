"""What a placement costs and what it violates."""

from __future__ import annotations

from collections.abc import Sequence

from placedsl.diagnostics import Diagnostic, InputError
from placedsl.evaluation import built_in_constraints as constraints
from placedsl.evaluation import user_constraints
from placedsl.evaluation.cluster_loads import ClusterLoads
from placedsl.evaluation.evaluation import Evaluation, Violation
from placedsl.evaluation.expressions import Compiler
from placedsl.evaluation.planned_stages import PlannedStages
from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.quantities import Quantities
from placedsl.evaluation.sizes import cancels, size
from placedsl.evaluation.tolerance import loosely
from placedsl.problem import expression_walks as walks
from placedsl.problem import expressions as core
from placedsl.problem.execution import TIMES
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values

__all__ = ["Evaluation", "Violation", "evaluate", "quantities_of"]


def quantities_of(
    data: ProblemData, placement: Sequence[int], values: Values | None = None, *, not_before: bool = False
) -> Quantities:
    """The quantities of a placement; where ``values`` say nothing of copies, there is one of everything."""
    values = values or {}
    decisions = {name: values[name] for name in data.problem.execution.schedule_decisions if name in values}
    plain = Quantities(data, placement, schedule_decisions=decisions, not_before=not_before)
    copies = values.get("copies") if data.problem.execution.data_parallelism is not None else None
    if not copies:
        return plain
    shared = [copies.get((d,), number) for d, number in enumerate(plain.copies)]
    return Quantities(data, placement, shared, decisions)


def evaluate(problem: Problem, placement: Sequence[int], values: Values | None = None) -> Evaluation:
    """Cost and violations of a placement: a device position per node, -1 for a node not placed.

    ``values`` are those of the spec's own variables, by name and the positions of their indices, and the further
    decisions of the execution model (``Execution.schedule_decisions``).

    Given start times fix only the *order*: tasks run as early as that order allows.  If that schedule violates a
    constraint, or if keeping the given times lowers a soft cost or an objective (a span can end earlier by beginning
    late), the given times are used instead.  While a node is on no device, the objectives are nan and the constraints
    are not evaluated; the same holds for one sample that cannot run: a device does not support its node, calls wait
    for one another, a transfer has no route.  Raises InputError for a placement of the wrong length and for an
    expression without a value.
    """
    data = ProblemData(problem)
    given = [int(device) for device in placement]
    if len(given) != data.nodes:
        message = f"the placement has {len(given)} entries, the graph has {data.nodes} nodes"
        raise InputError([Diagnostic(message)])
    found = _evaluated(data, given, values or {}, not_before=False)
    doubted = bool(found.violations) or any(cost > 0.0 for cost in found.soft_costs) or _of_times(problem)
    if doubted and "start" in problem.execution.schedule_decisions and "start" in (values or {}):
        kept = _evaluated(data, given, values or {}, not_before=True)
        if not kept.violations and (found.violations or _less(kept.objectives, found.objectives)):
            return kept
    return found


def _of_times(problem: Problem) -> bool:
    """Whether an objective says more of times than the latency, which is never better for starting later."""
    bodies = [goal.body for goal in problem.objectives]
    others = [body for body in bodies if not (isinstance(body, core.Provided) and body.name == "latency")]
    return any(not TIMES.isdisjoint(walks.provided_names(body)) for body in others)


def _less(kept: Sequence[float], found: Sequence[float]) -> bool:
    """Lexicographically; what kept starts exceed by no more than solvers leave open counts as the same."""
    for one, other in zip(kept, found, strict=True):
        if not loosely("==", one, other, max(abs(one), abs(other))):
            return one < other
    return False


def _evaluated(data: ProblemData, given: Sequence[int], values: Values, *, not_before: bool) -> Evaluation:
    problem = data.problem
    known = [d if 0 <= d < data.devices else -1 for d in given]
    quantities = quantities_of(data, known, values, not_before=not_before)
    if problem.execution.data_parallelism is not None:
        values = {**values, "copies": {(d,): number for d, number in enumerate(quantities.copies)}}
    if quantities.stages is not None:
        values = {**values, **_plan_decisions(quantities.stages, quantities.clusters)}
    violations = list(constraints.missing(data, list(given)))
    complete = not violations
    violations += constraints.unsupported(data, quantities)
    if problem.execution.one_sample:
        violations += constraints.times(data, quantities) if not violations else []
        complete = not violations
        values = {**values, **_schedule_decisions(problem, quantities)} if complete else values
    objectives = [float("nan")] * len(problem.objectives)
    sizes = [float("nan")] * len(problem.objectives)
    soft_costs: list[float] = []
    unknown = [name for name in problem.variables if name not in values]
    violations += [constraints.unvalued(problem.variables[name]) for name in unknown]
    if complete and not unknown:
        compiler = Compiler(data, quantities, values)
        violations += constraints.out_of_bounds(problem, data, values)
        violations += constraints.copies(data, quantities)
        soft_costs = [float(compiler.number(one.cost)(compiler.environment())) for one in problem.soft_constraints]
        for i, objective in enumerate(problem.objectives):
            value = compiler.number(objective.body)
            terms = size(objective.body, compiler) if cancels(objective.body, compiler) else None
            objectives[i] = float(value(compiler.environment()))
            sizes[i] = abs(objectives[i]) if terms is None else float(terms(compiler.environment()))
        for rule in problem.constraints:
            if rule.built_in:
                violations += constraints.CHECKS[rule.built_in](rule, data, quantities)
            else:
                found = user_constraints.check(rule, compiler)
                violations += [] if found is None else [found]
    return Evaluation(
        problem=problem,
        objectives=tuple(objectives),
        violations=tuple(violations),
        loads=tuple(quantities.loads),
        memory=tuple(quantities.memory),
        nodes=tuple(tuple(nodes) for nodes in quantities.nodes),
        soft_costs=tuple(soft_costs),
        sizes=tuple(sizes),
        values={name: dict(known) for name, known in values.items()},
        times=quantities.times if problem.execution.one_sample and complete else None,
        streamed=tuple(quantities.streamed) if problem.streaming.any else (),
        work=quantities.work,
    )


def _plan_decisions(stages: PlannedStages, clusters: ClusterLoads | None) -> Values:
    """The decisions of a plan as the stages carry them out."""
    known: dict[str, dict[tuple[int, ...], float]] = {}
    if clusters is not None:
        known["cluster_copies"] = {(c,): each for c, each in clusters.copies.items()}
    if stages.sharing.chunks > 1:
        known["chunk"] = {(v,): own for v, own in enumerate(stages.chunk)}
    return known | {
        "copy_size": {(d,): stages.tensor[d] for d in stages.used},
        "option": {(v,): float(option) for v, option in enumerate(stages.option)},
        "order": {(d,): stages.number[d] for d in stages.used},
    }


def _schedule_decisions(problem: Problem, quantities: Quantities) -> Values:
    """The decisions of the schedule as the run carries them out."""
    if problem.execution.run == "subgraph_calls":
        return {"piece": {(v,): quantities.of_element("piece", (v,)) for v in range(problem.graph.nodes)}}
    times = quantities.times
    return {
        "start": {(v,): at for v, at in enumerate(times.start)},
        "sent": {(t, d): at for (t, d), at in times.sent.items()},
    }
