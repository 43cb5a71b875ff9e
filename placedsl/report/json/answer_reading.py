"""An answer's document from a file, checked as far as pages read it."""

from __future__ import annotations

from typing import Any

from placedsl.diagnostics import Source
from placedsl.graph.readers.json_text import parsed
from placedsl.problem.json_entries import Document, Entry
from placedsl.problem.plan_document import plan_from_document
from placedsl.report.json.memory_parts import PARTS

DOCUMENT = Document("this answer", (), "a file that 'placedsl solve --json' writes is expected; see docs/answer.md")


def read_answer(source: Source) -> dict[str, Any]:
    """The document in a JSON text; InputError at the place of what is no part of an answer."""
    root = Entry(parsed(source), (), source, DOCUMENT)
    status = root.at("status")
    for key in ("termination", "solution", "message"):
        status.at(key).text()
    for goal in (root.at("objective"), *root.at("objectives").some()):
        goal.at("name").text()
        goal.at("unit").text()
        for key in ("value", "bound", "gap"):
            _number(goal.at(key))
        _text(goal.get("bound_by"))
    root.at("spec").text()
    root.at("seconds").at("total").number()
    root.at("seed").whole()
    root.at("method").text()
    _text(root.at("solver"))
    for note in (*root.at("notes").each(), *root.at("versions").fields().values()):
        note.text()
    for soft in root.at("soft").each():
        soft.at("name").text()
        _number(soft.at("cost"))
    for moment in root.at("progress").each() if root.get("progress") else ():
        moment.at("seconds").number()
        _number(moment.at("value"))
        _number(moment.at("bound"))
    _devices(root)
    _conflict(root.get("conflict"))
    _why(root.get("why"))
    return dict(_known(root))


def _known(root: Entry) -> dict[str, Any]:
    assert isinstance(root.value, dict)
    return {**root.value, **{key: root.value.get(key) for key in ("schedule", "fused")}}


def _devices(root: Entry) -> None:
    """Devices, and that the plan and the placement are about them."""
    names = set()
    for device in root.at("devices").each():
        names.add(device.at("name").text())
        device.at("kind").one_of(("accelerator", "host"))
        _number(device.at("load"))
        device.at("memory").number()
        _number(device.get("memory_limit"))
        for part in device.at("busy").fields().values() if device.get("busy") else ():
            _number(part)
        for kind, part in device.at("memory_parts").fields().items() if device.get("memory_parts") else ():
            part.number()
            if kind not in PARTS:
                raise part.wrong(f"is one of {', '.join(PARTS)}")
        for node in device.at("nodes").each():
            node.id()
        _text(device.get("with"))
    placement, plan = root.at("placement"), root.at("plan")
    if placement.value is not None:
        for place in placement.fields().values():
            place.text()
    if plan.value is None:
        return
    for stage in plan_from_document(plan.value, root.source).stages:
        for name in stage.devices:
            if name not in names:
                raise plan.wrong(f"has a stage on '{name}', which is not among the devices of the answer")


def _conflict(conflict: Entry | None) -> None:
    if conflict is None or conflict.value is None:
        return
    conflict.at("smallest").truth()
    conflict.at("never").truth()
    conflict.at("unfinished").truth()
    for text in conflict.at("repair").each():
        text.text()
    for one in conflict.at("constraints").each():
        one.at("name").text()
        if one.at("line").value is not None:
            one.at("line").positive()
        for instance in one.at("instances").each():
            instance.text()
        one.at("of").whole()
        if one.at("cures").value is not None:
            one.at("cures").truth()


def _why(why: Entry | None) -> None:
    if why is None or why.value is None:
        return
    for one in why.at("binding").each():
        one.at("name").text()
        one.at("line").positive()
        one.at("of").whole()
        for instance in one.at("instances").each():
            instance.text()
    for one in why.at("bottlenecks").each():
        one.at("device").text()
        one.at("part").text()
        one.at("value").number()
        one.at("moving").number()
    for one in why.at("changes").each():
        one.at("change").text()
        one.at("before").number()
        _number(one.at("value"))
        _number(one.at("bound"))
        one.at("termination").text()
        one.at("proven").truth()


def _number(entry: Entry | None) -> None:
    if entry is not None and entry.value is not None:
        entry.number()


def _text(entry: Entry | None) -> None:
    if entry is not None and entry.value is not None:
        entry.text()
