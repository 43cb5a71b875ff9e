"""Which runner takes a model: by what its file holds, or ``model.py:NAME``."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.measurement.runs import Request, Runnable


def _torch(request: Request, source: Source) -> Runnable:
    from placedsl.measurement import torch_program

    return torch_program.prepare(request, source)


def _onnx_runtime(request: Request, source: Source) -> Runnable:
    from placedsl.measurement import onnx_runtime

    return onnx_runtime.prepare(request, source)


def _transformers(request: Request, source: Source) -> Runnable:
    from placedsl.graph.readers import read
    from placedsl.measurement import torch_modules, transformers_model

    if request.interpreted:
        raise InputError([Diagnostic("layers of a config.json are run as they are", None, "leave out --interpreted")])
    graph = read(source, "hugging-face", request.sizes)
    called = transformers_model.made(request, source, graph)
    content = f"{source.text} {[(name, size.value) for name, size in sorted(request.sizes.items())]}"
    return torch_modules.prepare(request, called, [str(own) for own in graph.ids], content)


def _python(request: Request, file: Path, name: str) -> Runnable:
    """Layers of a model of a Python file, forward and backward."""
    from placedsl.measurement import python_models, torch_modules

    needed(("torch",))
    if request.sizes:
        raise InputError([Diagnostic("--size has no meaning here: sizes are those of the arguments in the file")])
    called = python_models.made(file, name)
    paths = torch_modules.paths_of(called.module)
    return torch_modules.prepare(request, called, paths, f"{file.read_bytes()!r} {name}")


#: By the format of a graph: the packages that a runner needs, and the runner.
RUNNERS: dict[str, tuple[tuple[str, ...], Callable[[Request, Source], Runnable]]] = {
    "hugging-face": (("torch", "transformers"), _transformers),
    "onnx": (("onnx", "onnxruntime"), _onnx_runtime),
    "torch-export": (("torch",), _torch),
}


def prepare(request: Request) -> Runnable:
    """The model of a request, ready to be run; InputError where it cannot be."""
    from placedsl.graph.readers import load_graph, recognised
    from placedsl.measurement.python_models import named

    if (found := named(request.model)) is not None:
        return _python(request, *found)
    source = load_graph(request.model)
    name = recognised(source)
    if name not in RUNNERS:
        hint = "a model that can be run is expected: model.pt2, model.onnx, model.py:NAME or a config.json"
        raise InputError([Diagnostic(f"'{request.model}' is of the format '{name}', which is not run", None, hint)])
    if request.training and name != "hugging-face":
        hint = "layers are trained of a config.json, or of a model.py:NAME, a function that returns the module"
        raise InputError([Diagnostic(f"'{request.model}' has forward passes only", None, hint)])
    if request.cpu_time and name == "onnx":
        raise InputError([Diagnostic("ONNX Runtime tells times of the clock only", None, "leave out --cpu-time")])
    packages, runner = RUNNERS[name]
    needed(packages)
    return runner(request, source)


def needed(packages: tuple[str, ...]) -> None:
    """InputError where a package is missing; none is imported."""
    absent = [package for package in packages if find_spec(package) is None]
    if absent:
        message = f"measuring this needs the package {' and '.join(absent)}"
        raise InputError([Diagnostic(message, None, "install it: pip install 'placedsl[measure]'")])
