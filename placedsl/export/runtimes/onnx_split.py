"""ONNX files: a model for each stage, and the order in which they run.

For runtimes that take one device per session (ONNX Runtime), or a pipeline of models (onnxruntime-genai's
decoder-pipeline).  A device whose nodes run in several pieces has a file for each.
"""

from __future__ import annotations

import json

from placedsl.diagnostics import Source
from placedsl.export.layout import Layout, alone_against
from placedsl.export.layout import training_against as training
from placedsl.export.model import Given, Model, Split, wrong
from placedsl.export.onnx_files import Cutter, files_of, model_of, operators
from placedsl.export.units_in_order import document
from placedsl.problem.plan import Plan

MEANING = "ONNX: a model for each stage, and a manifest with the order to run them"
CONSTRAINT = "exportable_to_onnx_split"
NEEDS_MODEL = True


def reasons_against(plan: Plan) -> list[str]:
    """Why the model cannot be cut as the plan says; empty: it can."""
    if plan.kind == "devices":
        return [
            "the plan is of schedule dataflow, where two devices may send to each other: a schedule of a pipeline, or "
            "schedule calls, makes pieces that run one after another"
        ]
    return [*training(plan, "a model for each stage"), *alone_against(Layout.of(plan))]


def write(plan: Plan, source: Source | None) -> dict[str, str | bytes]:
    """``part1.onnx`` and so on, and ``manifest.json``; InputError where the graph's file is no ONNX model."""
    model = model_of(source)
    position = operators(model, (node.id for stage in plan.stages for node in stage.nodes))
    cutter = Cutter(model, position.values())
    readers = cutter.readers()
    files: dict[str, str | bytes] = {}
    parts = []
    for number, stage in enumerate(plan.stages, 1):
        name = f"part{number}.onnx"
        ids = [str(node.id) for node in stage.nodes]
        part = cutter.part(sorted(position[own] for own in ids), readers, f"part{number}")
        parts.append({
            "file": name, "device": stage.devices[0],
            "inputs": [value.name for value in part.graph.input],
            "outputs": [value.name for value in part.graph.output],
            "nodes": ids,
        })  # fmt: skip
        files |= files_of(name, part)
    manifest = {
        "spec": plan.spec,
        "run": "each part after those before it; an input is an input of the model, or the output of an earlier part",
        "inputs": [value.name for value in model.graph.input if value.name not in cutter.weights],
        "outputs": [value.name for value in model.graph.output],
        "not_made_by_a_part": cutter.passed_through(),
        "parts": parts,
    }
    return {**files, "manifest.json": json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"}


def read(given: Given, model: Model) -> Split:
    """The placement that a manifest makes, by its lists of nodes, or where there are none by the parts' operators."""
    source = given.file("manifest.json")
    placement: dict[str, str] = {}
    devices = {device.name for device in model.devices}
    for entry in document(source, "this manifest").at("parts").some():
        device = entry.at("device").text()
        if device not in devices:
            raise entry.wrong(f"names a device, and there is no '{device}'")
        listed = entry.get("nodes")
        if listed is not None:
            own = [str(node.id()) for node in listed.each()]
        else:
            file = entry.at("file").text()
            part = given.beside(file)
            if part is None:
                raise entry.wrong(f"names a file, and there is no '{file}'")
            nodes = model_of(part).graph.node
            own = [word for node in nodes for word in (node.name, *node.output)]
        known = {str(node.id) for node in model.nodes}
        if listed is not None and (odd := next((word for word in own if word not in known), None)) is not None:
            raise entry.wrong(f"names a node, and the graph has no '{odd}'")
        placement |= {word: device for word in own if word in known}
    missing = next((node.id for node in model.nodes if str(node.id) not in placement), None)
    if missing is not None:
        raise wrong(f"node '{missing}' is in no part", source.whole())
    return Split(placement)
