"""Families of transformers that a Hugging Face ``config.json`` names: what their layers hold, and names of modules.

Read off the classes of transformers 5.23 (``models/*/modeling_*.py``); the tests compare counts of parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: A property of a family: always so, or a key of the file with the value that it has where the file does not say it.
Flag = bool | tuple[str, bool]


@dataclass(frozen=True)
class MixtureKeys:
    """Keys of a mixture of experts, the number of which has one of several.

    ``shared``  the inner width of an expert for all tokens; ``dense``: whether layers may have no experts
    """

    counts: tuple[str, ...]
    inner: str
    per_token: str = "num_experts_per_tok"
    shared: str = ""
    dense: bool = False


@dataclass(frozen=True)
class Family:
    """A family of decoders.

    ``architecture``, ``model_type``  how files name it; ``layer`` the class of its layers
    ``base``, ``embedding``, ``positions``, ``layers``, ``norm``  paths of modules below ``base`` (empty: not there)
    ``keys``       names of keys that are not those of Llama
    ``kind``       ``rmsnorm`` or ``layernorm``; ``norms``: how many a layer has
    ``key_norm``   norms of queries and keys: of each ``head``, or of the whole ``width``
    ``bias``       of products: queries, keys and values; the output of attention; feed-forward; head
    ``gated``      a product gates another in feed-forward
    ``tied``       whether the head has the weights of the embedding, where the file does not say it
    ``spare``      rows of learned positions beside those that there are positions
    ``window``     which layers look at a window: ``always``, ``asked`` (``use_sliding_window``), or a number k for all
                   but every k-th; ``layer_types`` in the file goes before
    """

    architecture: str
    model_type: str
    layer: str
    base: str = "model"
    embedding: str = "embed_tokens"
    positions: str = ""
    layers: str = "layers"
    norm: str = "norm"
    keys: Mapping[str, str] = field(default_factory=dict)
    kind: str = "rmsnorm"
    norms: int = 2
    key_norm: str = ""
    bias: tuple[Flag, Flag, Flag, Flag] = (False, False, False, False)
    gated: bool = True
    tied: bool = False
    spare: int = 0
    window: str | int = ""
    mixture: MixtureKeys | None = None


_OPTIONAL: Flag = ("attention_bias", False)
_USED: Flag = ("use_bias", True)
_ENABLED: Flag = ("enable_bias", True)
_MLP: Flag = ("mlp_bias", False)
_COUNTS = ("num_experts", "num_local_experts")

_LIST = (
    Family("LlamaForCausalLM", "llama", "LlamaDecoderLayer", bias=(_OPTIONAL, _OPTIONAL, _MLP, False)),
    Family("MistralForCausalLM", "mistral", "MistralDecoderLayer", window="always"),
    Family("MixtralForCausalLM", "mixtral", "MixtralDecoderLayer", window="always",
           mixture=MixtureKeys(("num_local_experts",), "intermediate_size")),
    Family("Qwen2ForCausalLM", "qwen2", "Qwen2DecoderLayer", bias=(True, False, False, False), window="asked"),
    Family("Qwen2MoeForCausalLM", "qwen2_moe", "Qwen2MoeDecoderLayer", bias=(("qkv_bias", True), False, False, False),
           window="asked",
           mixture=MixtureKeys(_COUNTS, "moe_intermediate_size", shared="shared_expert_intermediate_size",
                               dense=True)),
    Family("Qwen3ForCausalLM", "qwen3", "Qwen3DecoderLayer", bias=(_OPTIONAL, _OPTIONAL, False, False),
           key_norm="head", window="asked"),
    Family("Qwen3MoeForCausalLM", "qwen3_moe", "Qwen3MoeDecoderLayer", bias=(_OPTIONAL, _OPTIONAL, False, False),
           key_norm="head", window="asked", mixture=MixtureKeys(_COUNTS, "moe_intermediate_size", dense=True)),
    Family("Phi3ForCausalLM", "phi3", "Phi3DecoderLayer", window="always"),
    Family("GemmaForCausalLM", "gemma", "GemmaDecoderLayer", bias=(_OPTIONAL, _OPTIONAL, False, False), tied=True),
    Family("Gemma2ForCausalLM", "gemma2", "Gemma2DecoderLayer", bias=(_OPTIONAL, _OPTIONAL, False, False), norms=4,
           tied=True, window=2),
    Family("Gemma3ForCausalLM", "gemma3_text", "Gemma3DecoderLayer", bias=(_OPTIONAL, _OPTIONAL, False, False), norms=4,
           key_norm="head", tied=True, window=6),
    Family("GraniteForCausalLM", "granite", "GraniteDecoderLayer", bias=(_OPTIONAL, _OPTIONAL, _MLP, False)),
    Family("Olmo2ForCausalLM", "olmo2", "Olmo2DecoderLayer", bias=(_OPTIONAL, _OPTIONAL, False, False),
           key_norm="width"),
    Family("SmolLM3ForCausalLM", "smollm3", "SmolLM3DecoderLayer", bias=(_OPTIONAL, _OPTIONAL, _MLP, False), tied=True,
           window="asked"),
    Family("Glm4ForCausalLM", "glm4", "Glm4DecoderLayer", bias=(_OPTIONAL, False, False, False), norms=4),
    Family("Starcoder2ForCausalLM", "starcoder2", "Starcoder2DecoderLayer", kind="layernorm",
           bias=(_USED, _USED, _USED, False), gated=False, tied=True, window="always"),
    Family("PhiForCausalLM", "phi", "PhiDecoderLayer", norm="final_layernorm", kind="layernorm", norms=1,
           bias=(True, True, True, True), gated=False),
    Family("GPTNeoXForCausalLM", "gpt_neox", "GPTNeoXLayer", base="gpt_neox", embedding="embed_in",
           norm="final_layer_norm", kind="layernorm",
           bias=(("attention_bias", True), ("attention_bias", True), True, False), gated=False),
    Family("GPT2LMHeadModel", "gpt2", "GPT2Block", base="transformer", embedding="wte", positions="wpe", layers="h",
           norm="ln_f", kind="layernorm", bias=(True, True, True, False), gated=False, tied=True,
           keys={"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
                 "intermediate_size": "n_inner", "max_position_embeddings": "n_positions"}),
    Family("OPTForCausalLM", "opt", "OPTDecoderLayer", base="model.decoder", positions="embed_positions",
           norm="final_layer_norm", kind="layernorm", bias=(_ENABLED, _ENABLED, _ENABLED, False), gated=False,
           tied=True, spare=2, keys={"intermediate_size": "ffn_dim"}),
)  # fmt: skip

#: By the name of the architecture, and by the type of model.
FAMILIES: Mapping[str, Family] = {family.architecture: family for family in _LIST}
MODEL_TYPES: Mapping[str, Family] = {family.model_type: family for family in _LIST}
