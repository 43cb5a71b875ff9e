"""An answer's document as a page holds it: whole, or with layers in the place of nodes where these are too many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Above so many nodes a page names layers and fused operators only.
MOST_NODES = 3_000


def drawn(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document itself up to :data:`MOST_NODES` nodes.

    Above, the nodes of a stage are its layers, else its fused operators, each with ``count``; what has neither is one
    entry of its stage.  Ids of nodes stand nowhere else: ``placement`` and the nodes of the schedule are empty, the
    devices have a ``count``.
    """
    if document["plan"] is None or len(document["placement"] or {}) <= MOST_NODES:
        return dict(document)
    plan = document["plan"]
    stages = [dict(stage) | {"nodes": _units(stage["nodes"])} for stage in plan["stages"]]
    for stage in stages:
        stage.pop("options", None)
    devices = [dict(d) | {"nodes": d["nodes"][:1], "count": len(d["nodes"])} for d in document["devices"]]
    schedule = document["schedule"]
    return dict(document) | {
        "plan": dict(plan) | {"stages": stages}, "devices": devices, "placement": {}, "fused": {}, "variables": {},
        "schedule": None if schedule is None else {"nodes": {}},
    }  # fmt: skip


def _units(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Nodes by layer, else by fused operator, in the order in which they begin."""
    out: dict[tuple[str, Any], dict[str, Any]] = {}
    for node in nodes:
        layer, operator = node.get("attributes", {}).get("layer"), node.get("operator")
        key = ("layer", layer) if layer is not None else ("operator", operator)
        if key not in out:
            name = layer if layer is not None else operator if operator is not None else "nodes without a layer"
            out[key] = {"id": name, "count": 0, "memory": 0.0}
            out[key] |= {"attributes": {"layer": layer}} if layer is not None else {}
        out[key]["count"] += 1
        out[key]["memory"] += node.get("memory", 0.0)
    return list(out.values())
