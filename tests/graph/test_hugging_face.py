"""config.json of Hugging Face: parameters against what is published of well-known models, and costs of layers."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placedsl
from placedsl.diagnostics import InputError, Source
from placedsl.export.runtimes import vllm
from placedsl.graph.graph import Graph
from placedsl.graph.readers import read
from placedsl.graph.readers.sizes import Size


def llama(width: int, inner: int, layers: int, heads: int, key_heads: int | None, words: int, **more: Any) -> Any:
    """A configuration with the keys of Llama."""
    root = {
        "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": key_heads, "vocab_size": words, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    }  # fmt: skip
    return {"architectures": ["LlamaForCausalLM"]} | {k: v for k, v in root.items() if v is not None} | more


def of(kind: str) -> dict[str, Any]:
    return {"architectures": [kind]}


#: Configurations as they are published, without what has no effect here, and the counts of parameters.
PUBLISHED: dict[str, tuple[Any, int]] = {
    "Llama-2-7B": (llama(4096, 11008, 32, 32, None, 32000), 6_738_415_616),
    "Llama-2-70B": (llama(8192, 28672, 80, 64, 8, 32000), 68_976_648_192),
    "Llama-3-8B": (llama(4096, 14336, 32, 32, 8, 128256), 8_030_261_248),
    "Llama-3.2-1B": (llama(2048, 8192, 16, 32, 8, 128256, tie_word_embeddings=True, head_dim=64), 1_235_814_400),
    "Mistral-7B": (llama(4096, 14336, 32, 32, 8, 32000, sliding_window=4096) | of("MistralForCausalLM"), 7_241_732_096),
    "Mixtral-8x7B": (
        llama(4096, 14336, 32, 32, 8, 32000, num_local_experts=8, num_experts_per_tok=2, sliding_window=None)
        | of("MixtralForCausalLM"), 46_702_792_704),
    "Qwen2.5-7B": (llama(3584, 18944, 28, 28, 4, 152064) | of("Qwen2ForCausalLM"), 7_615_616_512),
    "Qwen2.5-0.5B": (
        llama(896, 4864, 24, 14, 2, 151936, tie_word_embeddings=True) | of("Qwen2ForCausalLM"), 494_032_768),
    "Qwen3-8B": (llama(4096, 12288, 36, 32, 8, 151936, head_dim=128) | of("Qwen3ForCausalLM"), 8_190_735_360),
    "Qwen3-30B-A3B": (
        llama(2048, 6144, 48, 32, 4, 151936, head_dim=128, num_experts=128, num_experts_per_tok=8,
              moe_intermediate_size=768, decoder_sparse_step=1, mlp_only_layers=[]) | of("Qwen3MoeForCausalLM"),
        30_532_122_624),
    "Qwen1.5-MoE-A2.7B": (
        llama(2048, 5632, 24, 16, 16, 151936, num_experts=60, num_experts_per_tok=4, moe_intermediate_size=1408,
              shared_expert_intermediate_size=5632) | of("Qwen2MoeForCausalLM"), 14_315_784_192),
    "Phi-3-mini": (llama(3072, 8192, 32, 32, 32, 32064) | of("Phi3ForCausalLM"), 3_821_079_552),
    "Gemma-2B": (
        {k: v for k, v in llama(2048, 16384, 18, 8, 1, 256000, head_dim=256).items() if k != "tie_word_embeddings"}
        | of("GemmaForCausalLM"), 2_506_172_416),
    "Gemma-2-9B": (
        {k: v for k, v in llama(3584, 14336, 42, 16, 8, 256000, head_dim=256).items() if k != "tie_word_embeddings"}
        | of("Gemma2ForCausalLM"), 9_241_705_984),
    "GPT-NeoX-20B": (
        llama(6144, 24576, 44, 64, None, 50432, torch_dtype="float16") | of("GPTNeoXForCausalLM"), 20_554_567_680),
    "GPT-2": (
        of("GPT2LMHeadModel") | {"n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257},
        124_439_808),
    "OPT-6.7B": (
        {k: v for k, v in llama(4096, 0, 32, 32, None, 50272, ffn_dim=16384, word_embed_proj_dim=4096,
                                max_position_embeddings=2048).items() if k != "tie_word_embeddings"}
        | of("OPTForCausalLM"), 6_658_473_984),
}  # fmt: skip


def graph_of(root: Any, **sizes: int) -> Graph:
    """One sample of 128 positions, unless said otherwise."""
    given = {"batch": 1, "length": 128} | sizes
    source = Source("config.json", json.dumps(root, indent=2))
    return read(source, None, {name: Size(size) for name, size in given.items()})


def told(root: Any, **sizes: int) -> list[str]:
    """What is wrong with a configuration: line, message and hint."""
    with pytest.raises(InputError) as caught:
        graph_of(root, **sizes)
    return [f"{d.span.line if d.span else 0}: {d.message}; {d.hint}" for d in caught.value.diagnostics]


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_that_are_published(name: str) -> None:
    root, count = PUBLISHED[name]
    assert graph_of(root, dtype=16).attributes["parameters"].sum() / 2 == count
    assert graph_of(root, dtype=16, weights=4).attributes["parameters"].sum() * 2 == count


def test_modules_and_layers() -> None:
    graph = graph_of(PUBLISHED["Llama-3-8B"][0])
    assert graph.ids == ("model.embed_tokens", *(f"model.layers.{k}" for k in range(32)), "model.norm", "lm_head")
    assert graph.attributes["module"].tolist() == list(graph.ids)
    assert graph.attributes["layer"].tolist() == [None, *graph.ids[1:33], None, None]
    assert graph.attributes["type"].tolist() == ["Embedding", *["LlamaDecoderLayer"] * 32, "RMSNorm", "Linear"]
    assert graph_of(PUBLISHED["GPT-2"][0]).ids[:3] == ("transformer.wte", "transformer.wpe", "transformer.h.0")
    edges = zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)
    assert list(edges) == [(i, i + 1) for i in range(34)]
    assert set(graph.tensor_bytes) == {128 * 4096 * 2.0}


@pytest.mark.parametrize(("name", "bytes_of_a_position"), [("Llama-3-8B", 4096), ("Llama-2-7B", 16384)])
def test_keys_and_values(name: str, bytes_of_a_position: int) -> None:
    """Per layer and position, two vectors of all key heads: 128 KiB in 32 layers of Llama 3, 512 KiB in Llama 2."""
    graph = graph_of(PUBLISHED[name][0], batch=3, length=1000, tokens=1)
    assert set(graph.attributes["kv_cache"][1:-2]) == {3 * 1000 * bytes_of_a_position}
    assert (graph.memory == graph.attributes["parameters"] + graph.attributes["kv_cache"]).all()


@pytest.mark.parametrize("name", ["Llama-2-7B", "Llama-3-8B", "Qwen2.5-7B", "Phi-3-mini"])
def test_operations_are_two_per_weight_and_token_and_those_of_attention(name: str) -> None:
    root, count = PUBLISHED[name]
    batch, length = 4, 512
    graph = graph_of(root, batch=batch, length=length)
    embedding = root["vocab_size"] * root["hidden_size"]
    scores = 4 * length * root["hidden_size"] * root["num_hidden_layers"]  # both products, of all heads
    expected = batch * length * (2 * (count - embedding) + scores)
    assert expected < graph.attributes["flops"].sum() < 1.02 * expected
    last = graph_of(root, batch=batch, length=length, logits=1).attributes["flops"]
    assert last[-1] == graph.attributes["flops"][-1] / length
    assert (last[:-1] == graph.attributes["flops"][:-1]).all()


def test_one_new_position_reads_all_weights_and_all_keys() -> None:
    """Decoding is bound by memory: bytes are those of weights and of keys and values, and little more."""
    graph = graph_of(PUBLISHED["Llama-3-8B"][0], length=8192, tokens=1)
    read_bytes = graph.attributes["parameters"][1] + graph.attributes["kv_cache"][1]
    assert read_bytes < graph.attributes["bytes"][1] < 1.001 * read_bytes
    assert graph.tensor_bytes[0] == 4096 * 2


def test_experts_hold_all_weights_and_read_those_that_tokens_ask_for() -> None:
    root, _ = PUBLISHED["Mixtral-8x7B"]
    single, many = graph_of(root, length=1), graph_of(root, length=4096)
    assert single.attributes["parameters"][1] == many.attributes["parameters"][1]
    expert = 3 * 4096 * 14336 * 2
    rest = single.attributes["parameters"][1] - 8 * expert
    assert single.attributes["bytes"][1] == pytest.approx(2 * expert + rest, rel=1e-3)
    assert many.attributes["bytes"][1] > 8 * expert + rest
    dense = graph_of(llama(4096, 14336, 32, 32, 8, 32000), length=4096)
    one_more = 2 * 4096 * 3 * 4096 * 14336
    assert many.attributes["flops"][1] - dense.attributes["flops"][1] == pytest.approx(one_more, rel=0.01)


def test_experts_that_are_read_are_those_expected_of_random_choices() -> None:
    """60 experts, 4 a token, 10 tokens: by experiment."""
    root, _ = PUBLISHED["Qwen1.5-MoE-A2.7B"]
    expert = 3 * 2048 * 1408 * 2
    base = graph_of(root, length=10).attributes
    none = base["parameters"][1] - 60 * expert  # of the layer's other weights
    chosen = random.Random(7)
    seen = [len({e for _ in range(10) for e in chosen.sample(range(60), 4)}) for _ in range(4000)]
    assert (base["bytes"][1] - none) / expert == pytest.approx(np.mean(seen), rel=0.02)


@pytest.mark.parametrize(
    ("change", "windows"),
    [
        (of("MistralForCausalLM") | {"sliding_window": 50}, [50] * 6), (of("MistralForCausalLM"), [128] * 6),
        (of("MistralForCausalLM") | {"sliding_window": 500}, [128] * 6),
        (of("Qwen2ForCausalLM") | {"sliding_window": 50, "use_sliding_window": False}, [128] * 6),
        (of("Qwen2ForCausalLM") | {"sliding_window": 50, "use_sliding_window": True, "max_window_layers": 4},
         [128] * 4 + [50] * 2),
        (of("Gemma2ForCausalLM") | {"sliding_window": 50}, [50, 128] * 3),
        (of("Gemma3ForCausalLM") | {"sliding_window": 50, "sliding_window_pattern": 3}, [50, 50, 128] * 2),
        (of("Gemma3ForCausalLM") | {"sliding_window": 50}, [50] * 5 + [128]),
        (of("Qwen3ForCausalLM") | {"sliding_window": 50, "layer_types": ["full_attention", "sliding_attention"] * 3},
         [128, 50] * 3),
        ({"sliding_window": 50}, [128] * 6),
    ],
)  # fmt: skip
def test_layers_that_look_at_a_window(change: dict[str, Any], windows: list[int]) -> None:
    graph = graph_of(llama(64, 128, 6, 4, 2, 500) | change)
    assert (graph.attributes["kv_cache"][1:7] / (2 * 2 * 16 * 2)).tolist() == windows


def test_layers_without_experts_between_those_with_experts() -> None:
    root = llama(64, 100, 6, 4, 2, 500, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=10,
                 decoder_sparse_step=2, mlp_only_layers=[3]) | of("Qwen3MoeForCausalLM")  # fmt: skip
    sizes = graph_of(root).attributes["parameters"][1:7] / 2
    dense, sparse = 3 * 64 * 100, 5 * 3 * 64 * 10 + 64 * 5
    rest = sizes[0] - dense
    assert sizes.tolist() == [rest + dense, rest + sparse, *[rest + dense] * 3, rest + sparse]


def test_tied_embeddings_are_two_copies_and_counted_once() -> None:
    root, _ = PUBLISHED["Qwen2.5-0.5B"]
    graph = graph_of(root)
    copy = 151936 * 896 * 2
    assert (graph.attributes["parameters"][-1], graph.memory[-1], graph.memory[0]) == (0, copy, copy)
    tied = graph.attributes["tied"]
    assert [i for i, of in zip(graph.ids, tied, strict=True) if of == "model.embed_tokens"] == [
        "model.embed_tokens", "lm_head"
    ]  # fmt: skip
    assert any("'lm_head' has the weights of 'model.embed_tokens'" in note for note in graph.notes)
    assert "tied" not in graph_of(PUBLISHED["Llama-3-8B"][0]).attributes


def test_types_of_numbers() -> None:
    root = llama(64, 128, 2, 4, 2, 500)
    half, full = graph_of(root), graph_of(root | {"torch_dtype": "float32"})
    assert (full.memory == 2 * half.memory).all()
    assert (graph_of(root, dtype=32).memory == full.memory).all()
    unnamed = graph_of({k: v for k, v in root.items() if k != "torch_dtype"})
    assert (unnamed.memory == half.memory).all()
    assert any("bfloat16 is taken" in note for note in unnamed.notes)
    assert any("quantised" in note for note in graph_of(root | {"quantization_config": {}}).notes)


def test_what_is_wrong_is_told_at_its_line() -> None:
    root = llama(64, 128, 2, 4, 2, 500)
    assert told(root | of("LlamaForCasualLM")) == [
        "3: the architecture 'LlamaForCasualLM' is not known; did you mean 'LlamaForCausalLM' or 'Glm4ForCausalLM'?"
    ]
    assert told({"model_type": "lama"}) == ["2: the type of model 'lama' is not known; did you mean 'llama'?"]
    assert told({k: v for k, v in root.items() if k != "hidden_size"} | {"hiden_size": 64}) == [
        "1: this has no 'hidden_size'; did you mean 'hiden_size'?"
    ]
    assert told(root | {"vocab_size": "many", "num_hidden_layers": 0}) == [
        "7: 'num_hidden_layers' is 0; 1 or more, and below 2,147,483,648, is expected",
        "10: 'vocab_size' is a whole number, this is a text; ",
    ]
    assert "is no multiple of 5 heads" in told(root | {"num_attention_heads": 5})[0]
    assert "is not known; did you mean 'float16' or 'bfloat16'?" in told(root | {"torch_dtype": "floot16"})[0]
    assert "experts, and there are 2" in told(
        root | of("MixtralForCausalLM") | {"num_local_experts": 2, "num_experts_per_tok": 3}
    )[0]  # fmt: skip
    assert "a model of more than 200,000 layers" in told(root | {"num_hidden_layers": 2**31 - 1})[0]
    assert told(root, tokens=200) == ["0: 'tokens' is 200, and 'length' only 128; each is a number of positions"]


def test_sizes_that_are_missing_or_unknown(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(llama(64, 128, 2, 4, 2, 500)), encoding="utf-8")
    rest = "\ndevice gpu: accelerator { compute = 1 TFLOP/s, memory_bandwidth = 1 GB/s }\n"
    rest += "interconnect { bandwidth = 1 GB/s }\nminimize time_per_sample\n"

    def wrong(block: str) -> list[str]:
        with pytest.raises(InputError) as caught:
            placedsl.loads(f'graph from "config.json"{block}{rest}', tmp_path)
        return [f"{d.message}; {d.hint}" for d in caught.value.diagnostics]

    assert [text.partition(" of this model")[0] for text in wrong(" { batch = 1 }")] == ["the dimension 'length'"]
    assert len(wrong("")) == 2
    assert "did you mean 'length' or 'weights'?" in wrong(" { batch = 1, length = 2, lenght = 3 }")[0]
    assert wrong(" { batch = 1, length = 2, dtype = bf61 }") == [
        "the type 'bf61' is not known; did you mean 'bf16'?"
    ]  # fmt: skip
    assert "a graph file has no 'dtype'" in wrong(" { batch = 1, length = 2, dtype = 16 ms }")[0]
    said = 'param kind = "fp32"\ngraph from "config.json" { batch = 1, length = 2, dtype = kind, weights = int8 }'
    spec = placedsl.loads(said + rest, tmp_path)
    assert spec.problem.graph.attributes["parameters"][0] == 500 * 64
    assert spec.problem.graph.tensor_bytes[0] == 2 * 64 * 4


def test_from_a_configuration_to_layers_per_rank(tmp_path: Path) -> None:
    """Two GPUs of 24 GB and one of 16: Llama 3 8B with its keys and values, whole layers, in one answer."""
    (tmp_path / "config.json").write_text(json.dumps(PUBLISHED["Llama-3-8B"][0]), encoding="utf-8")
    spec = placedsl.loads(
        """
graph from "config.json" { batch = 8, length = 4096, tokens = 1, dtype = bf16 }
device small: accelerator { memory = 6 GB, compute = 60 TFLOP/s, memory_bandwidth = 400 GB/s }
device large[2]: accelerator { memory = 12 GB, compute = 120 TFLOP/s, memory_bandwidth = 900 GB/s }
interconnect { bandwidth = 16 GB/s }
minimize time_per_sample
subject to
    memory
    contiguous
    boundaries by layer
    caches: forall d in devices: sum(v in nodes: v.kv_cache * (v on d)) <= 4 GiB
""", tmp_path)  # fmt: skip
    answer = spec.solve()
    assert answer.proven()
    assert answer.method == "dp"
    plan = answer.plan
    assert vllm.reasons_against(plan) == []
    line = next(line for line in vllm.write(plan)["vllm.env"].splitlines() if line.startswith("VLLM"))
    counts = [int(text) for text in line.partition("=")[2].split(",")]
    assert sum(counts) == 32
    assert len(counts) == 3
    assert [len([n for n in s.nodes if n.attribute("layer")]) for s in plan.stages] == counts


@pytest.mark.parametrize("seed", range(30))
def test_damaged_configurations_end_in_diagnostics(seed: int) -> None:
    chosen = random.Random(seed)
    for _ in range(30):
        root = dict(chosen.choice([root for root, _ in PUBLISHED.values()]))
        root["num_hidden_layers" if "num_hidden_layers" in root else "n_layer"] = 3
        for _ in range(chosen.randint(1, 3)):
            more = ("sliding_window", "layer_types", "mlp_only_layers", "decoder_sparse_step", "dtype")
            key = chosen.choice([*root, *more])
            root[key] = chosen.choice([None, 0, -1, 1, 7, 2**40, 1.5, "x", True, [], {}, ["x"], [0], float("1e300")])
            if chosen.random() < 0.2:
                del root[key]
        try:
            graph = graph_of(root)
        except InputError:
            continue
        for values in (graph.memory, *(graph.attributes[k] for k in ("flops", "bytes", "parameters", "kv_cache"))):
            assert np.isfinite(values).all()
            assert (values >= 0).all()


@pytest.mark.parametrize(
    ("name", "advice"),
    [("config.json", "save the model's config.json there"), ("lama.json", "did you mean 'llama.json'?")],
)
def test_a_configuration_that_is_not_there(name: str, advice: str, tmp_path: Path) -> None:
    for beside in ("llama.json", ".hidden.json", "own.place"):
        (tmp_path / beside).write_text("{}", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read(tmp_path / name)
    (found,) = caught.value.diagnostics
    assert found.hint is not None
    assert found.hint.startswith(advice)
    assert "hidden" not in found.hint
