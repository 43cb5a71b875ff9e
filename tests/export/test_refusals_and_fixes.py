"""Three placements that each runtime cannot run: the reason, the constraint in the words of the spec, and ``--fix``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.onnx_models import chain

import placedsl
from placedsl.cli.main import main
from placedsl.export import registry
from placedsl.problem.plan import Plan

UNITS = {
    "embed": "model.embed_tokens", "a0": "model.layers.0.a", "b0": "model.layers.0.b", "a1": "model.layers.1.a",
    "a2": "model.layers.2.a", "head": "lm_head",
}  # fmt: skip
GPUS = "device gpu[3]: accelerator\ndevice cpu: host\n"
#: Two servers, and a host beside them.
SERVERS = "cluster server[2] {\n    device gpu: accelerator\n    interconnect { bandwidth = 16 GiB/s }\n}\n"


def model(devices: str = GPUS, *, tied: tuple[str, ...] = ()) -> str:
    """An embedding, three layers and a head; ``tied``: the nodes with the weights of the embedding."""
    lines = ["graph {"]
    for node, module in UNITS.items():
        said = f', module = "{module}"' + ', tied = "model.embed_tokens"' * (node in tied)
        times = "{accelerator: 3 ms, host: 9 ms}"
        lines.append(f"    node {node} {{ time = {times}, memory = 1 MiB, output = 1 MiB{said} }}")
    lines += [f"    {' -> '.join(UNITS)}", "}", devices + "interconnect { bandwidth = 16 GiB/s }"]
    return "\n".join([*lines, "minimize time_per_sample", ""])


ON = ("gpu[1]", "gpu[2]", "gpu[3]", "cpu")


def on(devices: str, names: tuple[str, ...] = ON) -> dict[str, str]:
    """A digit for each node: a device from 1."""
    return {node: names[int(digit) - 1] for node, digit in zip(UNITS, devices, strict=True)}


SPLIT = ("a layer on two devices", model(), on("112233"), "layer 0 is on gpu[1] and gpu[2]", "boundaries by layer")
HOST = ("work of a host", model(), on("111444"), "cpu is a host and holds", "on_accelerators: forall v in nodes")
PIECES = ("pieces apart", model(), on("111211"), "gpu[1] holds stages 1 and 3", "contiguous")
EMPTY = ("no layer", model(), on("122223"), "(gpu[1]: 'embed') holds no layer", "boundaries by layer")
TURNS = ("not in turn", model(), on("111213"), "round in turn", "contiguous")
TIED = (
    "tied weights apart", model(tied=("embed", "head")), on("111222"),
    "'model.embed_tokens' in stage 1 and 'lm_head' in stage 2 have the same weights, and", "colocated by tied",
)  # fmt: skip
TIED_LAYERS = (
    "layers with the same weights apart", model(tied=("embed", "a1", "a2")), on("111222"),
    "have the same weights, and DeepSpeed trains a copy of them in each stage apart", "colocated by tied",
)  # fmt: skip
CASES = {
    "vllm": (SPLIT, HOST, PIECES, EMPTY),
    "sglang": (SPLIT, HOST, PIECES, EMPTY),
    "tensorrt-llm": (SPLIT, HOST, PIECES, EMPTY),
    "megatron": (SPLIT, HOST, TURNS),
    "deepspeed": (SPLIT, HOST, PIECES, TIED_LAYERS),
    "torch-pipelining": (SPLIT, HOST, TIED),
    "torchtitan": (SPLIT, HOST, TURNS, TIED),
    "pipedream": (SPLIT, HOST, PIECES, TIED),
    "accelerate": (
        SPLIT,
        ("work of a host", model(), on("111444"), "cpu is a host and computes", "on_accelerators: forall v in nodes"),
        ("several servers", model(SERVERS), on("111222", ("server[1].gpu", "server[2].gpu")),
         "server[1].gpu and server[2].gpu are in several clusters", "one_cluster: forall c in clusters"),
        ("tied weights apart", model(tied=("embed", "head")), on("111222"),
         "'model.embed_tokens' on gpu[1] and 'lm_head' on gpu[2] have the same weights", "colocated by tied"),
    ),
    "llama-cpp": (
        ("pieces apart", model(), on("411211"), "gpu[1] holds stages 2 and 4", "contiguous"),
        ("the embedding", model(), on("111222"), "comes before the layers and is on gpu[1]", 'nodes["embed"] on cpu'),
        ("a layer on two devices", model(), on("411222").copy() | {"b0": "gpu[2]"},
         "layer 0 is on gpu[1] and gpu[2]", "boundaries by layer"),
        ("several servers", model(SERVERS), on("111222", ("server[1].gpu", "server[2].gpu")),
         "are in several clusters, and the split of a program is of one process", "one_cluster: forall c in clusters"),
    ),
}  # fmt: skip

#: Of models whose file is cut: the rest of the spec, values of variables beside the placement, and the same as above.
_RATES = "{ compute = 1 TFLOP/s, memory_bandwidth = 100 GB/s }"
_COPIES = {"copies": {"gpu[1]": 2, "gpu[2]": 0, "gpu[3]": 1, "cpu": 0}}
_SHARED = "stage 1 is shared by gpu[1] and gpu[2]", "leave 'parallelism' out"
ONNX = {
    "onnxruntime": (
        ("two accelerators", "", on("112222"), {}, "gpu[1] and gpu[2] hold nodes, and a session has one execution",
         "single: count(d in accelerators: used(d)) <= 1"),
        ("two hosts", "device old: host " + _RATES, on("155444", (*ON, "old")), {}, "old and cpu hold nodes",
         "single: count(d in hosts: used(d)) <= 1"),
        ("copies", "parallelism { data = 1..2 }", on("111333"), _COPIES, *_SHARED),
    ),
    "onnx-split": (
        ("copies", "parallelism { data = 1..2 }", on("111333"), _COPIES, *_SHARED),
        ("three copies", "parallelism { data = 1..3 }", on("111444"),
         {"copies": {"gpu[1]": 3, "gpu[2]": 0, "gpu[3]": 0, "cpu": 1}},
         "stage 1 is shared by gpu[1], gpu[2] and gpu[3]", "leave 'parallelism' out"),
        ("copies of all", "parallelism { data = 1..2 }", on("111111"),
         {"copies": {"gpu[1]": 2, "gpu[2]": 0, "gpu[3]": 0, "cpu": 0}}, *_SHARED),
    ),
}  # fmt: skip


def test_every_runtime_has_three_refusals() -> None:
    """Those that cut the model's file are in the tests of ONNX models below."""
    assert set(CASES) | set(ONNX) == set(registry.built_in())
    assert all(len(cases) >= 3 for cases in (*CASES.values(), *ONNX.values()))


@pytest.mark.parametrize(
    ("name", "case"), [pytest.param(n, c, id=f"{n}: {c[0]}") for n, cases in CASES.items() for c in cases]
)
def test_what_is_refused_is_taken_once_it_is_fixed(
    name: str, case: tuple[str, str, dict[str, str], str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, text, places, reason, cure = case
    spec, answer, out = tmp_path / "odd.place", tmp_path / "placement.json", tmp_path / "out"
    spec.write_text(text, encoding="utf-8")
    answer.write_text(json.dumps(places), encoding="utf-8")
    fixed(name, spec, answer, out, reason, cure, capsys)


@pytest.mark.parametrize(
    ("name", "case"), [pytest.param(n, c, id=f"{n}: {c[0]}") for n, cases in ONNX.items() for c in cases]
)
def test_what_is_refused_of_a_model_file_is_taken_once_it_is_fixed(
    name: str, case: tuple[str, str, dict[str, str], dict[str, object], str, str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    _, further, places, variables, reason, cure = case
    spec, answer = tmp_path / "odd.place", tmp_path / "placement.json"
    (tmp_path / "model.onnx").write_bytes(chain(list(UNITS)).data)
    rest = [f"device gpu[3]: accelerator {_RATES}", f"device cpu: host {_RATES}", further]
    rest += ["interconnect { bandwidth = 16 GiB/s }", "minimize time_per_sample"]
    spec.write_text("\n".join(['graph from "model.onnx"', *rest, ""]), encoding="utf-8")
    answer.write_text(json.dumps({"placement": places, "variables": variables}), encoding="utf-8")
    fixed(name, spec, answer, tmp_path / "out", reason, cure, capsys)


def fixed(
    name: str, spec: Path, answer: Path, out: Path, reason: str, cure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A placement is refused with a reason and a cure; with --fix files are written, which can be read back."""
    command = ["export", str(spec), str(answer), "--to", name, "-o", str(out)]
    assert main(command) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert f"error: not for {name}: " in told
    assert reason in told
    assert cure in told
    assert not out.exists()
    assert main([*command, "--fix"]) == 0
    assert f"added to the spec: subject to {registry.constraint(name)}" in capsys.readouterr().err
    assert any(out.iterdir())
    assert main(["evaluate", str(spec), str(out), "--from", name]) == 0


@pytest.mark.parametrize("name", ["vllm", "sglang", "tensorrt-llm", "megatron", "llama-cpp"])
def test_layers_with_gaps_are_not_counted(name: str) -> None:
    """The runtime's model has a layer 1, which the graph does not have."""
    text = model().replace("model.layers.1.a", "model.layers.7.a").replace("model.layers.2.a", "model.layers.9.a")
    spec = placedsl.loads(text)
    plan = Plan.of(spec.problem, spec.evaluate(on("411222")))
    assert any("has layer 0 and layer 7, and none between" in reason for reason in registry.refused(plan, name))
    assert registry.refused(Plan.of(spec.problem, spec.evaluate(on("111222"))), "torch-pipelining") == []


@pytest.mark.parametrize("runtime", ["torch", "torchtitan", "PipeDream"])
def test_tied_weights_on_one_device_in_two_stages_are_two_copies(runtime: str) -> None:
    name = {"torch": "torch-pipelining"}.get(runtime, runtime.lower())
    spec = placedsl.loads(model(tied=("embed", "head")))
    told = registry.refused(Plan.of(spec.problem, spec.evaluate(on("122211"))), name)
    assert any(f"and {runtime} trains a copy of them in each stage apart" in reason for reason in told)
    assert registry.refused(Plan.of(spec.problem, spec.evaluate(on("222222"))), name) == []


def test_sglang_is_told_that_its_models_differ() -> None:
    spec = placedsl.loads(model(tied=("embed", "head")))
    apart, together = (
        str(registry.files(Plan.of(spec.problem, spec.evaluate(on(devices))), "sglang")["sglang.env"])
        for devices in ("111222", "1" * 6)
    )
    assert "The head has the weights of the embedding" in apart
    assert "The head has" not in together


def test_deepspeed_is_told_which_layers_are_tied() -> None:
    """Where they are in one stage the list says nothing of it."""
    spec = placedsl.loads(model(tied=("embed", "head")))
    apart, together = (
        registry.files(Plan.of(spec.problem, spec.evaluate(on(devices))), "deepspeed")
        for devices in ("111222", "1" * 6)
    )
    assert json.loads(str(apart["deepspeed.json"]))["tied"] == [[0, 4]]
    assert "model.embed_tokens and lm_head have the same weights" in str(apart["README.txt"])
    assert "TiedLayerSpec('model.embed_tokens', CLASS" in str(apart["README.txt"])
    assert "tied" not in json.loads(str(together["deepspeed.json"]))
    assert "TiedLayerSpec" not in str(together["README.txt"])
