"""What a plan decides beside the placement, as the values of an answer."""

from __future__ import annotations

from placedsl.diagnostics import Diagnostic, InputError, Source, nearest
from placedsl.problem.plan import Plan
from placedsl.problem.problem import Problem
from placedsl.problem.values import Values


def plan_decisions(problem: Problem, plan: Plan, source: Source | None = None) -> Values:
    """Copies, the devices of each copy, the options of nodes and the order of stages.

    ``source``: the text that the plan was read from, for messages.  InputError for what the problem does not have.
    """
    costs = problem.execution.options
    assert costs is not None, "only plans decide anything"
    graph, devices = problem.graph, problem.machine.positions
    operators = graph.spread(range(graph.nodes))
    nodes = {str(i): v for i, v in zip(graph.written.ids, operators, strict=True)}
    columns = zip(costs.node.tolist(), costs.name, costs.degree.tolist(), strict=True)
    known = {key: option for option, key in enumerate(columns)}
    out: dict[str, dict[tuple[int, ...], float]] = {
        "copies": {(d,): 0.0 for d in range(len(problem.machine.devices))}, "copy_size": {}, "option": {}, "order": {}
    }  # fmt: skip
    levels = problem.execution.cluster_levels
    chunks = problem.execution.chunks
    if levels is not None:
        out["cluster_copies"] = {}
    if chunks > 1:
        out["chunk"] = {}
    found: list[Diagnostic] = []
    place = None if source is None else source.whole()
    for stage in plan.stages:
        degree = stage.parallelism.get("tensor", 1)
        if stage.devices[0] not in devices:
            message = f"there is no device '{stage.devices[0]}'"
            found.append(Diagnostic(message, place, nearest(stage.devices[0], devices)))
            continue
        at = (devices[stage.devices[0]],)
        out["copies"][at], out["copy_size"][at] = float(stage.parallelism.get("data", 1)), float(degree)
        if chunks == 1 or at not in out["order"]:
            out["order"][at] = float(stage.number)
        if chunks == 1 and stage.chunk is not None:
            message = f"stage {stage.number} is chunk {stage.chunk}, and the spec gives each stage one"
            found.append(Diagnostic(message, place, "as in parallelism { chunks = 2 }"))
        for family, number in (stage.across or {}).items():
            level = -1 if levels is None or family not in levels.families else levels.families.index(family)
            if levels is None or level < 0:
                message = f"the spec lets no clusters '{family}' share samples"
                found.append(Diagnostic(message, place, "as in parallelism { across = server }"))
                continue
            cluster = levels.around[at[0]][level]
            if out["cluster_copies"].setdefault((cluster,), float(number)) != number:
                name, known_number = problem.machine.clusters[cluster].name, round(out["cluster_copies"][cluster,])
                message = f"two stages of '{name}' run in {known_number} and in {number} of '{family}'"
                found.append(Diagnostic(message, place, "all that a cluster holds runs in as many of its level"))
        for node in stage.nodes:
            v = nodes.get(str(node.id))
            name = node.option or ""
            if v is None:
                found.append(Diagnostic(f"the graph has no node '{node.id}'", place, nearest(str(node.id), nodes)))
            elif (v, name, degree) not in known:
                message = f"node '{node.id}' has no option '{name}' for {degree} device{'s' * (degree > 1)}"
                has = [other for owner, other, t in known if owner == v and t == degree]
                found.append(Diagnostic(message, place, nearest(name, has)))
            else:
                if chunks > 1:
                    out["chunk"][v,] = float(stage.chunk or 1)
                out["option"][v,] = float(known[v, name, degree])
    if found:
        raise InputError(found)
    return out
