"""SGLang: how many decoder layers each rank of the pipeline holds.

Rules: ``sglang/srt/distributed/utils.py: get_pp_indices`` of SGLang 0.5.23: whole numbers, one per rank, whose sum
is the number of hidden layers; with one rank the variable is not read.  Of a head with the weights of the embedding
``models/qwen2.py`` and ``qwen3.py`` load a copy on the last rank, and ``models/llama.py`` has none there: a comment
says so.  On several machines (``entrypoints/engine.py: _calculate_rank_ranges``) each node has as many stages as the
others, one node's after another's, in the order of ``--node-rank``.
"""

from __future__ import annotations

from placedsl.export import partition_variable
from placedsl.export.layout import Layout, degrees_against, hosts_against, pipeline_against, runs_against
from placedsl.export.layout import training_against as training
from placedsl.export.model import Given, Model, Split
from placedsl.export.servers import nodes, several
from placedsl.problem.plan import Plan

MEANING = "SGLang: environment variables for pipeline parallelism with layers per rank"
CONSTRAINT = "exportable_to_sglang"
_VARIABLE = "SGLANG_PP_LAYER_PARTITION"
_TIED = (
    "# The head has the weights of the embedding: SGLang's Qwen models load a copy on the last rank, its Llama model "
    "does not run in several stages."
)


def reasons_against(plan: Plan) -> list[str]:
    """Why SGLang cannot run the plan; empty: it can."""
    if early := pipeline_against(plan):
        return [*training(plan, "SGLang"), *early]
    layout = Layout.of(plan)
    return [
        *training(plan, "SGLang"), *degrees_against(layout), *_copies(layout), *hosts_against(layout),
        *runs_against(layout),
    ]  # fmt: skip


def _copies(layout: Layout) -> list[str]:
    """Copies of a pipeline are servers of their own."""
    if layout.data == 1:
        return []
    return [f"the stages have {layout.data} copies each, and a server runs one: write 'data = {{1}}' in 'parallelism'"]


def write(plan: Plan) -> dict[str, str]:
    """``sglang.env``: a file for ``docker run --env-file`` or ``set -a; . sglang.env``."""
    layout = Layout.of(plan)
    flags = f"--pp-size {len(layout.stages)}" + f" --tp-size {layout.tensor}" * (layout.tensor > 1)
    command = f"python -m sglang.launch_server --model-path MODEL {flags}"
    tied = [_TIED] * bool(layout.apart)
    if not several(layout):
        return {"sglang.env": partition_variable.text(layout, [f"# {command}", *tied], _VARIABLE)}
    own = nodes(layout)
    each = [
        f"{command} --nnodes {len(own)} --node-rank {k} --dist-init-addr ADDRESS:20000 --port {30000 + k}"
        for k in range(len(own))
    ]
    return {"sglang.env": partition_variable.text(layout, tied, _VARIABLE, each)}


def read(given: Given, model: Model) -> Split:
    """The placement that such a file, or ``2,3,1`` alone, makes; InputError for what SGLang refuses."""
    return partition_variable.read(given.file("sglang.env"), model, _VARIABLE)
