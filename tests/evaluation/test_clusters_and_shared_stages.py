"""GPipe and subgraph calls over clusters, and GPipe with shared stages: values by hand, in seconds."""

from __future__ import annotations

import pytest
from support.combinations import EXECUTIONS, SHARING

import placedsl
from placedsl.evaluation.evaluate import evaluate

#: By number of cluster levels.
MACHINES = (
    "device gpu[2]: accelerator { memory = 8 GiB }\ndevice cpu: host\ninterconnect { bandwidth = 8 GiB/s }",
    "cluster pod[2] {\n    device gpu[1]: accelerator { memory = 8 GiB }\n"
    "    interconnect { bandwidth = 32 GiB/s }\n}\ndevice cpu: host\ninterconnect { bandwidth = 8 GiB/s }",
)
GRAPHS = {
    "inference": """graph {
    node a { time = {accelerator: 400 ms, host: 700 ms}, memory = 3 GiB, output = 2 GiB }
    node b { time = {accelerator: 500 ms, host: 900 ms}, memory = 2 GiB, output = 1 GiB }
    node c { time = {accelerator: 300 ms, host: 800 ms}, memory = 4 GiB, output = 1 GiB }
    a -> b -> c
    a -> c
}""",
    "training": """graph {
    node a  { time = {accelerator: 400 ms, host: 700 ms}, memory = 3 GiB, output = 2 GiB, layer = 1 }
    node b  { time = {accelerator: 500 ms, host: 900 ms}, memory = 2 GiB, output = 1 GiB, layer = 2 }
    node bb { time = {accelerator: 800 ms, host: 1 s}, memory = 4 GiB, output = 1 GiB, layer = 2, backward = true }
    node ab { time = {accelerator: 600 ms, host: 2 s}, memory = 1 GiB, output = 1 GiB, layer = 1, backward = true }
    a -> b -> bb -> ab
    a -> ab
}""",
}
#: Per GiB within a pod and across pods.
NEAR, FAR = 1 / 32, 1 / 8


def problem_of(execution: str, graph: str, levels: int, sharing: str, goal: str) -> placedsl.Spec:
    parts = (GRAPHS[graph], MACHINES[levels], EXECUTIONS[execution], SHARING[sharing], f"minimize {goal}")
    return placedsl.loads("\n".join(part for part in parts if part) + "\n")


@pytest.mark.parametrize(
    ("execution", "forward", "backward"),
    [
        # a and ab on the first pod, b and bb on the second: a (2 GiB) crosses forward, bb (1 GiB) backward.
        ("GPipe", max(0.4 + 2 * FAR, 0.5 + 2 * FAR), max(0.8 + FAR, 0.6 + FAR)),
        ("GPipe, overlapped", max(0.4, 0.5, 2 * FAR), max(0.8, 0.6, FAR)),
        ("GPipe, full duplex", max(0.4, 0.5, 2 * FAR), max(0.8, 0.6, FAR)),
    ],
)
def test_gpipe_pays_for_what_leaves_a_pod_in_the_pass_that_moves_it(
    execution: str, forward: float, backward: float
) -> None:
    problem = problem_of(execution, "training", 1, "alone", "time_per_sample").problem
    names = [device.name for device in problem.machine.devices]
    first, second = names.index("pod[1].gpu[1]"), names.index("pod[2].gpu[1]")
    found = evaluate(problem, [first, second, second, first])
    assert found.objectives[0] == pytest.approx(forward + backward)


def test_a_tensor_within_a_pod_costs_its_interconnect() -> None:
    text = "\n".join([GRAPHS["training"], MACHINES[1].replace("gpu[1]", "gpu[2]"), EXECUTIONS["GPipe"]])
    problem = placedsl.loads(text + "\nminimize time_per_sample\n").problem
    names = [device.name for device in problem.machine.devices]
    first, second = names.index("pod[1].gpu[1]"), names.index("pod[1].gpu[2]")
    found = evaluate(problem, [first, second, second, first])
    assert found.objectives[0] == pytest.approx(0.5 + 2 * NEAR + 0.8 + NEAR)


@pytest.mark.parametrize(
    ("execution", "backward"),
    [
        # 10 GiB of weights; of two devices each sends half of them, over 8 GiB/s, after the backward pass.
        ("GPipe", (0.8 + 0.6) / 2 + 5 * FAR),
        ("GPipe, overlapped", max((0.8 + 0.6) / 2, 5 * FAR)),
    ],
)
def test_devices_that_share_a_stage_exchange_weights_after_the_backward_pass(execution: str, backward: float) -> None:
    problem = problem_of(execution, "training", 0, "shared", "time_per_sample").problem
    found = evaluate(problem, [0, 0, 0, 0], {"copies": {(0,): 2.0}})
    assert found.objectives[0] == pytest.approx((0.4 + 0.5) / 2 + backward)


def test_calls_pay_for_what_leaves_a_pod() -> None:
    """The first call computes a and sends 2 GiB; the second one reads them, then computes b and c."""
    problem = problem_of("subgraph calls", "inference", 1, "alone", "latency").problem
    names = [device.name for device in problem.machine.devices]
    first, second = names.index("pod[1].gpu[1]"), names.index("pod[2].gpu[1]")
    found = evaluate(problem, [first, second, second])
    assert found.objectives[0] == pytest.approx(0.4 + 2 * FAR + 2 * FAR + 0.5 + 0.3)
