"""What an interpreter adds to the calls of a PyTorch model: stages of ``torch.distributed.pipelining`` are run by one.

``torch.export.unflatten`` makes the same nested modules, whose graphs an interpreter walks node by node.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from placedsl.arrays import Floats
from placedsl.diagnostics import Diagnostic, InputError
from placedsl.measurement.python_models import Called


def unflattened(program: Any) -> Any:
    """An exported program as nested modules that an interpreter runs; InputError where PyTorch makes none."""
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about what PyTorch calls itself
            return torch.export.unflatten(program)
    except Exception as problem:  # noqa: BLE001 - whatever PyTorch raises is about the program
        raise _wrong("PyTorch does not make nested modules of this program", problem) from None


def exported(called: Called) -> Any:
    """The nested modules of a model that is given as a module; InputError where PyTorch does not export it."""
    import torch

    try:
        program = torch.export.export(called.module, called.arguments, called.options)
    except Exception as problem:  # noqa: BLE001 - whatever PyTorch raises is about the model
        raise _wrong("torch.export does not take this model", problem) from None
    return unflattened(program)


def shares(module: Any, paths: Sequence[str]) -> Floats:
    """Of the calls that the interpreter makes within some modules, given by their paths, the share of each."""
    calls = np.array([_calls(_found(module, path)) for path in paths], dtype=float)
    out: Floats = calls / max(calls.sum(), 1.0)
    return out


def _found(module: Any, path: str) -> Any:
    """The module of that path; None where the program has none, as nothing of it is called."""
    try:
        return module.get_submodule(path)
    except AttributeError:
        return None


def _calls(module: Any) -> int:
    """The calls of a module's graph, with those of the modules that it calls."""
    graph = getattr(module, "graph", None)
    if graph is None:
        return 0
    out = 0
    for node in graph.nodes:
        out += 1 if node.op == "call_function" else 0
        out += _calls(module.get_submodule(node.target)) if node.op == "call_module" else 0
    return out


def _wrong(message: str, problem: Exception) -> InputError:
    told = next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
    return InputError([Diagnostic(f"{message}: {told}", None, "leave out --interpreted")])
