"""python run_accelerate.py device_map.json LAYERS [tied]: real dispatch over simulated devices, logits against the
model's; ``tied``: head and embedding have one matrix, and have afterwards."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from accelerate import dispatch_model
from accelerate.utils import check_device_map
from simulated_devices import COPIES, register
from transformers import LlamaConfig, LlamaForCausalLM


def main(path: str, layers: int, *, tied: bool = False) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, tie_word_embeddings=tied,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    tokens = torch.randint(0, 64, (2, 8))
    with torch.no_grad():
        expected = model(tokens, use_cache=False).logits
    given = json.loads(Path(path).read_text(encoding="utf-8"))
    check_device_map(model, given)
    unknown = [key for key in given if key not in dict(model.named_modules())]
    assert not unknown, f"no modules: {unknown}"
    on_cpu = set(given.values()) == {"cpu"}
    mapped = {key: value if on_cpu else f"sim:{value}" for key, value in given.items()}
    with torch.no_grad(), register():
        placed = dispatch_model(model, mapped, main_device="cpu" if on_cpu else None, force_hooks=True)
        where = {name: str(parameter.device) for name, parameter in placed.named_parameters()}
        logits = placed(tokens, use_cache=False).logits
        logits = getattr(logits, "held", logits)
    wrong = [name for name, device in where.items() if device != _expected(name, mapped)]
    assert not wrong, wrong
    torch.testing.assert_close(logits.cpu(), expected, rtol=1e-5, atol=1e-6)
    used = sorted(set(mapped.values()))
    if tied:
        ends = placed.model.embed_tokens.weight, placed.lm_head.weight
        assert ends[0] is ends[1]
        print("1 tensor of the tied weights")
    print(f"accepted: {len(where)} tensors on {', '.join(used)}; {sum(COPIES.values())} copies; logits agree")


def _expected(name: str, mapped: dict[str, str]) -> str:
    keys = [key for key in mapped if not key or name == key or name.startswith(key + ".")]
    return mapped[max(keys, key=len)]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), tied="tied" in sys.argv[3:])
