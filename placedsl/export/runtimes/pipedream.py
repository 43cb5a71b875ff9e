"""PipeDream: the stage of each module, and the ranks of each stage.

Rules: ``runtime/*/main_with_runtime.py`` (``--config_path``) and ``runtime/runtime.py: StageRuntime.initialize`` of
msr-fiddle/pipedream.  ``module_to_stage_map`` has an entry for each module of the generated model, and one for the
criterion, which is in the last stage; stages rise without gaps, and so do ranks.  Stages may have several ranks.
"""

from __future__ import annotations

import json

from placedsl.export.layout import (
    Layout,
    copies_against,
    hosts_against,
    pieces_against,
    pipeline_against,
    split_against,
)
from placedsl.export.model import Given, Model, Split, wrong
from placedsl.export.units_in_order import document, numbers, readme, runs_of_units_against
from placedsl.problem.plan import Plan

MEANING = "PipeDream: module_to_stage_map and stage_to_rank_map, for --config_path"
CONSTRAINT = "exportable_to_pipedream"


def reasons_against(plan: Plan) -> list[str]:
    """Why PipeDream cannot run the plan; empty: it can."""
    if early := pipeline_against(plan):
        return early
    layout = Layout.of(plan)
    split = [
        f"stage {stage.number} splits tensors over {stage.parallelism['tensor']} devices: write 'tensor = {{1}}' in "
        "'parallelism'"
        for stage in layout.stages if stage.parallelism.get("tensor", 1) > 1
    ]  # fmt: skip
    return [
        *split, *hosts_against(layout), *pieces_against(layout), *split_against(layout), *runs_of_units_against(layout),
        *copies_against(layout, "PipeDream"),
    ]  # fmt: skip


def write(plan: Plan) -> dict[str, str]:
    """``pipedream.json`` and how it is used."""
    layout = Layout.of(plan)
    stages = [k for k, held in enumerate(layout.held) for _ in held]
    ranks, first = {}, 0
    for k, stage in enumerate(layout.stages):
        ranks[str(k)] = list(range(first, first + len(stage.devices)))
        first += len(stage.devices)
    found = {"module_to_stage_map": [*stages, len(layout.stages) - 1], "stage_to_rank_map": ranks}
    every = [name for stage in layout.stages for name in stage.devices]
    lines = [
        "python main_with_runtime.py --config_path pipedream.json ... --rank R, a process a rank:",
        *(f"    rank {rank}: {name}" for rank, name in enumerate(every)),
        f"The modules are {', '.join(unit.module or unit.name for unit in layout.units.units)}, and the criterion.",
    ]
    text = readme(layout, "PipeDream (7db6a1c)", lines, _visible(layout, every))
    return {"pipedream.json": json.dumps(found) + "\n", "README.txt": text}


def _visible(layout: Layout, every: list[str]) -> list[str]:
    """The devices of all ranks, where numbers tell them apart."""
    if len({layout.plan.device(name).cluster for name in every}) > 1:
        return []
    return [f"CUDA_VISIBLE_DEVICES={','.join(str(layout.number(name)) for name in every)}"]


def read(given: Given, model: Model) -> Split:
    """The placement that such maps make; InputError for what PipeDream refuses or takes for granted."""
    source = given.file("pipedream.json")
    root = document(source, "this configuration of PipeDream")
    stages, units = numbers(root.at("module_to_stage_map")), len(model.units.units)
    ranks = {int(k): numbers(entry) for k, entry in root.at("stage_to_rank_map").fields().items() if k.isdigit()}
    if len(stages) not in (units, units + 1):
        names = "a module each, and the criterion"
        raise wrong(
            f"module_to_stage_map has {len(stages)} entries, and the model has {units} modules", source.whole(), names
        )
    number = max(stages, default=-1) + 1
    if stages != sorted(stages) or sorted(set(stages)) != list(range(number)):
        raise wrong("stages rise from 0 without gaps", source.whole(), "as in [0, 0, 1, 1, 2]")
    if sorted(ranks) != list(range(number)):
        raise wrong(f"stage_to_rank_map has stages {sorted(ranks)}, and module_to_stage_map {number}", source.whole())
    every = [rank for k in range(number) for rank in ranks[k]]
    if every != list(range(len(every))) or any(not ranks[k] for k in range(number)):
        raise wrong("ranks rise from 0 with the stages, without gaps", source.whole(), 'as in {"0": [0], "1": [1, 2]}')
    notes = given.beside("README.txt")
    every_name = [own[0] for own in model.ranks(len(every), "" if notes is None else notes.text, source)]
    held = [[every_name[rank] for rank in ranks[k]] for k in range(number)]
    if any(len(own) > 1 for own in held) and not model.shared:
        raise wrong(
            "a stage has several ranks, and no stages share devices in the spec",
            source.whole(),
            "as in parallelism { data = 1..2 }",
        )
    return model.in_stages({u: stages[u] for u in range(units)}, held)
