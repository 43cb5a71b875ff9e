"""A plan as plain data, the ``plan`` of an answer's JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.graph.readers.json_text import parsed
from placedsl.problem.plan import Plan, PlannedDevice, PlannedNode, Stage, Transfer


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan as JSON holds it; what is not known, or is the same for all without being said, is left out."""
    return {
        "spec": plan.spec,
        "kind": plan.kind,
        "execution": {"run": plan.run, "order": plan.order, "communication": plan.communication},
        "devices": [
            {"name": d.name, "kind": d.kind, "family": d.family, "number": d.number}
            | ({"cluster": d.cluster} if d.cluster else {})
            for d in plan.devices
        ],
        "stages": [_stage(plan, stage) for stage in plan.stages],
    }


def plan_from_document(document: Mapping[str, Any]) -> Plan:
    """The plan that :func:`plan_document` wrote; InputError for what is none."""
    try:
        execution = document["execution"]
        devices = tuple(
            PlannedDevice(d["name"], d["kind"], d["family"], d["number"], d.get("cluster", ""))
            for d in document["devices"]
        )
        stages = tuple(
            Stage(
                s["stage"], tuple(s["devices"]), tuple(map(_node, s["nodes"])), dict(s["parallelism"]), s.get("slot"),
                s.get("start"), s.get("finish"),
            )
            for s in document["stages"]
        )  # fmt: skip
        transfers = tuple(
            Transfer(t["tensor"], s["stage"], t["to"], t["bytes"], tuple(t["links"]))
            for s in document["stages"] for t in s["sends"]
        )  # fmt: skip
        plan = Plan(
            document["spec"], document["kind"], execution["run"], execution["order"], execution["communication"],
            devices, stages, transfers,
        )  # fmt: skip
        for stage in stages:
            for name in stage.devices:
                plan.device(name)
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        hint = "docs/answer.md describes it; solve --json writes it"
        raise InputError(
            [Diagnostic(f"'plan' cannot be read: {type(problem).__name__}: {problem}", None, hint)]
        ) from None
    return plan


def read_plan(source: Source) -> Plan:
    """The plan in the JSON text of an answer; InputError where it holds none."""
    root = parsed(source)
    hint = "a file that 'placedsl solve --json' writes is expected"
    if not isinstance(root, dict) or "plan" not in root:
        raise InputError([Diagnostic("this is not an answer with a 'plan'", source.whole(), hint)])
    if root["plan"] is None:
        hint = "its 'status' says why: infeasible, or a limit was reached"
        raise InputError([Diagnostic("this answer holds no placement, and so no plan", source.whole(), hint)])
    return plan_from_document(root["plan"])


def _stage(plan: Plan, stage: Stage) -> dict[str, Any]:
    known = {"slot": stage.slot, "start": stage.start, "finish": stage.finish}
    return {
        "stage": stage.number,
        "devices": list(stage.devices),
        "parallelism": dict(stage.parallelism),
        **{name: value for name, value in known.items() if value is not None},
        "nodes": [_node_document(node) for node in stage.nodes],
        "receives": [
            {"tensor": t.tensor, "from": t.source, "bytes": t.size, "links": list(t.links)}
            for t in plan.receives(stage.number)
        ],
        "sends": [
            {"tensor": t.tensor, "to": t.target, "bytes": t.size, "links": list(t.links)}
            for t in plan.sends(stage.number)
        ],
    }


def _node_document(node: PlannedNode) -> dict[str, Any]:
    known: dict[str, Any] = {
        "name": None if node.name == str(node.id) else node.name, "backward": node.backward or None,
        "operator": node.operator, "memory": node.memory or None, "start": node.start, "finish": node.finish,
        "attributes": dict(node.attributes or {}) or None,
    }  # fmt: skip
    return {"id": node.id} | {name: value for name, value in known.items() if value is not None}


def _node(document: Mapping[str, Any]) -> PlannedNode:
    return PlannedNode(
        document["id"], document.get("name", str(document["id"])), document.get("backward", False),
        document.get("operator"), document.get("memory", 0.0), dict(document.get("attributes", {})),
        document.get("start"), document.get("finish"),
    )  # fmt: skip
