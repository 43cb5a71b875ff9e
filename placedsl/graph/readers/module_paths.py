"""Module paths of a model, such as ``model.layers.3.mlp.up_proj``, and the layers that operators are part of."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

import numpy as np

from placedsl.arrays import Column

#: Where PyTorch's exporter of ONNX keeps the modules that an operator is in, from the model down to the operator.
_SCOPES = "pkg.torch.onnx.name_scopes"
#: A numbered module that is called again.
_AGAIN = re.compile(r"^(.*\.\d+)_\d+$")


def layer(module: str | None) -> str | None:
    """The path up to its first number: ``model.layers.3`` of ``model.layers.3.mlp.up_proj``; None without a number."""
    parts = (module or "").split(".")
    number = next((i for i, part in enumerate(parts) if part.isdecimal()), None)
    return None if number is None else ".".join(parts[: number + 1])


def attributes(modules: Sequence[str | None]) -> dict[str, Column]:
    """The columns ``module`` and ``layer`` of n operators; nothing where no operator has a module."""
    if not any(modules):
        return {}
    layers = [layer(module) for module in modules]
    columns = {"module": np.array([module or None for module in modules], dtype=object)}
    return columns | ({"layer": np.array(layers, dtype=object)} if any(layers) else {})


def of_onnx(name: str, metadata: Mapping[str, str]) -> str | None:
    """The module of an ONNX operator, from its metadata or its name; None where neither says it.

    PyTorch's exporter writes the scopes into the metadata, the module last but one; its exporter by TorchScript names
    operators ``/model/layers.3/mlp/up_proj/MatMul``.
    """
    written = metadata.get(_SCOPES)
    if written is not None:
        return _innermost(written)
    return _of_scopes(name.split("/")[1:-1]) if name.startswith("/") else None


def _of_scopes(scopes: Sequence[str]) -> str | None:
    """The path that scopes of TorchScript are.

    A child of a ``Sequential`` has the name of its parent in its own (``block``, ``block.0``), and what is called a
    second time a number behind its name (``layers.0_1``).
    """
    out: list[str] = []
    for scope in scopes:
        own = _AGAIN.sub(r"\1", scope)
        if out and own.startswith(f"{out[-1]}."):
            out.pop()
        out.append(own)
    return ".".join(out) or None


def _innermost(written: str) -> str | None:
    """The last but one of a list of texts as Python writes it."""
    try:
        scopes = ast.literal_eval(written)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    known = isinstance(scopes, list) and len(scopes) > 1 and isinstance(scopes[-2], str)
    return scopes[-2] or None if known else None
