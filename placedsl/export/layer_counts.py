"""Layers per stage: the form in which vLLM, SGLang, TensorRT-LLM and Megatron take a pipeline.

These runtimes split a model into runs of whole decoder layers.  What comes before the first layer (embeddings) runs on
the first stage, what comes after the last (norm, head) on the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from placedsl.problem.plan import Plan, PlannedNode, Stage

#: So many nodes are named in a reason.
_MOST_NAMED = 4
_MODULE = re.compile(r"^(.*?)\.(\d{1,18})(?:\.|$)")
_TEXT = re.compile(r"^(.*?)(?<!\d)(\d{1,18})\D*$")
_NAME = re.compile(r"^(.*?(?:layers?|blocks?))[\W_]*(\d{1,18})(?!\d)", re.IGNORECASE)


@dataclass(frozen=True)
class LayerCounts:
    """How many layers each stage holds, in order; ``source``: what said which node is part of which layer."""

    counts: tuple[int, ...]
    source: str


def layer_counts(plan: Plan) -> LayerCounts:
    """The layers of each stage of a plan that :func:`reasons_against` has nothing against."""
    layers, source = _layers(plan)
    return LayerCounts(tuple(len({layers[n.id] for n in s.nodes if n.id in layers}) for s in plan.stages), source)


def reasons_against(plan: Plan) -> list[str]:
    """Why the stages are not runs of whole layers, in the words of the spec; empty: they are."""
    if plan.run != "pipeline":
        return ["the plan is for one sample; a pipeline of layers needs schedule pipedream, overlapped or duplex"]
    found = [*_of_devices(plan)]
    layers, _ = _layers(plan)
    if not layers:
        found.append(
            "no node says which layer it is part of: give the graph's nodes an attribute 'layer' (a number from 0), "
            "or a 'module' with the number in its path, as in model.layers.3.mlp"
        )
        return found
    kinds = sorted({prefix for prefix, _ in layers.values()})
    if len(kinds) > 1:
        found.append(f"there are layers of several kinds: {_some(repr(kind) for kind in kinds)}; one kind is expected")
        return found
    return [*found, *_of_layers(plan, layers)]


def _of_devices(plan: Plan) -> Iterator[str]:
    """What devices and stages have to do with one another."""
    stages_on: dict[str, list[int]] = {}
    for stage in plan.stages:
        leader = stage.devices[0]
        stages_on.setdefault(leader, []).append(stage.number)
        if len(stage.devices) > 1:
            yield (
                f"stage {stage.number} is shared by {_some(stage.devices)}: a stage is on one device here; "
                "leave 'parallelism' out"
            )
        if plan.device(leader).kind == "host":
            yield (
                f"{leader} is a host and holds {_named(stage.nodes)}: every stage runs on an accelerator; "
                "add 'on_accelerators: forall v in nodes, d in hosts: not (v on d)'"
            )
    for device, numbers in stages_on.items():
        if len(numbers) > 1:
            yield f"{device} holds stages {_some(map(str, numbers))}, which are not one run of layers: add 'contiguous'"


def _of_layers(plan: Plan, layers: Mapping[int | str, tuple[str, int]]) -> Iterator[str]:
    """What stages and layers have to do with one another."""
    stages_of: dict[int, list[Stage]] = {}
    for stage in plan.stages:
        for number in sorted({layers[node.id][1] for node in stage.nodes if node.id in layers}):
            stages_of.setdefault(number, []).append(stage)
    for number, held in sorted(stages_of.items()):
        if len(held) > 1:
            nodes = [node for stage in held for node in stage.nodes if layers.get(node.id, ("", -1))[1] == number]
            where = _some(stage.devices[0] for stage in held)
            yield f"layer {number} is on {where} ({_named(nodes)}): add 'boundaries by layer'"
    previous: tuple[int, int] | None = None
    for stage in plan.stages:
        own = [number for number, held in stages_of.items() if held == [stage]]
        if not any(stage in held for held in stages_of.values()):
            yield (
                f"stage {stage.number} ({stage.devices[0]}: {_named(stage.nodes)}) holds no layer, and no stage may be "
                "empty: add 'boundaries by layer'"
            )
        if own and previous is not None and min(own) < previous[0]:
            yield (
                f"layer {previous[0]} is in stage {previous[1]} and layer {min(own)} in stage {stage.number}: "
                "stages hold runs of layers in their order"
            )
        if own:
            previous = max(own), stage.number
    for stage in plan.stages[1:-1]:
        loose = [node for node in stage.nodes if node.id not in layers and node.memory > 0]
        if loose:
            yield (
                f"stage {stage.number} of {len(plan.stages)} ({stage.devices[0]}) holds {_named(loose)}, which have "
                "weights and are part of no layer: only the first stage and the last hold more than layers"
            )


def _layers(plan: Plan) -> tuple[dict[int | str, tuple[str, int]], str]:
    """The kind and number of each node's layer, and what says so: an attribute, else module paths, else names."""
    nodes = [node for stage in plan.stages for node in stage.nodes]
    for source, of in (("the attribute 'layer'", _by_attribute), ("module paths", _by_module), ("names", _by_name)):
        found = {node.id: known for node in nodes if (known := of(node)) is not None}
        if found:
            return found, source
    return {}, ""


def _by_attribute(node: PlannedNode) -> tuple[str, int] | None:
    value = node.attribute("layer")
    if isinstance(value, str):
        match = _TEXT.match(value)
        return (match[1], int(match[2])) if match else None
    return None if value is None or value != int(value) else ("", int(value))


def _by_module(node: PlannedNode) -> tuple[str, int] | None:
    match = _MODULE.match(str(node.attribute("module") or ""))
    return (match[1], int(match[2])) if match else None


def _by_name(node: PlannedNode) -> tuple[str, int] | None:
    match = _NAME.match(node.name)
    return (match[1].lower(), int(match[2])) if match else None


def _named(nodes: Sequence[PlannedNode]) -> str:
    return _some(f"'{node.id}'" for node in nodes)


def _some(words: Iterator[str] | Sequence[str] | map[str]) -> str:
    """The first few, and how many more."""
    every = list(words)
    more = f" and {len(every) - _MOST_NAMED} more" if len(every) > _MOST_NAMED else ""
    shown = every[:_MOST_NAMED]
    if more or len(shown) < 2:
        return ", ".join(shown) + more
    return f"{', '.join(shown[:-1])} and {shown[-1]}"
