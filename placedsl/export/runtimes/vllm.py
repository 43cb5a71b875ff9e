"""vLLM: how many decoder layers each rank of the pipeline holds.

Rules: ``vllm/distributed/utils.py: get_pp_indices`` of vLLM 0.32, which takes whole numbers, one per rank, whose sum is
the number of hidden layers.  A rank without layers passes there and fails when the KV cache is
made, so it is refused here.
"""

from __future__ import annotations

from placedsl.export import layer_counts
from placedsl.problem.plan import Plan

MEANING = "vLLM: environment variables for pipeline parallelism with layers per rank"


def reasons_against(plan: Plan) -> list[str]:
    """Why vLLM cannot run the plan; empty: it can."""
    backward = [node for stage in plan.stages for node in stage.nodes if node.backward]
    training = [f"vLLM serves inference, and the graph has a backward part ('{backward[0].id}')"] if backward else []
    return [*training, *layer_counts.reasons_against(plan)]


def write(plan: Plan) -> dict[str, str]:
    """``vllm.env``: a file for ``docker run --env-file`` or ``set -a; . vllm.env``."""
    found = layer_counts.layer_counts(plan)
    devices = [stage.devices[0] for stage in plan.stages]
    ranks = len(devices)
    lines = [
        f"# {plan.spec}: {sum(found.counts)} layers (by {found.source}) on {', '.join(devices)}",
        f"# vllm serve MODEL --pipeline-parallel-size {ranks}",
        f"VLLM_PP_LAYER_PARTITION={','.join(map(str, found.counts))}",
    ]
    if len({plan.device(name).cluster for name in devices}) > 1:
        lines.append("# The devices are in several clusters: start the ranks on them in the order above.")
    else:
        accelerators = [device.name for device in plan.devices if device.kind == "accelerator"]
        lines.append("# Accelerators are numbered from 0 in the order of declaration.")
        lines.append(f"CUDA_VISIBLE_DEVICES={','.join(str(accelerators.index(name)) for name in devices)}")
    return {"vllm.env": "\n".join([*lines, ""])}
