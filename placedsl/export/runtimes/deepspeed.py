"""DeepSpeed: the bounds of the stages in the list of layers of a ``PipelineModule``.

Rules: ``deepspeed/runtime/pipe/module.py: PipelineModule._partition_layers`` of DeepSpeed 0.19.  None of its
partition methods takes bounds, so a subclass sets them (``_set_bounds`` is private there).  The list of layers has one
item for each unit: embedding, decoder layers, norm, head.  Items with the same weights are ``TiedLayerSpec`` with one
key, whose gradients are added up over the stages; that is for whole items, so weights that a layer shares are refused.
"""

from __future__ import annotations

import json
from itertools import pairwise

from placedsl.export.layout import (
    Layout,
    copies_against,
    degrees_against,
    hosts_against,
    pieces_against,
    pipeline_against,
    some,
    split_against,
)
from placedsl.export.model import Given, Model, Split, wrong
from placedsl.export.units_in_order import document, numbers, readme, runs_of_units_against, unit_bounds
from placedsl.problem.plan import Plan

MEANING = "DeepSpeed: a PipelineModule whose stages begin where the plan says"
CONSTRAINT = "exportable_to_deepspeed"

CLASS = '''"""Stages of {spec} for DeepSpeed: as PipelineModule, whose layers are {names}."""

from deepspeed.runtime.pipe.module import PipelineModule


class PlacedPipeline(PipelineModule):
    """A PipelineModule whose stages are its list of layers cut at PARTS; TIED: layers with the same weights."""

    PARTS = {parts}
    TIED = {tied}

    def _partition_layers(self, method="uniform"):
        if self.num_stages != {stages} or len(self._layer_specs) != {layers}:
            raise ValueError("this split is for {layers} layers in {stages} stages")
        for layers in self.TIED:
            keys = {{getattr(self._layer_specs[k], "key", None) for k in layers}}
            if len(keys) > 1 or None in keys:
                raise ValueError(f"layers {{layers}} have the same weights: each is a TiedLayerSpec with the same key")
        self.parts = list(self.PARTS)
        stage = self._topo.get_coord(self.global_rank).pipe
        self._set_bounds(start=self.parts[stage], stop=self.parts[stage + 1])
'''


def reasons_against(plan: Plan) -> list[str]:
    """Why DeepSpeed cannot run the plan; empty: it can."""
    if early := pipeline_against(plan):
        return early
    layout = Layout.of(plan)
    return [
        *degrees_against(layout, tensor=False), *hosts_against(layout), *pieces_against(layout),
        *split_against(layout), *runs_of_units_against(layout), *copies_against(layout, "DeepSpeed", layers=True),
    ]  # fmt: skip


def write(plan: Plan) -> dict[str, str]:
    """``deepspeed.json`` with the bounds, ``placed_pipeline.py`` with the class, and how they are used."""
    layout = Layout.of(plan)
    parts = unit_bounds(layout)
    names = [unit.module or unit.name for unit in layout.units.units]
    tied = layout.apart
    found = {
        "num_stages": len(layout.stages),
        "parts": parts,
        "layers": names,
        **({"tied": tied} if tied else {}),
        "class": "placed_pipeline.py:PlacedPipeline",
    }
    text = CLASS.format(
        spec=plan.spec, names=", ".join(names), parts=parts, tied=tied, stages=len(layout.stages), layers=len(names)
    )
    lines = [
        f"deepspeed --num_gpus {len(layout.ranks)} train.py, with",
        "    from placed_pipeline import PlacedPipeline",
        f"    model = PlacedPipeline(layers=[...], num_stages={len(layout.stages)}, ...)",
        f"where the list of layers has these {len(names)} items: {', '.join(names)}.",
        *(
            f"{some(names[k] for k in own)} have the same weights and are in several stages: each is a TiedLayerSpec "
            f"with the same key, as in TiedLayerSpec({names[own[0]]!r}, CLASS, ..., tied_weight_attr='weight')."
            for own in tied
        ),
    ]
    return {
        "deepspeed.json": json.dumps(found, indent=2, ensure_ascii=False) + "\n",
        "placed_pipeline.py": text,
        "README.txt": readme(layout, "DeepSpeed 0.19", lines),
    }


def read(given: Given, model: Model) -> Split:
    """The placement that such bounds make; InputError where they are none."""
    source = given.file("deepspeed.json")
    root = document(source, "these bounds of DeepSpeed")
    parts = numbers(root.at("parts"))
    units = len(model.units.units)
    place = source.whole()
    if len(parts) < 2 or parts[0] != 0 or any(a >= b for a, b in pairwise(parts)):
        raise wrong("'parts' rises from 0, one number more than there are stages", place, "as in [0, 2, 5, 6]")
    if parts[-1] != units:
        names = ", ".join(unit.module or unit.name for unit in model.units.units[:8])
        hint = f"the spec's model has {units} layers in DeepSpeed's sense: {names}" + " …" * (units > 8)
        raise wrong(f"'parts' ends with {parts[-1]}, and the model has {units} layers", place, hint)
    stages = len(parts) - 1
    said = root.get("num_stages")
    if said is not None and said.positive() != stages:
        raise said.wrong(f"is {said.positive()}, and 'parts' has {stages} stages")
    beside = given.beside("README.txt")
    held = model.ranks(stages, "" if beside is None else beside.text, source)
    stage_of = {u: next(k for k in range(stages) if u < parts[k + 1]) for u in range(units)}
    return model.in_stages(stage_of, held)
