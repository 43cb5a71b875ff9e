"""Hugging Face accelerate: a ``device_map``, the device of each module.

Rules: ``accelerate/utils/modeling.py: check_device_map`` and ``big_modeling.py: dispatch_model`` of accelerate 1.15.
Modules on ``cpu`` beside accelerators keep their weights there and run on the first accelerator, so work of a host
beside accelerators is refused.  Weights that two modules share (tied embeddings) are tied again when they have been
dispatched, so that modules on other devices fail: that is refused too.
"""

from __future__ import annotations

import json

from placedsl.diagnostics import Source, Span
from placedsl.export.layout import (
    OFF_HOSTS,
    Layout,
    alone_against,
    clusters_against,
    modules_against,
    named,
    split_against,
    tied_against,
)
from placedsl.export.layout import training_against as training
from placedsl.export.model import Given, Model, Split, wrong
from placedsl.export.units_in_order import document, readme
from placedsl.problem.plan import Plan

MEANING = "Hugging Face accelerate and transformers: device_map as JSON"
CONSTRAINT = "exportable_to_accelerate"


def reasons_against(plan: Plan) -> list[str]:
    """Why accelerate cannot run the plan; empty: it can."""
    layout = Layout.of(plan)
    return [
        *training(plan, "a device map"), *alone_against(layout), *_hosts_against(layout),
        *clusters_against(layout, "a device map"),
        *(reason for reason in split_against(layout) if " on stages " not in reason), *modules_against(layout),
        *tied_against(layout),
    ]  # fmt: skip


def _hosts_against(layout: Layout) -> list[str]:
    hosts = [stage for stage in layout.stages if layout.plan.device(stage.devices[0]).kind == "host"]
    if len({stage.devices[0] for stage in hosts}) == 1 and len(hosts) == len(layout.stages):
        return []
    return [
        f"{stage.devices[0]} is a host and computes {named(stage.nodes)}: beside accelerators, accelerate keeps "
        f"weights on the CPU and computes on an accelerator; {OFF_HOSTS}"
        for stage in hosts
    ]  # fmt: skip


def write(plan: Plan) -> dict[str, str]:
    """``device_map.json`` and how it is used."""
    layout = Layout.of(plan)
    where = {
        unit: layout.stages[stages[0]].devices[0] for unit, stages in layout.stages_of.items()
    }  # fmt: skip
    on_host = all(plan.device(name).kind == "host" for name in where.values())
    found = {unit.module: "cpu" if on_host else layout.number(where[unit]) for unit in layout.units.units}
    lines = [
        "    device_map = json.load(open('device_map.json'))",
        "    model = AutoModelForCausalLM.from_pretrained(MODEL, device_map=device_map)",
    ]
    numbered = ["Accelerators are numbered from 0 in the order of declaration."]
    text = readme(layout, "accelerate 1.15", lines, numbered)
    return {"device_map.json": json.dumps(found, indent=2, ensure_ascii=False) + "\n", "README.txt": text}


def read(given: Given, model: Model) -> Split:
    """The placement that a device map makes; InputError for modules that it does not name, and for offloading."""
    source = given.file("device_map.json")
    entries = document(source, "this device map").fields()
    names = model.accelerators
    device_of: dict[str, str] = {}
    for path, entry in entries.items():
        value = entry.value
        if value in ("cpu", "disk"):
            device_of[path] = str(value)
            continue
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
        if isinstance(value, str) and value.removeprefix("cuda:").isdigit():
            number = int(value.removeprefix("cuda:"))
        if number is None or not 0 <= number < len(names):
            hint = (
                f"the spec has accelerators 0 to {len(names) - 1}; else 'cpu'"
                if names
                else "the spec has no accelerator"
            )
            raise wrong(f"'{path}' is on {value!r}, which is no device", _at(source, path), hint)
        device_of[path] = names[number]
    offloaded = [path for path, device in device_of.items() if device in ("cpu", "disk")]
    if offloaded and len(offloaded) < len(device_of):
        hint = "accelerate keeps its weights there and runs it on an accelerator, which no placement says"
        raise wrong(
            f"'{offloaded[0]}' is on {device_of[offloaded[0]]} beside accelerators", _at(source, offloaded[0]), hint
        )
    if offloaded and not model.hosts:
        raise wrong("all modules are on the CPU, and the spec has no host", source.whole())
    placement: dict[int, str] = {}
    for u, unit in enumerate(model.units.units):
        for v in unit.nodes:
            path = str(model.nodes[v].attribute("module") or unit.module)
            key = _longest(path, device_of)
            if key is not None:
                placement[v] = model.hosts[0] if device_of[key] in ("cpu", "disk") else device_of[key]
            elif path:
                raise wrong(
                    f"no key of the device map covers '{path}'",
                    source.whole(),
                    f"add {json.dumps(model.units.units[u].module)}",
                )
            else:
                hint = "give the graph's nodes an attribute 'module'"
                raise wrong(
                    f"the graph does not say which module '{model.nodes[v].id}' is part of", source.whole(), hint
                )
    return model.on_devices(placement)


def _longest(path: str, keys: dict[str, str]) -> str | None:
    """The longest key that a module is or is within."""
    parts = path.split(".")
    for k in range(len(parts), 0, -1):
        if ".".join(parts[:k]) in keys:
            return ".".join(parts[:k])
    return "" if "" in keys else None


def _at(source: Source, path: str) -> Span:
    position = source.text.find(json.dumps(path, ensure_ascii=False))
    return source.whole() if position < 0 else source.span(position, position + len(path) + 2)
