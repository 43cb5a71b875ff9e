"""ONNX Runtime: a model whose operators say where they run, and the setting of the session.

Rules: ``onnxruntime/core/framework/layering_annotations.cc``, option ``session.layer_assignment_settings``, of ONNX
Runtime 1.31.  ``device(=annotation)`` is an exact match; an entry without ``=`` matches by the beginning, and goes
before.  A session has one execution provider of a kind, so an accelerator and hosts are all that can be told apart.
"""

from __future__ import annotations

import re

from placedsl.diagnostics import Source
from placedsl.export.layout import Layout, alone_against, some
from placedsl.export.layout import training_against as training
from placedsl.export.model import Given, Model, Split, wrong
from placedsl.export.onnx_files import annotated, files_of, model_of, operators
from placedsl.problem.plan import Plan

MEANING = "ONNX Runtime: annotated model and layer_assignment_settings of a session"
CONSTRAINT = "exportable_to_onnxruntime"
NEEDS_MODEL = True
_ENTRY = re.compile(r"\s*([^();]+?)\s*\(([^()]*)\)\s*(?:;|$)")


def reasons_against(plan: Plan) -> list[str]:
    """Why one session cannot run the plan; empty: it can."""
    used = list(dict.fromkeys(stage.devices[0] for stage in plan.stages))
    several = []
    for kind in ("accelerator", "host"):
        own = [name for name in used if plan.device(name).kind == kind]
        if len(own) > 1:
            several.append(
                f"{some(own)} hold nodes, and a session has one execution provider of a kind: use one {kind} (add "
                f"'single: count(d in {kind}s: used(d)) <= 1'), or onnx-split, which makes a model for each"
            )
    odd = [name for name in used if any(letter in name for letter in "(),;=")]
    names = [f"'{name}' cannot be an annotation: rename the device" for name in odd]
    return [*training(plan, "ONNX Runtime"), *alone_against(Layout.of(plan)), *several, *names]


def write(plan: Plan, source: Source | None) -> dict[str, str | bytes]:
    """``annotated.onnx``, ``setting.txt`` and how they are used; InputError where the file is no ONNX model."""
    model = model_of(source)
    position = operators(model, (node.id for stage in plan.stages for node in stage.nodes))
    annotation = {position[str(node.id)]: stage.devices[0] for stage in plan.stages for node in stage.nodes}
    names = list(dict.fromkeys(annotation.values()))
    setting = ";".join(f"{'gpu' if plan.device(name).kind == 'accelerator' else 'cpu'}(={name})" for name in names)
    lines = [
        f"Made by placedsl from {plan.spec}: operators on {', '.join(names)}.",
        "After the rules of ONNX Runtime 1.31.",
        "",
        "    options = onnxruntime.SessionOptions()",
        "    options.add_session_config_entry('session.layer_assignment_settings', open('setting.txt').read().strip())",
        f"    session = onnxruntime.InferenceSession('annotated.onnx', options, providers={_providers(plan, names)})",
        "An entry whose execution provider is not there is skipped by ONNX Runtime with a line in its log.",
        "",
    ]
    files = files_of("annotated.onnx", annotated(model, annotation))
    return {**files, "setting.txt": setting + "\n", "README.txt": "\n".join(lines)}


def _providers(plan: Plan, names: list[str]) -> str:
    """As in Python: the accelerator by its number, from 0 in the order of declaration, and the CPU."""
    order = [device.name for device in plan.devices if device.kind == "accelerator"]
    own = [f"('CUDAExecutionProvider', {{'device_id': {order.index(name)}}})" for name in names if name in order]
    return f"[{', '.join([*own, repr('CPUExecutionProvider')])}]"


def read(given: Given, model: Model) -> Split:
    """The placement that a folder with ``annotated.onnx`` and ``setting.txt`` makes."""
    source = given.file("annotated.onnx")
    file = given.beside("setting.txt")
    if file is None:
        raise wrong(
            "there is no setting.txt beside the annotated model", None, "it holds session.layer_assignment_settings"
        )
    exact, beginnings = entries(file)
    found = model_of(source)
    position = operators(found, (node.id for node in model.nodes))
    placement: dict[str, str] = {}
    for own, k in position.items():
        text = next((entry.value for entry in found.graph.node[k].metadata_props if entry.key == "layer_ann"), "")
        device = next((name for start, name in beginnings if text and text.startswith(start)), exact.get(text))
        kind = "host" if device is None or device == "cpu" else "accelerator"
        names = model.hosts if kind == "host" else model.accelerators
        if not names:
            raise wrong(
                f"operator '{own}' is on {device or 'no provider, and so on the CPU'}, and the spec has no {kind}",
                file.whole(),
            )
        placement[own] = text if text in names else names[0]
    return Split(placement)


def entries(source: Source) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Devices by exact annotation, and by the beginning of annotations; InputError for what ONNX Runtime refuses."""
    exact: dict[str, str] = {}
    beginnings: dict[str, str] = {}
    text, at = source.text.strip(), 0
    while at < len(text):
        match = _ENTRY.match(text, at)
        if match is None:
            raise wrong(
                "this setting is no list of device(annotation, …)", source.whole(), "as in gpu(=gpu[1]);cpu(=cpu)"
            )
        for part in filter(None, (part.strip() for part in match[2].split(","))):
            if part.startswith("="):
                exact.setdefault(part[1:], match[1])
            elif part in beginnings:
                raise wrong(f"'{part}' stands twice", source.whole())
            else:
                beginnings[part] = match[1]
        at = match.end()
    return exact, list(beginnings.items())
