"""TensorRT-LLM: how many layers each rank of the pipeline holds.

Rules: ``tensorrt_llm/mapping.py: MappingBase.pp_layers`` and ``pp_partition`` of ``llmapi/llm_args.py`` (main of 2026):
as many numbers as the pipeline has ranks, whose sum is the number of layers.  A rank without layers passes there, and
is refused here.
"""

from __future__ import annotations

import re

from placedsl.diagnostics import Source
from placedsl.export.layout import Layout, degrees_against, hosts_against, pipeline_against, runs_against
from placedsl.export.layout import training_against as training
from placedsl.export.model import Given, Model, Split, counts_of, wrong
from placedsl.export.servers import visible
from placedsl.problem.plan import Plan

MEANING = "TensorRT-LLM: pp_partition, options of trtllm-serve and trtllm-bench as YAML"
CONSTRAINT = "exportable_to_tensorrt_llm"
_LIST = re.compile(r"^pp_partition:[ \t]*\[([^\]]*)\]", re.MULTILINE)
_ITEMS = re.compile(r"^pp_partition:[ \t]*(?:#.*)?\n((?:[ \t]*-[^\n]*\n?)+)", re.MULTILINE)
_NUMBER = re.compile(r"^(pipeline|tensor)_parallel_size:[ \t]*(\d{1,9})", re.MULTILINE)


def reasons_against(plan: Plan) -> list[str]:
    """Why TensorRT-LLM cannot run the plan; empty: it can."""
    if early := pipeline_against(plan):
        return [*training(plan, "TensorRT-LLM"), *early]
    layout = Layout.of(plan)
    copies = (
        [f"the stages have {layout.data} copies each, and an engine is one: write 'data = {{1}}' in 'parallelism'"]
        if layout.data > 1 else []
    )  # fmt: skip
    return [
        *training(plan, "TensorRT-LLM"), *degrees_against(layout), *copies, *hosts_against(layout),
        *runs_against(layout),
    ]  # fmt: skip


def write(plan: Plan) -> dict[str, str]:
    """``tensorrt-llm.yaml``: extra options of the LLM API."""
    layout = Layout.of(plan)
    lines = [
        f"# {plan.spec}: {sum(layout.counts)} layers (by {layout.units.source}) on "
        + ", ".join("+".join(stage.devices) for stage in layout.stages),
        "# trtllm-serve MODEL --extra_llm_api_options tensorrt-llm.yaml",
        *(f"# {line}" if not line.startswith("#") else line for line in visible(layout)),
        f"pipeline_parallel_size: {len(layout.stages)}",
        *([f"tensor_parallel_size: {layout.tensor}"] if layout.tensor > 1 else []),
        f"pp_partition: [{', '.join(map(str, layout.counts))}]",
    ]
    return {"tensorrt-llm.yaml": "\n".join([*lines, ""])}


def read(given: Given, model: Model) -> Split:
    """The placement that such options make; InputError for what TensorRT-LLM refuses."""
    source = given.file("tensorrt-llm.yaml")
    text, begin, end = _partition(source)
    place = source.span(begin, end)
    counts = counts_of(model, text, source, place)
    sizes = {match[1]: int(match[2]) for match in _NUMBER.finditer(source.text)}
    if sizes.get("pipeline", len(counts)) != len(counts):
        message = f"pp_partition has {len(counts)} numbers, and pipeline_parallel_size is {sizes['pipeline']}"
        raise wrong(message, place)
    return model.layers_in_stages(counts, model.ranks(len(counts), source.text, source, sizes.get("tensor", 1)))


def _partition(source: Source) -> tuple[str, int, int]:
    """The numbers with commas between them, and where they stand."""
    match = _LIST.search(source.text)
    if match is not None:
        return match[1], match.start(1), match.end(1)
    match = _ITEMS.search(source.text)
    if match is None:
        raise wrong("these options have no pp_partition", source.whole(), "as in pp_partition: [2, 3, 1]")
    items = [line.strip().removeprefix("-").strip() for line in match[1].splitlines() if line.strip()]
    return ",".join(items), match.start(1), match.end(1)
