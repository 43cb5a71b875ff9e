"""Models of a Hugging Face ``config.json``, made by transformers with random weights."""

from __future__ import annotations

import json
from typing import Any

from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.graph.graph import Graph
from placedsl.graph.readers.transformer_families import FAMILIES
from placedsl.measurement.python_models import Called
from placedsl.measurement.runs import Request


def made(request: Request, source: Source, graph: Graph) -> Called:
    """The model in evaluation mode on the request's device, and arguments of its sizes."""
    import torch
    import transformers

    root = json.loads(source.text)
    named = (root.get("architectures") or [""])[0]
    kind = root.pop("model_type", None) or FAMILIES[named].model_type
    sizes = {name: size.value for name, size in request.sizes.items()}
    batch, length = sizes["batch"], sizes["length"]
    tokens = sizes.get("tokens", length)
    dtype = getattr(torch, str(root.get("dtype") or root.get("torch_dtype") or "bfloat16").removeprefix("torch."))
    try:
        config = transformers.AutoConfig.for_model(kind, **root)
        with torch.device(request.device):
            model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError, ImportError) as problem:
        told = next(iter(str(problem).splitlines()), type(problem).__name__)
        message = f"transformers {transformers.__version__} does not make this model: {told}"
        raise InputError([Diagnostic(message, source.whole())]) from None
    absent = [own for own in map(str, graph.ids) if not _has(model, own)]
    if absent:
        raise InputError([Diagnostic(f"the model of transformers has no module '{absent[0]}'", source.whole())])
    words = torch.randint(0, config.vocab_size, (batch, tokens), device=request.device)
    options: dict[str, Any] = {"input_ids": words, "use_cache": tokens < length}
    if "logits" in sizes:
        options["logits_to_keep"] = sizes["logits"]
    if tokens < length:
        options["past_key_values"] = _filled(model, batch, length - tokens, request.device)
    return Called(model, (), options)


def _has(model: Any, path: str) -> bool:
    try:
        model.get_submodule(path)
    except AttributeError:
        return False
    return True


def _filled(model: Any, batch: int, positions: int, device: str) -> Any:
    """Keys and values of so many positions."""
    import torch

    words = torch.randint(0, model.config.vocab_size, (batch, positions), device=device)
    with torch.no_grad():
        return model(input_ids=words, use_cache=True, logits_to_keep=1).past_key_values
