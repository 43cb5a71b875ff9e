"""vLLM: how many decoder layers each rank of the pipeline holds.

Rules: ``vllm/distributed/utils.py: get_pp_indices`` of vLLM 0.32, which takes whole numbers, one per rank, whose sum is
the number of hidden layers.  A rank without layers passes there and fails when the KV cache is
made, so it is refused here.  On several machines (``v1/executor/multiproc_executor.py`` of vLLM 0.32) each node has
as many ranks as the others, one node's after another's, in the order of ``--node-rank``.
"""

from __future__ import annotations

from placedsl.export import partition_variable
from placedsl.export.layout import Layout, degrees_against, hosts_against, pipeline_against, runs_against
from placedsl.export.layout import training_against as training
from placedsl.export.model import Given, Model, Split
from placedsl.export.servers import nodes, several
from placedsl.problem.plan import Plan

MEANING = "vLLM: environment variables for pipeline parallelism with layers per rank"
CONSTRAINT = "exportable_to_vllm"
_VARIABLE = "VLLM_PP_LAYER_PARTITION"


def reasons_against(plan: Plan) -> list[str]:
    """Why vLLM cannot run the plan; empty: it can."""
    if early := pipeline_against(plan):
        return [*training(plan, "vLLM"), *early]
    layout = Layout.of(plan)
    return [
        *training(plan, "vLLM"), *degrees_against(layout), *hosts_against(layout), *runs_against(layout),
    ]  # fmt: skip


def write(plan: Plan) -> dict[str, str]:
    """``vllm.env``: a file for ``docker run --env-file`` or ``set -a; . vllm.env``."""
    layout = Layout.of(plan)
    flags = f"--pipeline-parallel-size {len(layout.stages)}"
    flags += f" --tensor-parallel-size {layout.tensor}" * (layout.tensor > 1)
    flags += f" --data-parallel-size {layout.data}" * (layout.data > 1)
    if not several(layout):
        return {"vllm.env": partition_variable.text(layout, [f"# vllm serve MODEL {flags}"], _VARIABLE)}
    own = nodes(layout)
    each = [
        f"vllm serve MODEL {flags} --nnodes {len(own)} --node-rank {k} --master-addr ADDRESS" + " --headless" * (k > 0)
        for k in range(len(own))
    ]
    return {"vllm.env": partition_variable.text(layout, [], _VARIABLE, each)}


def read(given: Given, model: Model) -> Split:
    """The placement that such a file, or ``2,3,1`` alone, makes; InputError for what vLLM refuses."""
    return partition_variable.read(given.file("vllm.env"), model, _VARIABLE)
