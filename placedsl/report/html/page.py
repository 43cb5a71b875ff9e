"""An answer as one HTML file that needs nothing else: what the documents say, as pictures and tables."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from placedsl.diagnostics import Source
from placedsl.report.html import bar_charts, palette, progress_chart, timeline_chart
from placedsl.report.html.amounts import amount, several, size, time_unit
from placedsl.report.html.drawn_nodes import MOST_NODES, drawn
from placedsl.report.html.memory_bar import memory_text
from placedsl.report.html.render import html, render
from placedsl.report.html.spec_listing import spec_lines
from placedsl.report.html.stage_picture import degrees, layers, link_table, stage_picture
from placedsl.report.text.plan_table import ranges
from placedsl.report.text.summary import WORDS

_TEMPLATES = Path(__file__).parent / "templates"
#: Exit codes of the command, by termination; a limit has two.
_EXIT = {"optimal": 0, "gap_reached": 0, "infeasible": 3, "unbounded": 3}
_MOOD = {"optimal": "good", "gap_reached": "good", "infeasible": "bad", "error": "bad", "unbounded": "bad"}


@dataclass(frozen=True)
class Beside:
    """What a page shows beside the answer's document.

    ``spec``      the text of the spec
    ``places``    the lines of objectives and constraints in that text, by name
    ``timeline``  the chart of a run, and the lines that measure it
    ``exports``   (name, text) of each file for a runtime, in order
    ``refused``   (runtime, reason) of each runtime that cannot run the plan
    ``of_model``  runtimes that can, with files made of the model's own file
    """

    spec: Source | None = None
    places: Mapping[str, int] = field(default_factory=dict)
    timeline: timeline_chart.TimelineChart | None = None
    measures: Sequence[str] = ()
    exports: Sequence[tuple[str, str]] = ()
    refused: Sequence[tuple[str, str]] = ()
    of_model: Sequence[str] = ()


def page(document: Mapping[str, Any], beside: Beside | None = None) -> str:
    """The page of an answer: ``document`` is what ``solve --json`` writes."""
    beside = beside or Beside()
    held = drawn(document)
    script = (_TEMPLATES / "page.js").read_text(encoding="utf-8")
    style = render("page.css", light=html(_theme(palette.LIGHT, palette.LIGHT_PARTS)),
                   dark=html(_theme(palette.DARK, palette.DARK_PARTS)), classes=html(palette.classes()))  # fmt: skip
    chart = beside.timeline
    return render(
        "page.html", script=html(script), style=html(style), policy=policy(script, style),
        island=html(island(held)), chart_island=None if chart is None else html(island(chart.data)),
        document=held, head=_head(document), beside=beside, **parts(held),
        spec_lines=None if beside.spec is None else spec_lines(beside.spec.text, beside.places, document),
        chart=chart, chart_size=timeline_chart, conflict=document.get("conflict"), why=_why(document),
        reduced=several(len(document["placement"] or {}), "node") if held.get("placement") == {} else "",
        most_nodes=MOST_NODES,
    ) + "\n"  # fmt: skip


def parts(document: Mapping[str, Any]) -> dict[str, Any]:
    """What pages and notebooks share: stages, devices, progress."""
    stages = (document["plan"] or {"stages": []})["stages"]
    return {
        "stages": stage_picture(document), "stage_rows": _stage_rows(document, stages), "links": link_table(stages),
        "device_rows": bar_charts.device_rows(document) if document["devices"] else [], "bar_width": bar_charts.BAR,
        "progress": progress_chart.progress_chart(document), "plot": progress_chart,
    }  # fmt: skip


def island(value: object) -> str:
    """JSON that may stand in a ``script`` element: nothing in it ends the element or begins a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def policy(script: str, style: str) -> str:
    """The content security policy: nothing is fetched, and this script and this style alone are run."""
    script_hash, style_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)
    )
    return (
        f"default-src 'none'; script-src 'sha256-{script_hash}'; style-src 'sha256-{style_hash}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _theme(colours: dict[str, str], charts: dict[str, str]) -> str:
    return palette.variables(colours, charts)


def _head(document: Mapping[str, Any]) -> dict[str, Any]:
    """What stands on top: how it ended, the objectives, how they were found."""
    status = document["status"]
    ended = status["termination"]
    exit_code = _EXIT.get(ended, 4 if document["placement"] is not None else 5)
    by = [document["method"], document["solver"], f"{document['seconds']['total']:.2f} s", f"seed {document['seed']}"]
    return {
        "title": document["spec"],
        "ended": WORDS.get(ended, ended), "mood": _MOOD.get(ended, "warning"), "exit_code": exit_code,
        "message": status["message"], "by": ", ".join(str(one) for one in by if one),
        "objectives": [_objective(goal, ended) for goal in document["objectives"]],
        "versions": ", ".join(f"{name} {version}" for name, version in document["versions"].items()),
    }  # fmt: skip


def _objective(goal: Mapping[str, Any], ended: str) -> dict[str, str]:
    distance = goal["gap"]
    return {
        "name": goal["name"], "value": amount(goal["value"], goal["unit"]),
        "bound": amount(goal["bound"], goal["unit"]), "by": goal.get("bound_by") or "",
        "gap": "–" if distance is None else f"{distance:.2%}",
        "proof": "proven optimal" if goal["value"] is not None and (ended == "optimal" or distance == 0) else "",
    }  # fmt: skip


def _stage_rows(document: Mapping[str, Any], stages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The stages as a table has them."""
    devices, unit = {device["name"]: device for device in document["devices"]}, time_unit(dict(document))
    out = []
    for stage in stages:
        first = devices[stage["devices"][0]]
        held = layers(stage["nodes"])
        out.append({
            "number": stage["stage"], "devices": ", ".join(ranges(stage["devices"])), "degrees": degrees(stage) or "–",
            "layers": ", ".join(held) or f"{stage['nodes'][0]['id']} … {stage['nodes'][-1]['id']}",
            "nodes": sum(node.get("count", 1) for node in stage["nodes"]),
            "load": amount(stage.get("load", first["load"]), unit),
            "memory": memory_text(first, stage.get("memory", first["memory"])),
            "in_flight": stage.get("in_flight", "–"),
            "sends": "; ".join(_sent(stage)) or "–",
        })  # fmt: skip
    return out


def _sent(stage: Mapping[str, Any]) -> list[str]:
    """To which stages how many bytes go; of many the first."""
    out: dict[int, float | None] = {}
    for sent in stage["sends"]:
        known = out.get(sent["to"], 0.0)
        out[sent["to"]] = None if known is None or sent["bytes"] is None else known + sent["bytes"]
    listed = [f"{size(moved)} to {target}" for target, moved in out.items()]
    return listed[:8] + ([f"and {len(listed) - 8} more"] if len(listed) > 8 else [])


def _why(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """What binds, and what each change brings, in words."""
    why = document.get("why")
    if why is None:
        return None
    unit = document["objective"]["unit"]
    return {
        "binding": [
            {"name": b["name"], "line": b["line"], "text": _bound(b)} for b in why["binding"]
        ],
        "bottlenecks": [
            {
                "device": b["device"] + (f", {b['part']} pass" if b["part"] else ""), "value": amount(b["value"], unit),
                "moving": amount(b["moving"], unit) if b["moving"] else "–",
            }
            for b in why["bottlenecks"]
        ],
        "changes": [
            {
                "change": c["change"], "before": amount(c["before"], unit), "after": _after(c, unit),
                "known": _known(c, unit),
                "helps": c["value"] is not None and c["value"] < c["before"] * (1 - 1e-9),
            }
            for c in why["changes"]
        ],
    }  # fmt: skip


def _bound(binding: Mapping[str, Any]) -> str:
    if not binding["of"]:
        return "no slack to measure"
    if not binding["instances"]:
        return "has slack"
    named = [one for one in binding["instances"] if one]
    shown = ", ".join(named[:8]) + (f" and {len(named) - 8} more" if len(named) > 8 else "")
    return f"{len(binding['instances'])} of {binding['of']}" + (f": {shown}" if shown else "")


def _known(change: Mapping[str, Any], unit: str) -> str:
    proven = change["proven"] or change["termination"] == "infeasible"
    return "proven" if proven else f"bound {amount(change['bound'], unit)}"


def _after(change: Mapping[str, Any], unit: str) -> str:
    if change["value"] is None:
        return "no placement" if change["termination"] == "infeasible" else "not known"
    if abs(change["value"] - change["before"]) <= 1e-9 * abs(change["before"]):
        return "no change" if change["proven"] else "nothing better found"
    return amount(change["value"], unit)
