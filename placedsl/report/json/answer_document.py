"""An answer as one JSON object: ``docs/answer.schema.json``."""

from __future__ import annotations

import math
from typing import Any

from placedsl.diagnosis.infeasibility.conflict import Conflict
from placedsl.diagnosis.sensitivity.report import Why
from placedsl.evaluation.evaluate import Evaluation
from placedsl.planner.answer import Answer
from placedsl.problem.plan import Plan, sharing
from placedsl.problem.plan_document import plan_document
from placedsl.problem.problem import Labels, Problem
from placedsl.report.json.memory_parts import MemoryParts
from placedsl.report.json.schedule_document import schedule_document
from placedsl.units import CANONICAL

SCHEMA = 1


def document(answer: Answer, conflict: Conflict | None = None, why: Why | None = None) -> dict[str, Any]:
    """The answer as plain data; what is not known (no placement, no bound, no conflict) is null."""
    problem = answer.problem
    evaluation = answer.evaluation
    goals = []
    for k, goal in enumerate(problem.objectives):
        value = evaluation.objectives[k] if evaluation else math.inf
        goals.append(
            {
                "name": goal.name,
                "value": finite(value),
                "bound": finite(answer.bounds[k]),
                "bound_by": answer.bound_by[k] if k < len(answer.bound_by) and answer.bound_by[k] else None,
                "gap": finite(answer.gaps[k]),
                "unit": CANONICAL.get(goal.dimension, (str(goal.dimension), 1.0))[0],
            }
        )
    return {
        "schema": SCHEMA,
        "spec": problem.name.strip("<>"),
        "status": {"termination": answer.termination, "solution": answer.solution, "message": answer.message},
        "objective": goals[0],
        "objectives": goals,
        "time_unit": "s" if problem.graph.time_in_seconds else "",
        "placement": None if evaluation is None else {str(k): v for k, v in answer.device_of().items()},
        "fused": problem.graph.fused(),
        "devices": [] if evaluation is None else device_list(problem, evaluation),
        "variables": {} if evaluation is None else own_variables(problem, evaluation),
        "soft": [] if evaluation is None else soft_costs(problem, evaluation),
        "schedule": None if evaluation is None else schedule_document(problem, evaluation),
        "plan": None if evaluation is None else plan_document(Plan.of(problem, evaluation)),
        "progress": [
            {"seconds": round(seconds, 6), "value": finite(value), "bound": finite(bound)}
            for seconds, value, bound in answer.progress
        ],
        "method": answer.method,
        "solver": answer.solver or None,
        "verified": evaluation is not None and not evaluation.violations,
        "seconds": {k: round(v, 6) for k, v in answer.seconds.items()},
        "seed": answer.seed,
        "versions": answer.versions,
        "notes": list(answer.notes),
        "conflict": None if conflict is None else conflict_document(conflict),
        "why": None if why is None else why_document(why),
    }


def why_document(why: Why) -> dict[str, Any]:
    """What binds, the bottlenecks, and what each change would do to the first objective."""
    return {
        "binding": [
            {"name": b.name, "line": b.span.line, "instances": list(b.instances), "of": b.total} for b in why.binding
        ],
        "bottlenecks": [
            {"device": b.device, "value": b.value, "moving": b.moving, "part": b.part}
            | ({"streamed": b.streamed} if b.streamed else {})
            for b in why.bottlenecks
        ],
        "changes": [
            {
                "change": e.change, "before": e.before, "value": finite(e.value), "bound": finite(e.bound),
                "termination": e.termination, "proven": e.proven,
            }
            for e in why.effects
        ],
    }  # fmt: skip


def conflict_document(conflict: Conflict) -> dict[str, Any]:
    """The constraints of a conflict, whether they are a smallest set, and what would repair it."""
    return {
        "constraints": [
            {
                "name": m.name, "line": None if m.span is None else m.span.line,
                "instances": list(m.instances), "of": m.total, "cures": m.cures,
            }
            for m in conflict.members
        ],
        "smallest": conflict.smallest,
        "never": conflict.never,
        "repair": list(conflict.repair),
        "unfinished": conflict.unfinished,
    }  # fmt: skip


def finite(value: float) -> float | None:
    """A number that JSON can hold."""
    return value if math.isfinite(value) else None


def device_list(problem: Problem, evaluation: Evaluation) -> list[dict[str, Any]]:
    """Load, memory and nodes of every device, and what these consist of; ``with``: the device whose stage it shares."""
    out: list[dict[str, Any]] = []
    leader, held = sharing(problem, evaluation), MemoryParts(problem, evaluation)
    for i, device in enumerate(problem.machine.devices):
        ids = [problem.graph.written.ids[v] for v in problem.graph.members(evaluation.nodes[i])]
        first = leader.get(i, i)
        load, memory = evaluation.loads[first], evaluation.memory[first]
        work = evaluation.work[first]
        busy = {"compute": work.compute, "receive": work.receive, "send": work.send, "weights": work.weights}
        out.append({
            "name": device.name, "kind": device.kind, "load": finite(load),
            "busy": {kind: finite(seconds) for kind, seconds in busy.items()},
            "memory": memory, "memory_limit": finite(device.memory), "memory_parts": held.of(first), "nodes": ids,
        })  # fmt: skip
        if evaluation.streamed:
            out[-1]["streamed"] = evaluation.streamed[i]
        if i in leader:
            out[-1]["with"] = problem.machine.devices[leader[i]].name
    return out


def own_variables(problem: Problem, evaluation: Evaluation) -> dict[str, Any]:
    """The spec's own variables: a value, or an object of values by index (several indices within one another)."""
    out: dict[str, Any] = {}
    labels = Labels(problem)
    for name, variable in problem.variables.items():
        if variable.binders:
            out[name] = {}
        for key, value in evaluation.values.get(name, {}).items():
            place, words = out, [name, *map(labels.of, variable.sorts, key)]
            for word in words[:-1]:
                place = place.setdefault(word, {})
            place[words[-1]] = int(value) if variable.integer else finite(value)
    return out


def soft_costs(problem: Problem, evaluation: Evaluation) -> list[dict[str, Any]]:
    """What each soft constraint adds to the first objective."""
    pairs = zip(problem.soft_constraints, evaluation.soft_costs, strict=False)
    return [{"name": one.name, "cost": finite(cost)} for one, cost in pairs]


def evaluation_document(problem: Problem, evaluation: Evaluation) -> dict[str, Any]:
    """What ``evaluate --json`` writes: objectives, devices, violations."""
    return {
        "schema": SCHEMA,
        "objectives": [
            {"name": goal.name, "value": finite(value)}
            for goal, value in zip(problem.objectives, evaluation.objectives, strict=True)
        ],
        "fused": problem.graph.fused(),
        "devices": device_list(problem, evaluation),
        "variables": own_variables(problem, evaluation),
        "schedule": schedule_document(problem, evaluation),
        "soft": soft_costs(problem, evaluation),
        "violations": [{"rule": v.rule, "message": v.message} for v in evaluation.violations],
        "feasible": not evaluation.violations,
    }
