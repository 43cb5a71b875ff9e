"""What each runtime makes of its files, by its rules as read in its own code, stated without the exporters.

Each function takes the files of a runtime and gives the number of the accelerator (the host: "host") of each unit of a
model, or raises ``RefusedError`` where the runtime does.  A unit is a path: ``model.layers.3``, ``lm_head``.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from support.layered_models import LayeredModel

Files = Mapping[str, "str | bytes"]
Where = dict[str, "int | str"]


class RefusedError(Exception):
    """The runtime would not start."""


def _refuse(wrong: bool, why: str) -> None:
    if wrong:
        raise RefusedError(why)


def _visible(text: str, ranks: int) -> list[int]:
    """CUDA's own rule: the k-th device that a process sees is the k-th of the list."""
    (listed,) = re.findall(r"CUDA_VISIBLE_DEVICES=([\d,]+)", text)
    out = [int(part) for part in listed.split(",")]
    _refuse(len(out) < ranks or len(set(out)) < len(out), "a device for each rank")
    return out


def _decoder(model: LayeredModel, layer_rank: Sequence[int], ranks: int, devices: Sequence[int]) -> Where:
    """Embedding on the first rank, norm and head on the last, as all runtimes of decoders have it."""
    out: Where = {}
    for unit in model.units:
        layer = re.fullmatch(r"model\.layers\.(\d+)", unit)
        rank = layer_rank[int(layer[1])] if layer else 0 if unit == "model.embed_tokens" else ranks - 1
        out[unit] = devices[rank]
    return out


def _pp_indices(value: str, layers: int, ranks: int) -> list[int]:
    """get_pp_indices of vLLM 0.32 and SGLang 0.5.23; the engine dies later where a rank has no layer."""
    try:
        parts = [int(part) for part in value.split(",")]
    except ValueError as wrong:
        raise RefusedError(str(wrong)) from None
    _refuse(len(parts) != ranks, "as many as ranks")
    _refuse(sum(parts) != layers, "all layers")
    _refuse(min(parts) <= 0, "ZeroDivisionError when the KV cache is made")
    return [rank for rank, count in enumerate(parts) for _ in range(count)]


def _environment(text: str, variable: str, flag: str, model: LayeredModel) -> Where:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    values = dict(line.split("=", 1) for line in lines)
    ranks = int(re.findall(rf"{flag} (\d+)", text)[0])
    return _decoder(model, _pp_indices(values[variable], model.layers, ranks), ranks, _visible(text, ranks))


def vllm(files: Files, model: LayeredModel) -> Where:
    return _environment(str(files["vllm.env"]), "VLLM_PP_LAYER_PARTITION", "--pipeline-parallel-size", model)


def sglang(files: Files, model: LayeredModel) -> Where:
    text = str(files["sglang.env"])
    if "--pp-size 1" in text:  # the variable is not read
        return _decoder(model, [0] * model.layers, 1, _visible(text, 1))
    return _environment(text, "SGLANG_PP_LAYER_PARTITION", "--pp-size", model)


def tensorrt_llm(files: Files, model: LayeredModel) -> Where:
    """MappingBase.pp_layers: torch.split of the layers by pp_partition."""
    text = str(files["tensorrt-llm.yaml"])
    known = dict(re.findall(r"^(\w+): (.*)$", text, re.MULTILINE))
    parts, ranks = json.loads(known["pp_partition"]), int(known["pipeline_parallel_size"])
    _refuse(len(parts) != ranks or sum(parts) != model.layers or min(parts) < 0, "ValueError")
    return _decoder(model, [rank for rank, n in enumerate(parts) for _ in range(n)], ranks, _visible(text, ranks))


def megatron(files: Files, model: LayeredModel) -> Where:
    """PipelineParallelLayerLayout: stages with '|', stage k on rank k % PP, embedding first and loss last."""
    text = str(files["megatron.args"])
    words = shlex.split("\n".join(line for line in text.splitlines() if not line.startswith("#")))
    given = dict(zip(words[::2], words[1::2], strict=True))
    ranks = int(given["--pipeline-model-parallel-size"])
    stages = given["--pipeline-model-parallel-layout"].split("|")
    flat = "".join(stages)
    _refuse(len(stages) % ranks != 0, "divisible")
    _refuse(flat[0] != "E" or flat[-1] != "L" or flat.count("E") != 1 or flat.count("L") != 1, "E first, L last")
    _refuse(flat.count("t") != int(given["--num-layers"]) or flat.count("t") != model.layers, "all layers")
    layer_rank = [k % ranks for k, stage in enumerate(stages) for letter in stage if letter == "t"]
    out = _decoder(model, layer_rank, ranks, devices := _visible(text, ranks))
    first, last = (next(k for k, s in enumerate(stages) if letter in s) % ranks for letter in "EL")
    out["model.embed_tokens"] = devices[first]
    return out | {unit: devices[last] for unit in ("model.norm", "lm_head") if unit in out}


def llama_cpp(files: Files, model: LayeredModel) -> Where:
    """load_tensors: floats of 4 bytes, std::upper_bound over the cumulated shares, the output as one more layer."""
    text = str(files["llama.args"])
    (line,) = [line for line in text.splitlines() if line and not line.startswith("#")]
    words = shlex.split(line)
    given = dict(zip(words[::2], words[1::2], strict=True))
    n = model.layers
    on_gpu = min(int(given["-ngl"]), n + 1)
    start = max(n + 1 - int(given["-ngl"]), 0)
    out: Where = {"model.embed_tokens": "host"}
    shares = np.array([float(part) for part in given["-ts"].split(",")] if "-ts" in given else [], dtype=np.float32)
    devices = _visible(text, len(shares)) if len(shares) else []
    ends = np.cumsum(shares, dtype=np.float32) / shares.sum(dtype=np.float32) if len(shares) else shares
    for layer in range(n + 1):
        names = [f"model.layers.{layer}"] if layer < n else ["model.norm", "lm_head"]
        where: int | str = "host"
        if layer >= start and len(shares):
            at = np.float32(layer - start) / np.float32(on_gpu)
            where = devices[int(np.searchsorted(ends, at, side="right"))]
        out |= {name: where for name in names if name in model.units}
    return out


def _linked(model: LayeredModel, stage_of: Mapping[str, int]) -> None:
    """Nothing adds up the gradients of weights that two stages have."""
    apart = model.tied and stage_of["model.embed_tokens"] != stage_of["lm_head"]
    _refuse(apart, "two copies of the same weights, which are trained apart")


class _TiedLayerSpec:
    """What is known of DeepSpeed's: the key."""

    def __init__(self, key: str) -> None:
        self.key = key


def deepspeed(files: Files, model: LayeredModel) -> Where:
    """PipelineModule with the class that is written: slices of the list of layers between parts; layers with one key
    keep their weights equal."""
    given = json.loads(files["deepspeed.json"])
    scope: dict[str, object] = {}
    code = str(files["placed_pipeline.py"]).replace("from deepspeed.runtime.pipe.module import PipelineModule", "")
    exec(code, {"PipelineModule": object}, scope)
    parts = scope["PlacedPipeline"].PARTS  # type: ignore[attr-defined]
    _refuse(parts != given["parts"] or given["layers"] != model.units, "one list of layers")
    _refuse(len(parts) != given["num_stages"] + 1 or parts[0] != 0 or parts[-1] != len(model.units), "all layers")
    devices = _visible(str(files["README.txt"]), given["num_stages"])
    ends = [0, len(model.units) - 1]
    apart = model.tied and len({sum(part <= k for part in parts[1:]) for k in ends}) > 1
    assert given.get("tied", []) == scope["PlacedPipeline"].TIED == [ends] * apart  # type: ignore[attr-defined]
    for key in ("same", None):
        module = scope["PlacedPipeline"]()  # type: ignore[operator]
        module.num_stages, module.global_rank = given["num_stages"], 0
        module._layer_specs = [_TiedLayerSpec(key) if key and k in ends else object() for k in range(len(model.units))]
        module._topo = SimpleNamespace(get_coord=lambda rank: SimpleNamespace(pipe=rank))
        module._set_bounds = lambda start, stop: None
        if apart and key is None:
            with pytest.raises(ValueError, match="each is a TiedLayerSpec with the same key"):
                module._partition_layers()
        else:
            module._partition_layers()
    return {
        unit: devices[stage]
        for stage in range(given["num_stages"])
        for unit in model.units[parts[stage] : parts[stage + 1]]
    }  # fmt: skip


def _run(rows: Sequence[Sequence[tuple[int, str, int]]], stages: int, microbatches: int) -> None:
    """_validate_schedule and _add_send_recv of torch 2.13: every pass once, backward after forward, nothing waits for
    ever."""
    rank_of: dict[int, int] = {}
    for rank, row in enumerate(rows):
        for stage, _, _ in row:
            _refuse(rank_of.setdefault(stage, rank) != rank, "a stage on two ranks")
    _refuse(sorted(rank_of) != list(range(stages)), "every stage")
    counts = {(stage, kind): 0 for stage in range(stages) for kind in "FB"}
    for row in rows:
        for stage, kind, _ in row:
            counts[stage, kind] += 1
    _refuse(any(count != microbatches for count in counts.values()), "every microbatch, forward and backward")
    done: set[tuple[int, str, int]] = set()
    waiting = [deque(row) for row in rows]
    moved = True
    while moved:
        moved = False
        for row in waiting:
            while row:
                stage, kind, m = row[0]
                needs = {(stage - 1, "F", m)} if kind == "F" and stage else set()
                if kind == "B":
                    needs = {(stage, "F", m)} | ({(stage + 1, "B", m)} if stage + 1 < stages else set())
                if not needs <= done:
                    break
                done.add(row.popleft())
                moved = True
    _refuse(any(waiting), "ranks wait for one another")


def torch_pipelining(files: Files, model: LayeredModel) -> Where:
    """pipeline(): a stage begins where the trace first comes to the module of a split point."""
    split = json.loads(files["split_spec.json"])
    trace = [node for node in model.nodes if not node.backward]
    modules = {".".join(node.module.split(".")[:k]) for node in trace for k in range(1, node.module.count(".") + 2)}
    _refuse(not set(split) <= modules, "AttributeError: no such module")
    _refuse(set(split.values()) - {"beginning"} != set(), "as written here")
    stage, met, stage_of = 0, set[str](), dict[str, int]()
    for node in trace:
        entered = {path for path in split if node.module == path or node.module.startswith(path + ".")} - met
        met |= entered
        stage += len(entered)
        if node.unit:
            _refuse(stage_of.setdefault(node.unit, stage) != stage, "a unit in two stages")
    rows = [
        [(int(m[1]), m[2], int(m[3])) for cell in row if (m := re.fullmatch(r"(\d+)([FB])(\d+)", cell))]
        for row in csv.reader(io.StringIO(str(files["schedule.csv"])))
    ]
    _linked(model, stage_of)
    _run(rows, len(split) + 1, 1 + max(m for row in rows for _, _, m in row))
    rank_of = {stage: rank for rank, row in enumerate(rows) for stage, _, _ in row}
    for earlier in range(len(split)):
        _refuse(rank_of[earlier] == rank_of[earlier + 1], "Pair is not connected: neighbours on one rank")
    devices = _visible(str(files["README.txt"]), len(rows))
    return {unit: devices[rank_of[own]] for unit, own in stage_of.items()}


def torchtitan(files: Files, model: LayeredModel) -> Where:
    """_split_module: what no part names is dropped; _get_pp_rank_to_stage_indices_mapping: part k on rank k % PP."""
    given = json.loads(files["torchtitan.json"])
    parts, ranks = given["module_fqns_per_model_part"], given["pipeline_parallel_degree"]
    _refuse(len(parts) % ranks != 0, "evenly divisible")
    names = {"tok_embeddings": "model.embed_tokens", "norm": "model.norm", "lm_head": "lm_head"}
    names |= {f"layers.{k}": f"model.layers.{k}" for k in range(model.layers)}
    held = [name for part in parts for name in part]
    _refuse(sorted(names.get(name, name) for name in held) != sorted(model.units), "each module in one part")
    _linked(model, {names[name]: k for k, part in enumerate(parts) for name in part})
    several = len(parts) > ranks
    _refuse(several != (given["pipeline_parallel_schedule"] == "Interleaved1F1B"), "a schedule for so many parts")
    devices = _visible(str(files["README.txt"]), ranks)
    return {names[name]: devices[k % ranks] for k, part in enumerate(parts) for name in part}


def accelerate(files: Files, model: LayeredModel) -> Where:
    """check_device_map: the longest key that a tensor's name begins with; CPU beside accelerators is offloading."""
    given = json.loads(files["device_map.json"])
    _refuse("cpu" in given.values() and set(given.values()) != {"cpu"}, "offloading, which is no placement")
    out: Where = {}
    for node in model.nodes:
        if node.unit:
            keys = [key for key in given if f"{node.module}.weight".startswith(key + ".")]
            _refuse(not keys, "not covered by the device map")
            value = given[max(keys, key=len)]
            where = "host" if value == "cpu" else value
            _refuse(out.setdefault(node.unit, where) != where, "a unit on two devices")
    _refuse(
        model.tied and out["model.embed_tokens"] != out["lm_head"],
        "tied again on one device, and the other module fails",
    )
    return out


def pipedream(files: Files, model: LayeredModel) -> Where:
    """StageRuntime.initialize: an entry a module and one for the criterion; ranks rise with the stages."""
    given = json.loads(files["pipedream.json"])
    stages = given["module_to_stage_map"]
    ranks = {int(stage): own for stage, own in given["stage_to_rank_map"].items()}
    _refuse(len(stages) != len(model.units) + 1, "as many as modules")
    _refuse(stages != sorted(stages) or set(stages) != set(range(len(ranks))), "stages rise")
    _refuse(stages[-1] != max(ranks), "the criterion is in the last stage")
    _linked(model, dict(zip(model.units, stages)))
    flat = [rank for stage in sorted(ranks) for rank in ranks[stage]]
    _refuse(flat != list(range(len(flat))), "ranks rise")
    devices = _visible(str(files["README.txt"]), len(flat))
    return {unit: devices[ranks[stages[k]][0]] for k, unit in enumerate(model.units)}


RULES: dict[str, Callable[[Files, LayeredModel], Where]] = {
    "vllm": vllm, "sglang": sglang, "tensorrt-llm": tensorrt_llm, "megatron": megatron, "llama-cpp": llama_cpp,
    "deepspeed": deepspeed, "torch-pipelining": torch_pipelining, "torchtitan": torchtitan, "accelerate": accelerate,
    "pipedream": pipedream,
}  # fmt: skip
#: Runtimes that train, and so take graphs with a backward part.
TRAINING = ("megatron", "deepspeed", "torch-pipelining", "torchtitan", "pipedream")
#: Runtimes for which it matters where modules with the same weights are.
LINKED = ("accelerate", "deepspeed", "torch-pipelining", "torchtitan", "pipedream")
