"""A model as a Hugging Face ``config.json`` describes it: one node per layer, without weights or code.

Nodes are the embedding, learned positions where there are any, each decoder layer, the last norm and the head, in a
chain.  Each has operations and bytes for one pass of a batch, the memory of its weights and of its keys and values, and
the path of its module.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from placedsl import limits
from placedsl.diagnostics import Diagnostic, InputError, Source, nearest
from placedsl.graph.build import build
from placedsl.graph.graph import Graph
from placedsl.graph.readers import module_paths
from placedsl.graph.readers import sizes as given_sizes
from placedsl.graph.readers.records import Document, word
from placedsl.graph.readers.sizes import BITS, Sizes
from placedsl.graph.readers.transformer_families import FAMILIES, MODEL_TYPES, Family, Flag
from placedsl.graph.readers.transformer_parts import (
    Experts,
    Part,
    attention,
    elementwise,
    embedding,
    feed_forward,
    linear,
    mixture,
    norm,
)

#: What the spec says of the pass, each with its meaning; the first two it has to say.
ENTRIES = {
    "batch": "samples", "length": "positions whose keys and values are kept, for each sample",
    "tokens": "positions that the pass computes, for each sample", "logits": "those of them whose scores it computes",
    "dtype": "type of activations, and of weights", "weights": "type of weights, where it is another",
}  # fmt: skip
_NEEDED = ("batch", "length")
_LARGEST = 2**31
_BYTE = 8.0


def looks_like(root: object) -> bool:
    """Whether a JSON value is of this format."""
    return isinstance(root, dict) and ("architectures" in root or "model_type" in root) and "nodes" not in root


def read(source: Source, sizes: Sizes) -> Graph:
    """Read a configuration; ``sizes`` are those of :data:`ENTRIES`.  Raises InputError with every defect."""
    document = Document(source)
    wrong = given_sizes.unknown(sizes, ENTRIES)
    wrong += given_sizes.missing(dict.fromkeys(_NEEDED, "this model"), sizes)
    family = _family(document)
    if wrong or document.found or family is None:
        raise InputError([*document.found, *wrong])
    model = _Model(document, family, sizes)
    document.stop()
    return model.graph()


def _family(document: Document) -> Family | None:
    """The family that the file names; None after reporting."""
    named = document.root.get("architectures") or None
    if named is None:
        kind = document.root.get("model_type")
        if isinstance(kind, str) and kind in MODEL_TYPES:
            return MODEL_TYPES[kind]
        path, known = ("model_type",), MODEL_TYPES
        what = f"the type of model {kind!r} is not known" if isinstance(kind, str) else "'model_type' is a text"
        document.error(path, what, nearest(str(kind), known))
        return None
    first = named[0] if isinstance(named, list) else named
    if isinstance(first, str) and first in FAMILIES:
        return FAMILIES[first]
    what = f"the architecture '{first}' is not known"
    if not isinstance(first, str):
        what = "'architectures' is a list of texts"
    document.error(("architectures", 0), what, nearest(str(first), FAMILIES))
    return None


class _Model:
    """The numbers of a file, and the nodes that follow from them; defects are collected in the document."""

    def __init__(self, document: Document, family: Family, sizes: Sizes) -> None:
        self.document, self.family = document, family
        self.layers = self.whole("num_hidden_layers")
        self.width, self.vocabulary = self.whole("hidden_size"), self.whole("vocab_size")
        self.heads = self.whole("num_attention_heads")
        self.key_heads = self.whole("num_key_value_heads", self.heads)
        self.head = self.head_width()
        inner = 4 * self.width if family.keys.get("intermediate_size") == "n_inner" else None
        self.inner = self.whole("intermediate_size", inner)
        self.tied = self.flag(("tie_word_embeddings", family.tied))
        self.bias = [self.flag(flag) for flag in family.bias]
        self.experts, self.expert_inner, self.shared = self.mixture()
        self.positions = self.whole("max_position_embeddings") if family.positions else 0
        projected = document.root.get("word_embed_proj_dim", self.width)
        if family.model_type == "opt" and (projected != self.width or not self.flag(("do_layer_norm_before", True))):
            document.error(("word_embed_proj_dim",), "embeddings of another width than the layers are not known here")
        if self.layers > (most := limits.count("operators")):
            hint = limits.hint("is the number of layers right?", "operators", self.layers)
            document.error(("num_hidden_layers",), f"a model of more than {most:,} layers", hint)
        given = {name: size.value for name, size in sizes.items()}
        self.batch, self.length = given["batch"], given["length"]
        self.tokens = given.get("tokens", self.length)
        self.logits = given.get("logits", self.tokens)
        for name, most_of, value, bound in (
            ("tokens", "length", self.tokens, self.length), ("logits", "tokens", self.logits, self.tokens),
        ):  # fmt: skip
            if value > bound:
                message = f"'{name}' is {value}, and '{most_of}' only {bound}"
                document.found.append(Diagnostic(message, sizes[name].place, "each is a number of positions"))
        self.notes: list[str] = []
        self.bits = given.get("dtype") or self.own_type()
        self.weight_bits = given.get("weights", self.bits)
        if "quantization_config" in document.root and "weights" not in given:
            self.notes.append("the model's weights are quantised: weights = int4 beside the file's name counts them so")

    # numbers of the file

    def whole(self, name: str, default: int | None = None, least: int = 1) -> int:
        """A whole number under a key; ``default`` where it is not there or null."""
        key = self.family.keys.get(name, name)
        root: Mapping[str, Any] = self.document.root
        value = root.get(key)
        if value is None and default is not None:
            return default
        if value is None:
            self.document.missing((), key, f"this has no '{key}'", nearest(key, root))
        elif type(value) is not int:
            self.document.error((key,), f"'{key}' is a whole number, this is {word(value)}")
        elif not least <= value < _LARGEST:
            hint = f"{least} or more, and below {_LARGEST:,}, is expected"
            self.document.error((key,), f"'{key}' is {value:,}", hint)
        else:
            return value
        return 1

    def flag(self, flag: Flag) -> bool:
        """A property of the family, or what the file says of it."""
        if isinstance(flag, bool):
            return flag
        key, default = flag
        record = {k: v for k, v in self.document.root.items() if k != key or v is not None}
        return self.document.truth((), record, key, default)

    def head_width(self) -> int:
        """The width of a head: said, or the width of the model divided among the heads."""
        if not self.document.found and self.document.root.get("head_dim") is None and self.width % self.heads:
            what = f"{self.width} is no multiple of {self.heads} heads, and there is no 'head_dim'"
            self.document.error((self.family.keys.get("hidden_size", "hidden_size"),), what)
        return self.whole("head_dim", max(1, self.width // self.heads))

    def mixture(self) -> tuple[Experts | None, int, int]:
        """The experts of a layer, the inner width of each, and that of the one for all tokens (0: there is none)."""
        keys = self.family.mixture
        if keys is None:
            return None, 0, 0
        given = next((key for key in keys.counts if key in self.document.root), keys.counts[0])
        count = self.whole(given, least=0)
        chosen = self.whole(keys.per_token)
        if count and chosen > count:
            self.document.error((keys.per_token,), f"each token goes through {chosen} experts, and there are {count}")
        shared = self.whole(keys.shared, least=0) if keys.shared else 0
        return (Experts(count, chosen) if count else None), self.whole(keys.inner), shared

    def own_type(self) -> int:
        """Bits of the type that the file names; bfloat16 where it names none, which is told."""
        for key in ("dtype", "torch_dtype"):
            said = self.document.root.get(key)
            if isinstance(said, str) and said in BITS:
                return BITS[said]
            if said is not None:
                self.document.error((key,), f"the type {said!r} is not known", nearest(str(said), BITS))
                return 16
        told = "the file names no type of numbers: bfloat16 is taken; dtype = fp32 beside its name gives another"
        self.notes.append(told)
        return 16

    def window(self, layer: int) -> int:
        """How many positions a layer looks at."""
        root = self.document.root
        size, how = root.get("sliding_window"), self.family.window
        if not how or size is None:
            return self.length
        kinds = root.get("layer_types")
        if isinstance(kinds, list) and len(kinds) == self.layers:
            looks = kinds[layer] == "sliding_attention"
        elif how == "asked":
            last = self.whole("max_window_layers", 0, least=0)
            looks = self.flag(("use_sliding_window", False)) and layer >= last
        else:
            every = self.whole("sliding_window_pattern", how) if isinstance(how, int) else 0
            looks = every == 0 or (layer + 1) % every != 0
        return min(self.length, self.whole("sliding_window")) if looks else self.length

    def is_mixture(self, layer: int) -> bool:
        """Whether a layer has experts."""
        keys = self.family.mixture
        if keys is None or self.experts is None:
            return False
        if not keys.dense:
            return True
        plain = self.document.root.get("mlp_only_layers")
        listed = isinstance(plain, list) and layer in plain
        return not listed and (layer + 1) % self.whole("decoder_sparse_step", 1) == 0

    # nodes

    def layer(self, context: int, mixed: bool) -> Part:
        """One decoder layer, whose new positions look at ``context`` positions."""
        family, rows = self.family, float(self.batch * self.tokens)
        queries, keys = self.heads * self.head, self.key_heads * self.head
        out = linear(rows, self.width, queries, self.bias[0])
        out += linear(rows, self.width, keys, self.bias[0]) + linear(rows, self.width, keys, self.bias[0])
        if family.key_norm == "head":
            out += norm(rows * self.heads, self.head, "rmsnorm") + norm(rows * self.key_heads, self.head, "rmsnorm")
        elif family.key_norm:
            out += norm(rows, queries, "rmsnorm") + norm(rows, keys, "rmsnorm")
        if not family.positions:  # they are turned by their position
            out += elementwise(rows * (queries + keys), 3.0, 1)
        out += attention(self.batch, self.tokens, context, self.heads, self.key_heads, self.head)
        out += linear(rows, queries, self.width, self.bias[1])
        for _ in range(family.norms):
            out += norm(rows, self.width, family.kind)
        out += elementwise(rows * self.width, 1.0, 2) + elementwise(rows * self.width, 1.0, 2)
        gated, bias = family.gated, self.bias[2]
        if not mixed or self.experts is None:
            return out + feed_forward(rows, self.width, self.inner, gated=gated, bias=bias)
        out += mixture(rows, self.width, self.expert_inner, self.experts, gated=gated, bias=bias)
        if self.shared:
            out += feed_forward(rows, self.width, self.shared, gated=gated, bias=bias)
            out += linear(rows, self.width, 1, False) + elementwise(rows * self.width, 2.0, 1)
        return out

    def nodes(self) -> list[tuple[str, str, Part, float]]:
        """Module, type, numbers, and elements of keys and values of each node, in order."""
        family, rows = self.family, float(self.batch * self.tokens)
        out = [(f"{family.base}.{family.embedding}", "Embedding", embedding(self.vocabulary, rows, self.width), 0.0)]
        if family.positions:
            learned = embedding(self.positions + family.spare, rows, self.width)
            part = learned + elementwise(rows * self.width, 1.0, 2)
            out.append((f"{family.base}.{family.positions}", "Embedding", part, 0.0))
        known: dict[tuple[int, bool], Part] = {}
        for i in range(self.layers):
            key = self.window(i), self.is_mixture(i)
            if key not in known:
                known[key] = self.layer(*key)
            cache = 2.0 * self.batch * key[0] * self.key_heads * self.head
            out.append((f"{family.base}.{family.layers}.{i}", family.layer, known[key], cache))
        out.append((f"{family.base}.{family.norm}", _NORMS[family.kind], norm(rows, self.width, family.kind), 0.0))
        scored = float(self.batch * self.logits)
        out.append(("lm_head", "Linear", linear(scored, self.width, self.vocabulary, self.bias[3]), 0.0))
        return out

    def graph(self) -> Graph:
        """The chain of all nodes."""
        nodes = self.nodes()
        self.document.stop()
        ids = [module for module, *_ in nodes]
        parts = [part for _, _, part, _ in nodes]
        number, weight = self.bits / _BYTE, self.weight_bits / _BYTE
        cache = np.array([own for *_, own in nodes]) * number
        held = np.array([part.parameters for part in parts]) * weight
        own = held.copy()
        attributes: dict[str, Any] = {
            "type": np.array([kind for _, kind, _, _ in nodes], dtype=object),
            **module_paths.attributes(ids),
            "flops": np.array([part.flops for part in parts]),
            "bytes": np.array([part.used * weight + part.moved * number for part in parts]),
            "kv_cache": cache,
            "activations": np.array([part.made for part in parts]) * number,
        }
        if self.tied:
            own[-1] -= self.width * self.vocabulary * weight
            tied = np.full(len(ids), None, dtype=object)
            tied[[0, -1]] = ids[0]
            attributes["tied"] = tied
            self.notes.append(
                f"'{ids[-1]}' has the weights of '{ids[0]}': each counts a copy in its memory, and their parameters "
                "count once"
            )
        edges = list(pairwise(ids))
        return build(
            source=self.document.source, ids=ids, names=ids, time={}, memory=held + cache,
            backward=np.zeros(len(ids), dtype=bool), attributes={**attributes, "parameters": own}, edges=edges,
            edge_time=None, edge_bytes=np.full(len(edges), self.batch * self.tokens * self.width * number),
            time_in_seconds=True, locate=lambda _: self.document.source.whole(), notes=tuple(self.notes),
        )  # fmt: skip


_NORMS = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}
