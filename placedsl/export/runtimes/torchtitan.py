"""torchtitan: the modules of each part of the model, as arguments of ``ParallelismConfig``.

Rules: ``torchtitan/distributed/pipeline_parallel.py: _split_module, _get_pp_rank_to_stage_indices_mapping`` of
torchtitan 0.3.  Part k runs on rank k mod the number of ranks.  Modules are children of the model, or items of a list
of it (``layers.3``); one that no part names is dropped in silence there, so each is named.  Each part is made of a copy
of the whole model, so that weights which several parts have are apart: such a split is refused.
"""

from __future__ import annotations

import json
import re

from placedsl.export.layout import (
    Layout,
    copies_against,
    degrees_against,
    hosts_against,
    modules_against,
    pipeline_against,
    some,
    split_against,
)
from placedsl.export.model import Given, Model, Split, wrong
from placedsl.export.units_in_order import document, readme, runs_of_units_against
from placedsl.graph.layers import Unit
from placedsl.problem.plan import Plan

MEANING = "torchtitan: module_fqns_per_model_part, arguments of ParallelismConfig as JSON"
CONSTRAINT = "exportable_to_torchtitan"
#: What Hugging Face calls the embedding of a decoder, and what torchtitan does.
_NAMES = {"embed_tokens": "tok_embeddings"}
_NAMED = re.compile(r"[^.]+(\.\d+)?")


def reasons_against(plan: Plan) -> list[str]:
    """Why torchtitan cannot run the plan; empty: it can."""
    if early := pipeline_against(plan):
        return early
    layout = Layout.of(plan)
    deep = [unit for unit in layout.units.units if unit.module and not _NAMED.fullmatch(name_of(unit))]
    return [
        *degrees_against(layout), *hosts_against(layout), *_turns_against(layout), *split_against(layout),
        *runs_of_units_against(layout), *modules_against(layout), *copies_against(layout, "torchtitan"),
        *(f"'{unit.module}' is within a module: parts name children of the model, and items of lists" for unit in deep),
    ]  # fmt: skip


def _turns_against(layout: Layout) -> list[str]:
    devices = [stage.devices[0] for stage in layout.stages]
    ranks = len(set(devices))
    if len(devices) % ranks == 0 and all(devices[k] == devices[k % ranks] for k in range(len(devices))):
        return []
    order = some(f"{stage.number} on {stage.devices[0]}" for stage in layout.stages)
    return [
        f"the stages are {order}: part k runs on rank k mod {ranks}, so that parts of one device come round in turn; "
        "add 'contiguous'"
    ]


def name_of(unit: Unit) -> str:
    """The name of a unit in torchtitan's models: without ``model.``, the embedding by its name there."""
    name = unit.module.removeprefix("model.")
    return _NAMES.get(name, name)


def write(plan: Plan) -> dict[str, str]:
    """``torchtitan.json`` and how it is used."""
    layout = Layout.of(plan)
    ranks = len({stage.devices[0] for stage in layout.stages})
    several = len(layout.stages) > ranks
    schedule = "GPipe" if plan.order == "gpipe" and not several else "Interleaved1F1B" if several else "1F1B"
    arguments: dict[str, object] = {
        "pipeline_parallel_degree": ranks,
        "pipeline_parallel_schedule": schedule,
        "module_fqns_per_model_part": [[name_of(unit) for unit in held] for held in layout.held],
    }
    if layout.tensor > 1:
        arguments["tensor_parallel_degree"] = layout.tensor
    if layout.data > 1:
        arguments["data_parallel_replicate_degree"] = layout.data
    first = Layout(plan, layout.nodes, layout.units, layout.stages[:ranks])
    lines = [
        f"torchrun --nproc-per-node {len(first.ranks)} -m torchtitan.train ..., with",
        "    parallelism = ParallelismConfig(**json.load(open('torchtitan.json')))",
        "in the configuration. A module that no part names is dropped there without a word: the model has these",
        f"modules with weights: {', '.join(name_of(unit) for unit in layout.units.units)}.",
    ]
    return {
        "torchtitan.json": json.dumps(arguments, indent=2, ensure_ascii=False) + "\n",
        "README.txt": readme(first, "torchtitan 0.3", lines),
    }


def read(given: Given, model: Model) -> Split:
    """The placement that such arguments make; InputError where a module is in no part, or in two."""
    source = given.file("torchtitan.json")
    root = document(source, "these arguments of torchtitan")
    parts = [[name.text() for name in part.each()] for part in root.at("module_fqns_per_model_part").some()]
    said = root.get("pipeline_parallel_degree")
    ranks = len(parts) if said is None else said.positive()
    if len(parts) % ranks:
        raise wrong(f"{len(parts)} parts are not divided by {ranks} ranks", source.whole())
    stage_of: dict[int, int] = {}
    for u, unit in enumerate(model.units.units):
        known = {unit.module, unit.module.removeprefix("model."), name_of(unit)}
        if unit.module.removeprefix("model.") in ("lm_head", "output"):
            known |= {"lm_head", "output"}
        own = [k for k, names in enumerate(parts) for name in names if name in known]
        if len(own) != 1:
            what = (
                "in no part, and torchtitan drops it without a word" if not own else f"in parts {own[0]} and {own[1]}"
            )
            raise wrong(f"'{unit.module or unit.name}' is {what}", source.whole())
        stage_of[u] = own[0]
    notes = given.beside("README.txt")
    tensor = root.get("tensor_parallel_degree")
    each = 1 if tensor is None else tensor.positive()
    held = model.ranks(ranks, "" if notes is None else notes.text, source, each)
    return model.in_stages(stage_of, [held[k % ranks] for k in range(len(parts))])
