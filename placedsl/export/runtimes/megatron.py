"""Megatron-LM: the layout of a pipeline, stage by stage.

Rules: ``megatron/core/transformer/pipeline_parallel_layer_layout.py: PipelineParallelLayerLayout`` and
``transformer_config.py: __post_init__`` of megatron-core 0.19.  Letters: ``E`` embedding, ``t`` decoder layer, ``L``
loss; ``|`` between stages.  The final norm runs where the loss does.  Stage k runs on rank k modulo their number, so
that stages of one device come round in turn.  A stage may be without decoder layers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from placedsl.diagnostics import Source
from placedsl.export.layout import (
    Layout,
    degrees_against,
    ends_against,
    hosts_against,
    order_against,
    pipeline_against,
    some,
    split_against,
    unknown_against,
)
from placedsl.export.model import Given, Model, Split, layers_expected, wrong
from placedsl.export.servers import nodes, several, visible
from placedsl.problem.plan import Plan

MEANING = "Megatron-LM: arguments with the layout of the pipeline"
CONSTRAINT = "exportable_to_megatron"
_FLAG = re.compile(r"--pipeline-model-parallel-layout[ =]+(?:'([^']*)'|\"([^\"]*)\"|(\S+))")
_SIZE = re.compile(r"--(pipeline|tensor)-model-parallel-size[ =]+(\d{1,9})")
_LAYERS = re.compile(r"--num-layers[ =]+(\d{1,9})")
_REPEATED = re.compile(r"\(([^()]*)\)\*(\d{1,6})|([A-Za-z|])\*(\d{1,6})")
#: Letters that a layout may have once its repetitions are written out.
_MOST_LETTERS = 1_000_000


def reasons_against(plan: Plan) -> list[str]:
    """Why Megatron cannot run the plan; empty: it can."""
    if early := pipeline_against(plan):
        return early
    layout = Layout.of(plan)
    unknown = unknown_against(layout)
    if unknown:
        return [*degrees_against(layout), *hosts_against(layout), *unknown]
    return [
        *degrees_against(layout), *hosts_against(layout), *_turns_against(layout), *split_against(layout),
        *order_against(layout), *ends_against(layout), *_strays_against(layout),
    ]  # fmt: skip


def _ranks(layout: Layout) -> int:
    return len({stage.devices[0] for stage in layout.stages})


def _turns_against(layout: Layout) -> Iterator[str]:
    """Stages that are not on the ranks in turn."""
    ranks = _ranks(layout)
    devices = [stage.devices[0] for stage in layout.stages]
    if len(devices) % ranks or any(devices[k] != devices[k % ranks] for k in range(len(devices))):
        order = some(f"{stage.number} on {stage.devices[0]}" for stage in layout.stages)
        yield (
            f"the stages are {order}: stage k runs on rank k mod {ranks}, so that stages of one device come round in "
            "turn; add 'contiguous'"
        )


def _strays_against(layout: Layout) -> Iterator[str]:
    """Weights outside of layers in stages without layers that are not the first nor the last."""
    for k, stage in enumerate(layout.stages):
        if 0 < k < len(layout.stages) - 1 and not layout.counts[k]:
            held = some(repr(unit.name) for unit in layout.held[k])
            yield (
                f"stage {stage.number} of {len(layout.stages)} ({stage.devices[0]}) holds {held} and no layer: the "
                "embedding is in the first stage, what follows the layers in the last; add a constraint 'together(...)'"
            )
    before, _, after = layout.outer
    last = len(layout.stages) - 1
    for units, right, what in ((before, 0, "first"), (after, last, "last")):
        for unit in units:
            for k in layout.stages_of[unit]:
                if k != right and not layout.counts[k] and k in (0, last):
                    yield f"'{unit.name}' is in stage {layout.stages[k].number}: it belongs into the {what} stage"


def layout_text(layout: Layout) -> str:
    """As in ``Ett|ttt|tL``."""
    stages = ["t" * count for count in layout.counts]
    stages[0] = "E" + stages[0]
    stages[-1] += "L"
    return "|".join(stages)


def write(plan: Plan) -> dict[str, str]:
    """``megatron.args``: arguments of ``pretrain_gpt.py`` and others; what begins with # is for the reader."""
    layout = Layout.of(plan)
    ranks = _ranks(layout)
    first = layout.stages[:ranks]
    one_turn = Layout(plan, layout.nodes, layout.units, tuple(first))
    processes = len(one_turn.ranks)
    script = "pretrain_gpt.py ... $(grep -v '^#' megatron.args)"
    launch, each = [f"# torchrun --nproc-per-node {processes} {script}"], list[str]()
    if several(one_turn):
        own = nodes(one_turn)
        launch.clear()
        each += [
            f"torchrun --nnodes {len(own)} --node-rank {k} --master-addr ADDRESS "
            f"--nproc-per-node {len(node.numbers)} {script}"
            for k, node in enumerate(own)
        ]
    lines = [
        f"# {plan.spec}: {sum(layout.counts)} layers (by {layout.units.source}) on "
        + ", ".join("+".join(stage.devices) for stage in first),
        *launch,
        *(f"# {line}" if not line.startswith("#") else line for line in visible(one_turn, each)),
        f"--num-layers {sum(layout.counts)}",
        f"--pipeline-model-parallel-size {ranks}",
        *([f"--tensor-model-parallel-size {layout.tensor}"] if layout.tensor > 1 else []),
        f"--pipeline-model-parallel-layout {layout_text(layout)}",
    ]
    return {"megatron.args": "\n".join([*lines, ""])}


def read(given: Given, model: Model) -> Split:
    """The placement that such arguments make; InputError for what Megatron refuses."""
    source = given.file("megatron.args")
    layers_expected(model, source)
    said = "\n".join(line for line in source.text.splitlines() if not line.lstrip().startswith("#"))
    sizes = {match[1]: int(match[2]) for match in _SIZE.finditer(said)}
    flag = _FLAG.search(source.text)
    if flag is not None:
        stages = stages_of(next(text for text in flag.groups() if text is not None), source, flag.start())
    else:
        stages = _even(model, said, sizes.get("pipeline", 1), source)
    ranks = sizes.get("pipeline", len(stages))
    place = source.whole() if flag is None else source.span(flag.start(), flag.end())
    if ranks == 0 or len(stages) % ranks:
        raise wrong(f"the layout has {len(stages)} stages, which {ranks} ranks do not divide", place)
    counts = [stage.count("t") for stage in stages]
    if sum(counts) != len(model.layers):
        raise wrong(f"the layout has {sum(counts)} layers, and the model of the spec has {len(model.layers)}", place)
    held = model.ranks(ranks, source.text, source, sizes.get("tensor", 1))
    return model.layers_in_stages(counts, [held[k % ranks] for k in range(len(stages))])


def stages_of(text: str, source: Source, offset: int) -> list[str]:
    """The letters of each stage, repetitions written out; InputError for what the grammar does not know."""
    place = source.span(offset, offset + len("--pipeline-model-parallel-layout"))
    letters = text.replace(",", "").replace(" ", "")
    while match := _REPEATED.search(letters):
        body, times = (match[1], int(match[2])) if match[1] is not None else (match[3], int(match[4]))
        if len(body) * times + len(letters) > _MOST_LETTERS:
            raise wrong(f"this layout has more than {_MOST_LETTERS:,} letters", place)
        letters = letters[: match.start()] + body * times + letters[match.end() :]
    odd = sorted(set(letters) - set("Et|L"))
    if odd:
        message = f"'{odd[0]}' is no letter of a layout" + " that can be read here" * (odd[0] == "m")
        raise wrong(message, place, "E embedding, t decoder layer, L loss, | between stages")
    stages = letters.split("|")
    if letters.count("E") != 1 or not stages[0].startswith("E"):
        raise wrong("the first stage begins with the embedding, E, and no other has one", place)
    if letters.count("L") != 1 or not stages[-1].endswith("L"):
        raise wrong("the last stage ends with the loss, L, and no other has one", place)
    return stages


def _even(model: Model, text: str, ranks: int, source: Source) -> list[str]:
    """As many layers on each rank, which is what happens without a layout."""
    said = _LAYERS.search(text)
    number = int(said[1]) if said else len(model.layers)
    if ranks == 0 or number % ranks:
        hint = "as in --pipeline-model-parallel-layout Ett|tttL"
        raise wrong(f"{number} layers are not divided by {ranks} ranks, and there is no layout", source.whole(), hint)
    each = number // ranks
    return ["t" * each for _ in range(ranks)]
