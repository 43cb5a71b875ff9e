"""``torch.distributed.pipelining``: where the model is split, and the order of the microbatches on each rank.

Rules: ``_IR.py: pipeline, annotate_split_points`` and ``schedules.py: _PipelineScheduleRuntime._load_csv,
_validate_schedule`` of torch 2.13.  A split point is the path of a module; what runs after it, in the order of the
model, is in the next stage.  A schedule has a row a rank, with cells such as ``1F0``; it needs a backward pass of every
microbatch.  Stages that follow one another on one rank are one stage here, as they hang in torch.  Weights that several
stages have are copied for each of them, and nothing adds up their gradients (``_IR.py: Pipe.replicated_params``): such
a split is refused.
"""

from __future__ import annotations

import csv
import io
import json
import re

from placedsl.diagnostics import Source
from placedsl.export.layout import (
    Layout,
    alone_against,
    copies_against,
    hosts_against,
    modules_against,
    pipeline_against,
    split_against,
)
from placedsl.export.microbatches import orders
from placedsl.export.model import Given, Model, Split, wrong
from placedsl.export.units_in_order import document, readme, runs_of_units_against
from placedsl.problem.plan import Plan

MEANING = "torch.distributed.pipelining: split points and a schedule as CSV"
CONSTRAINT = "exportable_to_torch_pipelining"
_CELL = re.compile(r"(\d{1,9})([FBIW])(\d{1,9})$")


def reasons_against(plan: Plan) -> list[str]:
    """Why torch cannot run the plan; empty: it can."""
    if early := pipeline_against(plan):
        return early
    layout = Layout.of(plan)
    return [
        *alone_against(layout), *hosts_against(layout), *split_against(layout), *runs_of_units_against(layout),
        *modules_against(layout), *copies_against(layout, "torch"),
    ]  # fmt: skip


def ranks_of(layout: Layout) -> list[int]:
    """The rank of each stage: devices are numbered as the pipeline comes to them."""
    names = list(dict.fromkeys(stage.devices[0] for stage in layout.stages))
    return [names.index(stage.devices[0]) for stage in layout.stages]


def write(plan: Plan) -> dict[str, str]:
    """``split_spec.json``, ``schedule.csv`` and how they are used."""
    layout = Layout.of(plan)
    split = {held[0].module: "beginning" for held in layout.held[1:]}
    rank_of = ranks_of(layout)
    microbatches = plan.microbatches or 2 * len(layout.stages)
    rows = orders(rank_of, microbatches, plan.order)
    devices = list(dict.fromkeys(stage.devices[0] for stage in layout.stages))
    one_each = Layout(plan, layout.nodes, layout.units, tuple(
        next(stage for stage in layout.stages if stage.devices[0] == name) for name in devices
    ))  # fmt: skip
    lines = [
        f"torchrun --nproc-per-node {len(devices)} train.py, which calls",
        "    split = {name: SplitPoint[at.upper()] for name, at in json.load(open('split_spec.json')).items()}",
        "    pipe = pipeline(model, mb_args=(microbatch,), split_spec=split)",
        "    stages = [pipe.build_stage(k, device, group) for k in own]    # of this rank, see schedule.csv",
        f"    schedule = _PipelineScheduleRuntime(stages, {microbatches}, loss_fn=loss)",
        "    schedule._load_csv('schedule.csv', format='compute_only')",
        f"{microbatches} microbatches in order {plan.order}; a backward pass is taken to be two forward ones long.",
    ]
    return {
        "split_spec.json": json.dumps(split, indent=2, ensure_ascii=False) + "\n",
        "schedule.csv": "".join(",".join(map(str, row)) + "\n" for row in rows),
        "README.txt": readme(one_each, "torch 2.13", lines),
    }


def read(given: Given, model: Model) -> Split:
    """The placement that split points and a schedule make; InputError for what torch refuses."""
    source = given.file("split_spec.json")
    bounds = sorted(
        _bound(model, source, path, at.text()) for path, at in document(source, "this split").fields().items()
    )
    if len(set(bounds)) < len(bounds):
        raise wrong("two split points are at one place: the stage between them is empty", source.whole())
    stages = len(bounds) + 1
    table = given.beside("schedule.csv")
    rank_of = list(range(stages)) if table is None else _ranks(table, stages)
    notes = given.beside("README.txt")
    held = model.ranks(max(rank_of) + 1, "" if notes is None else notes.text, source)
    place = {v: sum(bound <= v for bound in bounds) for v in range(len(model.nodes))}
    forward = {v: k for v, k in place.items() if not model.nodes[v].backward}
    return model.of_nodes(forward, [held[rank] for rank in rank_of])


def _bound(model: Model, source: Source, path: str, at: str) -> int:
    """The position of the node that a stage begins with."""
    place = source.whole()
    position = source.text.find(json.dumps(path, ensure_ascii=False))
    if position >= 0:
        place = source.span(position, position + len(path) + 2)
    own = model.within(path)
    if not own:
        raise wrong(f"the graph of the spec has no module '{path}'", place, model.nearest_module(path))
    if at.lower() not in ("beginning", "end"):
        raise wrong(f"'{at}' is neither 'beginning' nor 'end'", place)
    return own[0] if at.lower() == "beginning" else own[-1] + 1


def _ranks(table: Source, stages: int) -> list[int]:
    """The rank of each stage in a schedule."""
    rank_of: dict[int, int] = {}
    for rank, row in enumerate(csv.reader(io.StringIO(table.text))):
        for cell in filter(None, (cell.strip() for cell in row)):
            match = _CELL.match(cell)
            if match is None:
                raise wrong(
                    f"'{cell}' is no action of a schedule", table.whole(), "as in 0F1: stage 0, forward, microbatch 1"
                )
            stage = int(match[1])
            if stage >= stages:
                raise wrong(f"the schedule has a stage {stage}, and the split makes {stages}", table.whole())
            if rank_of.setdefault(stage, rank) != rank:
                raise wrong(f"stage {stage} is on ranks {rank_of[stage]} and {rank}", table.whole())
    missing = [k for k in range(stages) if k not in rank_of]
    if missing:
        raise wrong(f"no rank of the schedule runs stage {missing[0]}", table.whole())
    return [rank_of[k] for k in range(stages)]
