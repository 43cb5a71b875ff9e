"""Which runner takes a model: by what its file holds."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.measurement.runs import Request, Runnable


def _torch(request: Request, source: Source) -> Runnable:
    from placedsl.measurement import torch_program

    return torch_program.prepare(request, source)


def _onnx_runtime(request: Request, source: Source) -> Runnable:
    from placedsl.measurement import onnx_runtime

    return onnx_runtime.prepare(request, source)


#: By the format of a graph: the packages that a runner needs, and the runner.
RUNNERS: dict[str, tuple[tuple[str, ...], Callable[[Request, Source], Runnable]]] = {
    "onnx": (("onnx", "onnxruntime"), _onnx_runtime),
    "torch-export": (("torch",), _torch),
}


def prepare(request: Request) -> Runnable:
    """The model of a request, ready to be run; InputError where it cannot be."""
    from placedsl.graph.readers import load_graph, recognised

    source = load_graph(request.model)
    name = recognised(source)
    if name not in RUNNERS:
        hint = "a model that PyTorch or ONNX Runtime runs is expected: model.pt2 or model.onnx"
        raise InputError([Diagnostic(f"'{request.model}' is of the format '{name}', which is not run", None, hint)])
    packages, runner = RUNNERS[name]
    needed(packages)
    return runner(request, source)


def needed(packages: tuple[str, ...]) -> None:
    """InputError where a package is missing; none is imported."""
    absent = [package for package in packages if find_spec(package) is None]
    if absent:
        message = f"measuring this needs the package {' and '.join(absent)}"
        raise InputError([Diagnostic(message, None, "install it: pip install 'placedsl[measure]'")])
