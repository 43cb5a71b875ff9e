"""llama.cpp: how many layers each device holds, and how many are on the CPU.

Rules: ``src/llama-model.cpp: load_tensors`` of llama.cpp as in llama-cpp-python 0.3.36.  Of n layers and the output,
which counts as layer n, the first ``n + 1 - ngl`` are on the CPU, where the embedding always is; layer i of the others,
m of them, is on the first device whose cumulated share exceeds i/m.  Whole numbers that add up to m are exact.
"""

from __future__ import annotations

import re

from placedsl.export.layout import (
    Layout,
    alone_against,
    clusters_against,
    named,
    order_against,
    pieces_against,
    pipeline_against,
    some,
    split_against,
    unknown_against,
)
from placedsl.export.layout import training_against as training
from placedsl.export.model import Given, Model, Split, layers_expected, wrong
from placedsl.graph.layers import Unit
from placedsl.problem.plan import Plan

MEANING = "llama.cpp: arguments -ngl, -sm and -ts of its programs"
CONSTRAINT = "exportable_to_llama_cpp"
_SPLIT = re.compile(r"(?<!\S)(?:-ts|--tensor-split)[ =]+(\S+)")
_LAYERS = re.compile(r"(?<!\S)(?:-ngl|--gpu-layers|--n-gpu-layers)[ =]+(\d{1,9})")
_MODE = re.compile(r"(?<!\S)(?:-sm|--split-mode)[ =]+(\S+)")


def reasons_against(plan: Plan) -> list[str]:
    """Why llama.cpp cannot run the plan; empty: it can."""
    if early := pipeline_against(plan):
        return [*training(plan, "llama.cpp"), *early]
    layout = Layout.of(plan)
    first = [
        *training(plan, "llama.cpp"), *alone_against(layout), *clusters_against(layout, "the split of a program"),
        *pieces_against(layout),
    ]  # fmt: skip
    unknown = unknown_against(layout)
    if unknown:
        return [*first, *unknown]
    return [*first, *split_against(layout), *order_against(layout), *_hosts_against(layout), *_ends_against(layout)]


def _on_host(layout: Layout, k: int) -> bool:
    return layout.plan.device(layout.stages[k].devices[0]).kind == "host"


def _hosts_against(layout: Layout) -> list[str]:
    """Work of hosts that is not at the beginning."""
    return [
        f"{stage.devices[0]} is a host and holds {named(stage.nodes)} in stage {stage.number}: the CPU holds the "
        "embedding and the first layers alone; add a constraint that keeps the rest off it, as in 'v on accelerators'"
        for k, stage in enumerate(layout.stages)
        if k > 0 and _on_host(layout, k)
    ]  # fmt: skip


def _ends_against(layout: Layout) -> list[str]:
    """An embedding that is not on the CPU, or an output that is not behind the last layer."""
    before, among, after = layout.outer
    out = []
    hosts = [device.name for device in layout.plan.devices if device.kind == "host"]
    for unit in before:
        for k in layout.stages_of[unit]:
            where = layout.stages[k].devices[0]
            if hosts and not _on_host(layout, k):
                out.append(
                    f"'{unit.name}' comes before the layers and is on {where}: llama.cpp keeps it on the CPU; add "
                    f"'embedding: {unit_on(layout, unit)} on {hosts[0]}'"
                )
            elif k > 0:
                out.append(
                    f"'{unit.name}' comes before the layers and is in stage {layout.stages[k].number}: it belongs into "
                    "the first"
                )
    places = {k for unit in after for k in layout.stages_of[unit]}
    last = len(layout.stages) - 1
    if places - {last}:
        names = some(repr(unit.name) for unit in after)
        out.append(f"{names} are the output and not all in the last stage: add 'together(...)'")
    if among:
        out.append(f"{some(repr(unit.name) for unit in among)} have weights among the layers, and are part of none")
    if all(_on_host(layout, k) for k in range(len(layout.stages))):
        return out
    for k in range(len(layout.stages)):
        if not _on_host(layout, k) and not layout.counts[k] and not (k == last and after):
            out.append(
                f"stage {layout.stages[k].number} ({layout.stages[k].devices[0]}) holds neither a layer nor the output"
            )
    return out


def unit_on(layout: Layout, unit: Unit) -> str:
    """The first node of a unit as a spec calls it."""
    return f'nodes["{layout.nodes[unit.nodes[0]].id}"]'


def write(plan: Plan) -> dict[str, str]:
    """``llama.args``: arguments of ``llama-server`` and others; what begins with # is for the reader."""
    layout = Layout.of(plan)
    layers = sum(layout.counts)
    on_cpu = layout.counts[0] if _on_host(layout, 0) else 0
    places = [k for k in range(len(layout.stages)) if not _on_host(layout, k)]
    shares = [layout.counts[k] for k in places]
    if shares:
        shares[-1] += 1  # the output is one more layer
    arguments = f"-ngl {layers + 1 - on_cpu} -sm layer -ts {','.join(map(str, shares))}" if shares else "-ngl 0"
    devices = [layout.stages[k].devices[0] for k in places]
    hosts = any(device.kind == "host" for device in plan.devices)
    numbers = ",".join(str(layout.number(name)) for name in devices)
    lines = [
        f"# {plan.spec}: {layers} layers (by {layout.units.source}), {on_cpu} of them on the CPU, the others on "
        f"{', '.join(devices) or 'no accelerator'}",
        f"# CUDA_VISIBLE_DEVICES={numbers} llama-server -m MODEL.gguf $(grep -v '^#' llama.args)",
        *([] if hosts else ["# The embedding is on the CPU in any case, which is no device of the spec."]),
        arguments,
    ]
    return {"llama.args": "\n".join([*lines, ""])}


def read(given: Given, model: Model) -> Split:
    """The placement that such arguments make, by the rule above; InputError for what it does not tell."""
    source = given.file("llama.args")
    layers_expected(model, source)
    said = "\n".join(line for line in source.text.splitlines() if not line.lstrip().startswith("#"))
    mode, split, offloaded = _MODE.search(said), _SPLIT.search(said), _LAYERS.search(said)
    if mode is not None and mode[1] != "layer":
        raise wrong(f"-sm {mode[1]} splits within layers, which a placement does not say", source.whole(), "-sm layer")
    layers = len(model.layers)
    on_gpu = min(int(offloaded[1]), layers + 1) if offloaded else layers + 1
    shares = [_share(part, split[1]) for part in re.split("[,/]", split[1])] if split else [1.0] * (on_gpu > 0)
    if on_gpu and not sum(shares) > 0:
        raise wrong("no device has a share of the layers", source.whole(), "as in -ts 2,3,2")
    place = device_of_layers(layers, on_gpu, shares)
    used = [k for k in dict.fromkeys(place) if k >= 0]
    held = model.ranks(max(used, default=-1) + 1, source.text, source)
    if -1 in place and not model.hosts:
        raise wrong(f"-ngl {on_gpu} leaves layers on the CPU, and the spec has no host", source.whole())
    stages: list[list[str]] = ([[model.hosts[0]]] if model.hosts else []) + held
    shift = len(stages) - len(held)
    stage_of, layer = {}, 0
    for u, unit in enumerate(model.units.units):
        if unit.layer is not None:
            stage_of[u], layer = place[layer] + shift, layer + 1
        else:
            stage_of[u] = 0 if layer == 0 else place[layers] + shift
    return model.in_stages(stage_of, stages)


def device_of_layers(layers: int, on_gpu: int, shares: list[float]) -> list[int]:
    """The device of each layer and of the output, which is the last; -1: the CPU."""
    total, ends = sum(shares), [0.0]
    for share in shares:
        ends.append(ends[-1] + share)
    on_cpu = layers + 1 - on_gpu
    out = []
    for i in range(layers + 1):
        fits = (k for k in range(len(shares)) if ends[k + 1] / total > (i - on_cpu) / on_gpu) if on_gpu else iter(())
        out.append(-1 if i < on_cpu else next(fits, len(shares) - 1))
    return out


def _share(part: str, whole: str) -> float:
    try:
        share = float(part)
    except ValueError:
        share = -1.0
    if not 0.0 <= share < float("inf"):
        raise wrong(f"-ts {whole}: '{part}' is no share", None, "as in -ts 2,3,2")
    return share
