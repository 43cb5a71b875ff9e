"""``--from``: splits that somebody runs already, in the form of each runtime; what the runtime refuses is told at its
place."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from export.test_files_of_runtimes import GRAPH, MACHINE, WRITTEN, places, plan_of

import placedsl
from placedsl.cli.main import main
from placedsl.diagnostics import InputError, PlacedslError
from placedsl.export import registry
from placedsl.export.model import Model, Split
from placedsl.language.elaboration.elaborate import Elaborated  # noqa: F401 - loads the language before times are taken

SEED = 20261125


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.of(placedsl.loads(GRAPH + MACHINE).problem)


def read(tmp_path: Path, name: str, model: Model, files: dict[str, str]) -> Split:
    folder = tmp_path / "folder"
    folder.mkdir(exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    return registry.read(folder, name, model)


#: Files as people write them, and where the nodes are then.
TAKEN = [
    ("vllm", {"vllm.env": "export VLLM_PP_LAYER_PARTITION='1,2'\n"}, "1 1 1 2 2 2 2"),
    ("vllm", {"vllm.env": "# --tensor-parallel-size 1\nVLLM_PP_LAYER_PARTITION=2,1\nCUDA_VISIBLE_DEVICES=2,0\n"}, "3 3 3 3 1 1 1"),
    ("tensorrt-llm", {"tensorrt-llm.yaml": "pp_partition:\n  - 1\n  - 2\npipeline_parallel_size: 2\n"}, "1 1 1 2 2 2 2"),
    ("megatron", {"megatron.args": "--num-layers 3 --pipeline-model-parallel-size 3"}, "1 1 1 2 3 3 3"),
    ("megatron", {"megatron.args": "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'E|t|(t)*2,|L'"}, "1 2 2 1 1 2 2"),
    ("megatron", {"megatron.args": "--pipeline-model-parallel-layout Et|t*2L"}, "1 1 1 2 2 2 2"),
    ("llama-cpp", {"llama.args": "llama-server -m x.gguf -ts 3,1 --gpu-layers 99"}, "c 1 1 1 1 2 2"),
    ("llama-cpp", {"llama.args": "-ngl 2 -ts 1/1"}, "c c c c 1 2 2"),
    ("llama-cpp", {"llama.args": "-ngl 0"}, "c c c c c c c"),
    ("deepspeed", {"deepspeed.json": '{"parts": [0, 1, 6]}'}, "1 2 2 2 2 2 2"),
    ("torch-pipelining", {"split_spec.json": '{"model.layers.1": "end"}'}, "1 1 1 1 2 2 2"),
    ("torchtitan", {"torchtitan.json": '{"module_fqns_per_model_part": [["tok_embeddings", "layers.0"], ["layers.1", "layers.2", "norm", "output"]]}'}, "1 1 1 2 2 2 2"),
    ("accelerate", {"device_map.json": '{"": 1, "model.layers.1": "cuda:0", "lm_head": 2}'}, "2 2 2 1 2 2 3"),
    ("accelerate", {"device_map.json": '{"model": "cpu", "lm_head": "cpu"}'}, "c c c c c c c"),
    ("pipedream", {"pipedream.json": '{"module_to_stage_map": [0, 0, 0, 1, 1, 1, 1], "stage_to_rank_map": {"0": [0], "1": [1]}}'}, "1 1 1 1 2 2 2"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "files", "devices"), TAKEN)
def test_splits_as_people_write_them(
    name: str, files: dict[str, str], devices: str, model: Model, tmp_path: Path
) -> None:
    assert read(tmp_path, name, model, files).placement == places(devices)


#: What a runtime refuses, or passes in silence and fails on later.
REFUSED = [
    ("vllm", {"vllm.env": "VLLM_PP_LAYER_PARTITION=0,3\n"}, "stage 1 holds no layer"),
    ("vllm", {"vllm.env": "VLLM_PP_LAYER_PARTITION=1,1\n"}, "1 + 1 = 2 layers, and the model of the spec has 3"),
    ("vllm", {"vllm.env": "VLLM_PP_LAYER_PARTITION=a,b\n"}, "'a,b' are no whole numbers"),
    ("vllm", {"vllm.env": "VLLM_LAYER_PARTITION=1,2\n"}, "this file does not set VLLM_PP_LAYER_PARTITION"),
    ("vllm", {"vllm.env": "VLLM_PP_LAYER_PARTITION=1,2\nCUDA_VISIBLE_DEVICES=7,8\n"}, "the spec has 3 accelerators"),
    ("sglang", {"sglang.env": "SGLANG_PP_LAYER_PARTITION=1,2\nCUDA_VISIBLE_DEVICES=1\n"}, "names 1 devices, and 2 are needed"),
    ("tensorrt-llm", {"tensorrt-llm.yaml": "pipeline_parallel_size: 3\npp_partition: [1, 2]\n"}, "pipeline_parallel_size is 3"),
    ("tensorrt-llm", {"tensorrt-llm.yaml": "pipeline_parallel_size: 3\n"}, "these options have no pp_partition"),
    ("megatron", {"megatron.args": "--pipeline-model-parallel-layout tt|tL"}, "begins with the embedding"),
    ("megatron", {"megatron.args": "--pipeline-model-parallel-layout Ett|tmL"}, "'m' is no letter of a layout that can be read"),
    ("megatron", {"megatron.args": "--pipeline-model-parallel-layout Ett|tLx"}, "'x' is no letter of a layout"),
    ("megatron", {"megatron.args": "--pipeline-model-parallel-layout Ett|t*999999999L"}, "more than 1,000,000 letters"),
    ("megatron", {"megatron.args": "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Et|t|tL"}, "which 2 ranks do not divide"),
    ("megatron", {"megatron.args": "--num-layers 3 --pipeline-model-parallel-size 2"}, "3 layers are not divided by 2 ranks"),
    ("llama-cpp", {"llama.args": "-ts 1,x"}, "'x' is no share"),
    ("llama-cpp", {"llama.args": "-ts 0,0"}, "no device has a share"),
    ("llama-cpp", {"llama.args": "-sm row -ts 1,1"}, "-sm row splits within layers"),
    ("deepspeed", {"deepspeed.json": '{"parts": [0, 2, 7]}'}, "'parts' ends with 7, and the model has 6 layers"),
    ("deepspeed", {"deepspeed.json": '{"parts": [0, 3, 3, 6]}'}, "'parts' rises from 0"),
    ("deepspeed", {"deepspeed.json": '{"num_stages": 3, "parts": [0, 3, 6]}'}, "is 3, and 'parts' has 2 stages"),
    ("torch-pipelining", {"split_spec.json": '{"model.layers.7": "beginning"}'}, "has no module 'model.layers.7'"),
    ("torch-pipelining", {"split_spec.json": '{"model.layers.1": "middle"}'}, "'middle' is neither"),
    ("torch-pipelining", {"split_spec.json": '{"model.layers.1": "beginning"}', "schedule.csv": "0F0,0B0,1F0\n1B0\n"}, "stage 1 is on ranks 0 and 1"),
    ("torch-pipelining", {"split_spec.json": '{"model.layers.1": "beginning"}', "schedule.csv": "0F0,0B0\n"}, "no rank of the schedule runs stage 1"),
    ("torch-pipelining", {"split_spec.json": '{"model.layers.1": "beginning"}', "schedule.csv": "0G0\n"}, "'0G0' is no action"),
    ("torchtitan", {"torchtitan.json": '{"module_fqns_per_model_part": [["tok_embeddings", "layers.0"], ["layers.2", "norm", "lm_head"]]}'}, "'model.layers.1' is in no part, and torchtitan drops it"),
    ("torchtitan", {"torchtitan.json": '{"module_fqns_per_model_part": [["tok_embeddings", "layers.0", "norm"], ["layers.1", "layers.2", "norm", "lm_head"]]}'}, "'model.norm' is in parts 0 and 1"),
    ("accelerate", {"device_map.json": '{"model.layers.0": 0}'}, "no key of the device map covers 'model.embed_tokens'"),
    ("accelerate", {"device_map.json": '{"": 9}'}, "is on 9, which is no device"),
    ("accelerate", {"device_map.json": '{"model": 0, "lm_head": "cpu"}'}, "'lm_head' is on cpu beside accelerators"),
    ("pipedream", {"pipedream.json": '{"module_to_stage_map": [0, 0, 2, 2, 2, 2], "stage_to_rank_map": {"0": [0], "2": [1]}}'}, "stages rise from 0 without gaps"),
    ("pipedream", {"pipedream.json": '{"module_to_stage_map": [0, 1], "stage_to_rank_map": {"0": [0], "1": [1]}}'}, "has 2 entries, and the model has 6 modules"),
    ("pipedream", {"pipedream.json": '{"module_to_stage_map": [0, 0, 0, 1, 1, 1], "stage_to_rank_map": {"0": [1], "1": [0]}}'}, "ranks rise from 0"),
    ("pipedream", {"pipedream.json": '{"module_to_stage_map": [0, 0, 0, 1, 1, 1], "stage_to_rank_map": {"0": [0, 1], "1": [2]}}'}, "a stage has several ranks"),
    ("onnx-split", {"manifest.json": '{"parts": [{"file": "part1.onnx", "device": "gpu[9]"}]}'}, "there is no 'gpu[9]'"),
    ("onnx-split", {"manifest.json": '{"parts": [{"device": "gpu[1]", "nodes": ["embed"]}]}'}, "node 'a0' is in no part"),
    ("onnx-split", {"manifest.json": '{"parts": [{"device": "gpu[1]", "nodes": ["stem"]}]}'}, "the graph has no 'stem'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "files", "told"), REFUSED)
def test_what_a_runtime_refuses_is_told(
    name: str, files: dict[str, str], told: str, model: Model, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, name, model, files)
    assert told in caught.value.diagnostics[0].message


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_damaged_files_are_read_or_refused(name: str, model: Model, tmp_path: Path) -> None:
    """Never another error, and never a part of a placement."""
    source = random.Random(f"{SEED} {name}")
    written = {
        file: str(text) for file, text in registry.files(plan_of(GRAPH + MACHINE, WRITTEN[name][0]), name).items()
    }
    letters = '0123456789,.-=[]{}":EtL|*()/# \nxé'
    for _ in range(300):
        damaged = dict(written)
        file = source.choice(sorted(damaged))
        text = list(damaged[file])
        for _ in range(source.randint(1, 6)):
            at = source.randrange(len(text))
            change = source.choice(("replace", "insert", "leave out"))
            if change != "insert" and len(text) > 1:
                del text[at]
            if change != "leave out":
                text.insert(at, source.choice(letters))
        damaged[file] = "".join(text)
        try:
            split = read(tmp_path, name, model, damaged)
        except PlacedslError:
            continue
        assert set(split.placement) == {str(node.id) for node in model.nodes}, (SEED, damaged)
        assert set(split.placement.values()) <= {device.name for device in model.devices}, (SEED, damaged)


def test_the_commands_judge_a_split_and_begin_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, file = tmp_path / "spec.place", tmp_path / "run.env"
    spec.write_text(GRAPH + MACHINE + "subject to\n    exportable_to_vllm\n", encoding="utf-8")
    file.write_text("1,2\n", encoding="utf-8")
    assert main(["evaluate", str(spec), str(file), "--from", "vllm"]) == 0
    assert "time_per_sample = " in capsys.readouterr().out
    assert main(["evaluate", str(spec), "--from", "vllm", str(file), "--json", str(tmp_path / "judged.json")]) == 0
    judged = json.loads((tmp_path / "judged.json").read_text(encoding="utf-8"))
    answer = tmp_path / "answer.json"
    assert main(["solve", str(spec), "--start", str(file), "--from", "vllm", "--quiet", "--json", str(answer)]) == 0
    found = json.loads(answer.read_text(encoding="utf-8"))
    assert any("the search began with a placement of time_per_sample" in note for note in found["notes"])
    assert found["objective"]["value"] <= judged["objectives"][0]["value"]
    split = tmp_path / "split.json"
    split.write_text(json.dumps(places("1 2 2 1 1 1 1")), encoding="utf-8")
    assert main(["solve", str(spec), "--start", str(split), "--quiet", "--json", str(answer)]) == 0
    notes = json.loads(answer.read_text(encoding="utf-8"))["notes"]
    assert any("the given placement was not used: it violates" in note for note in notes)


def test_options_that_do_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.place"
    spec.write_text(GRAPH + MACHINE, encoding="utf-8")
    for command, told in (
        (["evaluate", str(spec), str(spec), "--from", "vlm"], "there is no exporter 'vlm'; did you mean 'vllm'?"),
        (["evaluate", str(spec), str(tmp_path / "none"), "--from", "vllm"], "there is no file"),
        (["evaluate", str(spec), str(tmp_path), "--from", "vllm"], "holds no vllm.env"),
        (["solve", str(spec), "--from", "vllm"], "--from: it says what --start is"),
        (["solve", str(spec), "--export", "vlm=out"], "there is no exporter 'vlm'"),
        (["export", str(spec), "--to", "vllm", "--fix"], "--fix: the spec is needed as well"),
        (["export", "a", "b", "c", "--to", "vllm"], "a spec and an answer are expected"),
    ):
        assert main(command) == 2, command
        assert told in capsys.readouterr().err


def test_solving_exports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, out = tmp_path / "spec.place", tmp_path / "out"
    spec.write_text(GRAPH + MACHINE + "subject to\n    exportable_to_accelerate\n", encoding="utf-8")
    assert main(["solve", str(spec), "--quiet", "--export", f"accelerate={out}"]) == 0
    assert sorted(file.name for file in out.iterdir()) == ["README.txt", "device_map.json"]
    single = tmp_path / "map.json"
    assert main(["solve", str(spec), "--quiet", "--export", f"accelerate={single}"]) == 0
    assert single.read_bytes() == (out / "device_map.json").read_bytes()
    assert (tmp_path / "map.json.README.txt").is_file()
    assert main(["evaluate", str(spec), str(single), "--from", "accelerate"]) == 0
    spec.write_text(GRAPH + MACHINE + "subject to\n    there: m1 on cpu\n    here: m2 on gpu[1]\n", encoding="utf-8")
    capsys.readouterr()
    assert main(["solve", str(spec), "--quiet", "--export", f"vllm={tmp_path / 'no'}"]) == 1
    assert "not for vllm: cpu is a host" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
