"""Placements and the files that they become, as pairs of texts; and what is refused, with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import placedsl
from placedsl.diagnostics import InputError
from placedsl.export import registry
from placedsl.problem.plan import Plan

GRAPH = """graph {
    node embed { time = {accelerator: 1 ms, host: 1 ms}, memory = 4 MiB, output = 1 MiB, module = "model.embed_tokens" }
    node a0 {
        time = {accelerator: 2 ms, host: 9 ms}, memory = 8 MiB, output = 1 MiB, module = "model.layers.0.attention"
    }
    node m0 { time = {accelerator: 2 ms, host: 9 ms}, memory = 8 MiB, output = 1 MiB, module = "model.layers.0.mlp" }
    node m1 { time = {accelerator: 2 ms, host: 9 ms}, memory = 8 MiB, output = 1 MiB, module = "model.layers.1.mlp" }
    node m2 { time = {accelerator: 2 ms, host: 9 ms}, memory = 8 MiB, output = 1 MiB, module = "model.layers.2.mlp" }
    node norm { time = {accelerator: 1 ms, host: 1 ms}, memory = 1 MiB, output = 1 MiB, module = "model.norm" }
    node head { time = {accelerator: 1 ms, host: 1 ms}, memory = 4 MiB, module = "lm_head" }
    embed -> a0 -> m0 -> m1 -> m2 -> norm -> head
}
"""
MACHINE = """device gpu[3]: accelerator
device cpu: host
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
"""
NODES = ("embed", "a0", "m0", "m1", "m2", "norm", "head")


def places(text: str) -> dict[str, str]:
    """A device for each node: the number of an accelerator, or c for the host."""
    return {node: "cpu" if word == "c" else f"gpu[{word}]" for node, word in zip(NODES, text.split(), strict=True)}


def plan_of(text: str, devices: str) -> Plan:
    spec = placedsl.loads(text)
    return Plan.of(spec.problem, spec.evaluate(places(devices)))


#: Devices, and what is written.
WRITTEN = {
    "vllm": ("2 2 2 3 1 1 1", {"vllm.env": """\
# text: 3 layers (by module paths) on gpu[2], gpu[3], gpu[1]
# vllm serve MODEL --pipeline-parallel-size 3
VLLM_PP_LAYER_PARTITION=1,1,1
# Accelerators are numbered from 0 in the order of declaration.
CUDA_VISIBLE_DEVICES=1,2,0
"""}),
    "sglang": ("3 3 3 3 1 1 1", {"sglang.env": """\
# text: 3 layers (by module paths) on gpu[3], gpu[1]
# python -m sglang.launch_server --model-path MODEL --pp-size 2
SGLANG_PP_LAYER_PARTITION=2,1
# Accelerators are numbered from 0 in the order of declaration.
CUDA_VISIBLE_DEVICES=2,0
"""}),
    "tensorrt-llm": ("1 1 1 2 2 2 2", {"tensorrt-llm.yaml": """\
# text: 3 layers (by module paths) on gpu[1], gpu[2]
# trtllm-serve MODEL --extra_llm_api_options tensorrt-llm.yaml
# Accelerators are numbered from 0 in the order of declaration.
# CUDA_VISIBLE_DEVICES=0,1
pipeline_parallel_size: 2
pp_partition: [1, 2]
"""}),
    "megatron": ("1 2 2 2 2 3 3", {"megatron.args": """\
# text: 3 layers (by module paths) on gpu[1], gpu[2], gpu[3]
# torchrun --nproc-per-node 3 pretrain_gpt.py ... $(grep -v '^#' megatron.args)
# Accelerators are numbered from 0 in the order of declaration.
# CUDA_VISIBLE_DEVICES=0,1,2
--num-layers 3
--pipeline-model-parallel-size 3
--pipeline-model-parallel-layout E|ttt|L
"""}),
    "llama-cpp": ("c c c 2 1 1 1", {"llama.args": """\
# text: 3 layers (by module paths), 1 of them on the CPU, the others on gpu[2], gpu[1]
# CUDA_VISIBLE_DEVICES=1,0 llama-server -m MODEL.gguf $(grep -v '^#' llama.args)
-ngl 3 -sm layer -ts 1,2
"""}),
    "deepspeed": ("1 1 1 1 3 3 3", {"deepspeed.json": """\
{
  "num_stages": 2,
  "parts": [
    0,
    3,
    6
  ],
  "layers": [
    "model.embed_tokens",
    "model.layers.0",
    "model.layers.1",
    "model.layers.2",
    "model.norm",
    "lm_head"
  ],
  "class": "placed_pipeline.py:PlacedPipeline"
}
"""}),
    "torch-pipelining": ("1 1 1 2 1 1 1", {"split_spec.json": """\
{
  "model.layers.1": "beginning",
  "model.layers.2": "beginning"
}
""", "schedule.csv": """\
0F0,0F1,2F0,2B0,2F1,2B1,0B0,0B1,0F2,0F3,2F2,2B2,2F3,2B3,0B2,0B3,0F4,0F5,2F4,2B4,2F5,2B5,0B4,0B5
1F0,1F1,1B0,1B1,1F2,1F3,1B2,1B3,1F4,1F5,1B4,1B5
"""}),
    "torchtitan": ("1 1 1 2 1 2 2", {"torchtitan.json": """\
{
  "pipeline_parallel_degree": 2,
  "pipeline_parallel_schedule": "Interleaved1F1B",
  "module_fqns_per_model_part": [
    [
      "tok_embeddings",
      "layers.0"
    ],
    [
      "layers.1"
    ],
    [
      "layers.2"
    ],
    [
      "norm",
      "lm_head"
    ]
  ]
}
"""}),
    "accelerate": ("1 3 3 1 2 1 1", {"device_map.json": """\
{
  "model.embed_tokens": 0,
  "model.layers.0": 2,
  "model.layers.1": 0,
  "model.layers.2": 1,
  "model.norm": 0,
  "lm_head": 0
}
"""}),
    "pipedream": ("2 2 2 1 1 1 1", {"pipedream.json": """\
{"module_to_stage_map": [0, 0, 1, 1, 1, 1, 1], "stage_to_rank_map": {"0": [0], "1": [1]}}
"""}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_a_placement_becomes_these_files(name: str) -> None:
    devices, expected = WRITTEN[name]
    made = registry.files(plan_of(GRAPH + MACHINE, devices), name)
    assert {file: made[file] for file in expected} == expected
    notes = [str(made[file]) for file in made if file not in expected and file.endswith("README.txt")]
    assert all("Made by placedsl from text: " in text and "After the rules of " in text for text in notes)
    assert notes or any("# text: 3 layers" in str(text) for text in expected.values())


LAYER_SPLIT = ("1 1 2 2 2 2 2", "layer 0 is on gpu[1] and gpu[2] ('a0' and 'm0'): add 'boundaries by layer'")
HOST = ("1 1 1 c 2 2 2", "cpu is a host and holds 'm1'")
TURNS = ("1 1 1 2 1 1 1", "gpu[1] holds stages 1 and 3, which are not one run of layers: add 'contiguous'")
EMPTY = ("3 1 1 1 2 2 2", "stage 1 (gpu[3]: 'embed') holds no layer, and no stage may be empty")
HEAD = ("1 1 1 2 2 2 3", "stage 3 (gpu[3]: 'head') holds no layer")
ORDER = ("1 2 2 1 3 3 3", "add 'contiguous'")
#: Of each runtime: devices, and a part of a reason.
REFUSED = {
    "vllm": (LAYER_SPLIT, HOST, TURNS, EMPTY, HEAD),
    "sglang": (LAYER_SPLIT, HOST, TURNS, EMPTY, HEAD),
    "tensorrt-llm": (LAYER_SPLIT, HOST, TURNS, EMPTY, HEAD),
    "megatron": (
        LAYER_SPLIT, HOST, ("1 1 1 2 3 1 1", "stage k runs on rank k mod 3"),
        ("1 1 1 1 1 2 3", "holds 'model.norm' and no layer"),
        ("1 1 1 2 2 1 1", "the stages are 1 on gpu[1], 2 on gpu[2] and 3 on gpu[1]"),
    ),
    "llama-cpp": (
        ("1 1 1 2 2 2 2",
         "'model.embed_tokens' comes before the layers and is on gpu[1]: llama.cpp keeps it on the CPU"),
        ("c 1 1 c 2 2 2", "the CPU holds the embedding and the first layers alone"),
        ("c 1 2 2 2 2 2", "layer 0 is on gpu[1] and gpu[2]"),
        ("c 1 1 1 1 1 2", "are the output and not all in the last stage"),
    ),
    "deepspeed": (LAYER_SPLIT, HOST, TURNS),
    "torch-pipelining": (LAYER_SPLIT, HOST, ("1 1 c 2 2 2 2", "cpu is a host and holds 'm0'")),
    "torchtitan": (LAYER_SPLIT, HOST, ("1 1 1 2 3 1 1", "part k runs on rank k mod 3")),
    "accelerate": (
        LAYER_SPLIT, ("1 1 1 c 2 2 2", "beside accelerators, accelerate keeps weights on the CPU and computes on an"),
        ("c c 1 1 1 1 1", "layer 0 is on cpu and gpu[1]"),
    ),
    "onnxruntime": (
        ("1 1 1 2 2 2 2", "gpu[1] and gpu[2] hold nodes, and a session has one execution provider of a kind"),
        ("1 2 3 3 3 3 3", "gpu[1], gpu[2] and gpu[3] hold nodes"),
        ("c 1 1 1 1 1 3", "use one accelerator (add 'single: count(d in accelerators: used(d)) <= 1')"),
    ),
    "pipedream": (LAYER_SPLIT, HOST, TURNS),
}  # fmt: skip


@pytest.mark.parametrize(("name", "devices", "reason"), [(n, *case) for n, cases in REFUSED.items() for case in cases])
def test_a_placement_is_refused_with_the_reason_and_the_constraint(name: str, devices: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        registry.files(plan_of(GRAPH + MACHINE, devices), name)
    found = caught.value.diagnostics
    assert all(one.message.startswith(f"not for {name}: ") for one in found)
    assert any(reason in one.message for one in found), [one.message for one in found]
    assert found[-1].hint.startswith(f"'{registry.constraint(name)}' under 'subject to'")


@pytest.mark.parametrize(
    "name", sorted(set(WRITTEN) - {"deepspeed", "pipedream", "torchtitan", "torch-pipelining", "megatron"})
)
def test_what_serves_inference_refuses_a_backward_part(name: str) -> None:
    text = GRAPH.replace(
        "    embed ->",
        '    node back { time = 1 ms, backward = true, module = "lm_head" }\n    head -> back\n    embed ->',
    )
    spec = placedsl.loads(text + MACHINE)
    plan = Plan.of(spec.problem, spec.evaluate(places("1 1 1 1 1 1 1") | {"back": "gpu[1]"}))
    assert any("the graph has a backward part ('back')" in reason for reason in registry.refused(plan, name))


@pytest.mark.parametrize(
    "name", ["vllm", "sglang", "tensorrt-llm", "megatron", "llama-cpp", "accelerate", "torchtitan", "torch-pipelining"]
)
def test_graphs_that_name_no_modules_are_refused_with_what_still_works(name: str) -> None:
    text = GRAPH
    for node in NODES:
        text = text.replace(f"node {node} ", f"node x{node} ").replace(f" {node} ->", f" x{node} ->")
    text = text.replace("-> head\n", "-> xhead\n")
    for module in ("model.embed_tokens", "model.layers.0.attention", "model.layers.0.mlp", "model.layers.1.mlp",
                   "model.layers.2.mlp", "model.norm", "lm_head"):  # fmt: skip
        text = text.replace(f', module = "{module}"', "")
    spec = placedsl.loads(text + MACHINE)
    plan = Plan.of(spec.problem, spec.evaluate({f"x{node}": "gpu[1]" for node in NODES}))
    told = registry.refused(plan, name)
    assert any("give the graph's nodes an attribute" in reason for reason in told), told
    if name in ("accelerate", "torchtitan", "torch-pipelining"):
        assert any("onnx-split does without" in reason for reason in told)


TENSOR = """graph {
    node embed { time = 1 ms, memory = 1 MiB, output = 1 MiB, module = "model.embed_tokens" }
    node l0 { time = 8 ms, memory = 1 MiB, output = 1 MiB, module = "model.layers.0" }
    node l1 { time = 2 ms, memory = 1 MiB, output = 1 MiB, module = "model.layers.1" }
    node head { time = 1 ms, memory = 1 MiB, module = "lm_head" }
    embed -> l0 -> l1 -> head
}
option split(v in nodes, t in {2}, d in devices) { tensor = t, time = v.time[d] / t, memory = v.memory / t }
device gpu[8]: accelerator { memory = 1 GiB }
interconnect { bandwidth = 100 GiB/s }
parallelism { microbatches = 8, data = {1}, tensor = {1, 2} }
minimize time_per_sample
subject to
    contiguous
    two: stages_used == 2
"""


def _planned(first: int, second: int) -> Plan:
    own = f"    one: tensor(l0) == {first} and tensor(l1) == {second}\n    ends: stage(embed) == stage(l0)\n"
    found = placedsl.loads(
        TENSOR + own + "    other: stage(head) == stage(l1)\n    apart: stage(l0) != stage(l1)\n"
    ).solve(time_limit=60)
    assert found.placement is not None, found.message
    return found.plan


def test_equal_tensor_degrees_are_flags_and_unequal_ones_are_refused() -> None:
    alike, unlike = _planned(2, 2), _planned(2, 1)
    text = str(registry.files(alike, "vllm")["vllm.env"])
    assert "--pipeline-parallel-size 2 --tensor-parallel-size 2\n" in text
    assert len(text.split("CUDA_VISIBLE_DEVICES=")[1].split(",")) == 4
    assert "tensor_parallel_size: 2\n" in str(registry.files(alike, "tensorrt-llm")["tensorrt-llm.yaml"])
    assert "--tensor-model-parallel-size 2\n" in str(registry.files(alike, "megatron")["megatron.args"])
    assert '"tensor_parallel_degree": 2' in str(registry.files(alike, "torchtitan")["torchtitan.json"])
    for name in ("vllm", "sglang", "tensorrt-llm", "megatron", "torchtitan"):
        (reason,) = registry.refused(unlike, name)
        assert reason.startswith("stage 1 splits tensors over 2 devices and stage 2 over 1: add 'equal: ")
    for name in ("deepspeed", "torch-pipelining", "accelerate", "llama-cpp", "pipedream"):
        assert registry.refused(alike, name)


def test_a_tied_head_of_a_configuration_is_in_the_device_map(tmp_path: Path) -> None:
    """Its parameters count once, with the embedding; it has weights all the same, and goes where these are."""
    config = {
        "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
        "num_attention_heads": 4, "vocab_size": 100, "torch_dtype": "float16", "tie_word_embeddings": True,
        "max_position_embeddings": 64,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    text = 'graph from "config.json" { batch = 1, length = 16 }\n'
    text += "device gpu[2]: accelerator { compute = 1 TFLOP/s, memory_bandwidth = 100 GB/s }\n"
    text += "interconnect { bandwidth = 16 GB/s }\nminimize time_per_sample\n"
    spec = placedsl.loads(text, tmp_path)
    ids = [str(own) for own in spec.problem.graph.ids]
    apart = {own: "gpu[2]" if own in ("lm_head", "model.norm") else "gpu[1]" for own in ids}
    reasons = registry.refused(Plan.of(spec.problem, spec.evaluate(apart)), "accelerate")
    assert len(reasons) == 1
    assert "'model.embed_tokens' on gpu[1] and 'lm_head' on gpu[2] have the same weights" in reasons[0]
    together = apart | {"lm_head": "gpu[1]"}
    found = registry.files(Plan.of(spec.problem, spec.evaluate(together)), "accelerate")
    assert json.loads(str(found["device_map.json"])) == {own: int(together[own] == "gpu[2]") for own in ids}
