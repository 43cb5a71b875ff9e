"""Pipelines over several machines: a command for each, which the runtimes' own rules give the right ranks."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import placedsl
from placedsl.diagnostics import InputError
from placedsl.export.layout import Layout
from placedsl.export.model import Given, Model
from placedsl.export.runtimes import megatron, sglang, vllm
from placedsl.export.servers import visible
from placedsl.problem.plan import Plan

NODES = ["model.embed_tokens", *(f"model.layers.{k}" for k in range(6)), "lm_head"]
INSIDE, BETWEEN = "interconnect { bandwidth = 64 GiB/s }", "interconnect { bandwidth = 16 GiB/s }"
PODS = "cluster pod[2] {\n device gpu[3]: accelerator\n " + INSIDE + "\n}\n" + BETWEEN


def chain() -> placedsl.Spec:
    """Embedding, six layers, head."""
    lines = [f'    node n{k} {{ time = 1 ms, output = 1 MiB, module = "{name}" }}' for k, name in enumerate(NODES)]
    arrows = " -> ".join(f"n{k}" for k in range(len(NODES)))
    return placedsl.loads("\n".join(["graph {", *lines, f"    {arrows}", "}", PODS, "minimize time_per_sample", ""]))


def placed(counts: dict[str, int]) -> dict[str, str]:
    """So many nodes on each device, in order."""
    devices = [device for device, count in counts.items() for _ in range(count)]
    return {f"n{k}": device for k, device in enumerate(devices)}


@pytest.mark.parametrize(
    ("places", "each"),
    [
        ({"pod[2].gpu[3]": 3, "pod[2].gpu[1]": 1, "pod[1].gpu[2]": 1, "pod[1].gpu[1]": 3},
         ["2,0 {} --nnodes 2 --node-rank 0", "1,0 {} --nnodes 2 --node-rank 1"]),
        ({"pod[1].gpu[3]": 3, "pod[2].gpu[1]": 1, "pod[2].gpu[2]": 4},
         ["2 {} --nnodes 3 --node-rank 0", "0 {} --nnodes 3 --node-rank 1", "1 {} --nnodes 3 --node-rank 2"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("runtime", [vllm, sglang, megatron])
def test_each_machine_gets_a_command_of_its_own(
    runtime: ModuleType, places: dict[str, int], each: list[str], tmp_path: Path
) -> None:
    """As many ranks a node as the others: a node is a machine, or a stage; and the file is read back as it was."""
    spec = chain()
    plan = Plan.of(spec.problem, spec.evaluate(placed(places)))
    ((name, text),) = runtime.write(plan).items()
    commands = {vllm: "vllm serve", sglang: "python -m sglang.launch_server", megatron: "torchrun"}
    found = re.findall(r"CUDA_VISIBLE_DEVICES=([\d,]+) (.*)", text)
    assert len(found) == len(each)
    for (numbers, command), wanted in zip(found, each, strict=True):
        devices, _, nodes = wanted.partition(" {} ")
        assert numbers == devices
        assert command.startswith(commands[runtime])
        assert f"{nodes} " in command
    assert f"ADDRESS is that of {next(iter(places))[:6]}:" in text
    (tmp_path / name).write_text(text, encoding="utf-8")
    read = runtime.read(Given(tmp_path / name), Model.of(spec.problem))
    assert read.placement == placed(places)


def test_ranks_on_devices_that_the_spec_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "vllm.env").write_text(
        "# Devices of the ranks in their order: pod[1].gpu[1], pod[1].gpu[4]\nVLLM_PP_LAYER_PARTITION=3,3\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError, match=r"the spec has no accelerator 'pod\[1\].gpu\[4\]'"):
        vllm.read(Given(tmp_path / "vllm.env"), Model.of(chain().problem))


def test_numbers_are_those_within_a_machine() -> None:
    places = placed({"pod[1].gpu[2]": 4, "pod[2].gpu[1]": 4})
    spec = chain()
    assert visible(Layout.of(Plan.of(spec.problem, spec.evaluate(places)))) == [
        "# Devices of the ranks in their order: pod[1].gpu[2], pod[2].gpu[1]",
        "# pod[1], rank 0: CUDA_VISIBLE_DEVICES=1",
        "# pod[2], rank 1: CUDA_VISIBLE_DEVICES=0",
    ]
