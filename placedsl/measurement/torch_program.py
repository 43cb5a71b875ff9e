"""Programs that ``torch.export.save`` wrote, run operator by operator by PyTorch.

The time of an operator is from its call to the release of the tensors that nothing reads afterwards.  On a GPU it is
the time between two events of the stream, so what the host needs to launch an operator counts where the GPU waits for
it.  Operators that depend on no input are no nodes of the graph, and run each time all the same: they count with
the first node that reads what they make.  Where operators are called by an interpreter, each call takes an equal part
of the time that this adds to the whole model.  Weights that an archive does not hold are random.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import math
import os
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from placedsl.arrays import Floats
from placedsl.diagnostics import Diagnostic, InputError, Source
from placedsl.graph.readers import read, torch_export
from placedsl.measurement.interpreter import unflattened
from placedsl.measurement.runs import Pass, Request, Runnable
from placedsl.measurement.torch_calls import Step, first_readers, steps_of


def prepare(request: Request, source: Source) -> Runnable:
    """The program of a request on its device, with inputs; InputError where PyTorch does not take it."""
    import torch

    graph = read(source, "torch-export", request.sizes)
    device = _device(request.device)
    if request.threads is not None:
        torch.set_num_threads(request.threads)
    program = _loaded(request, source)
    if device.type != "cpu":
        from torch.export.passes import move_to_device_pass

        program = move_to_device_pass(program, device)
    module = program.module()
    flat = _inputs(program, torch_export.inputs(source, request.sizes), device)
    steps = list(steps_of(module, {}, {}))
    given = {str(own) for own in graph.ids}
    operators = list(dict.fromkeys(step.name for step in steps if step.name in given))  # what a region gives is twice
    arguments, options = torch.utils._pytree.tree_unflatten(flat, program.call_spec.in_spec)
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    beginning = dict(zip(placeholders, flat, strict=True))
    own_code = _Whole(module, arguments, options)
    interpreter = _Whole(unflattened(program), arguments, options) if request.interpreted else None
    running = _Running(steps, beginning, device, operators, (own_code, interpreter), request.clock)
    settings = {"runtime": f"torch {torch.__version__}", "device": _name(device)}
    if request.cpu_time:
        settings["clock"] = "of the processor"
    if request.interpreted:
        settings["calls"] = "by an interpreter"
    if device.type == "cpu":
        settings["threads"] = str(torch.get_num_threads())
    settings["inputs"] = ", ".join(
        "x".join(map(str, one.shape)) or "1" for one in flat if isinstance(one, torch.Tensor)
    )
    missing = sorted(given - set(operators))
    digest = hashlib.sha256(source.data).hexdigest()
    return Runnable(operators, settings, digest, missing, running.passes, 1, running.allocated)


@dataclass(frozen=True)
class _Whole:
    """A model as a whole, and its arguments."""

    module: Any
    arguments: Any
    options: Any

    def __call__(self) -> Any:
        """Run it."""
        return self.module(*self.arguments, **self.options)


def _device(name: str) -> Any:
    """The device of that name; InputError where there is none."""
    import torch

    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as problem:
        raise InputError([Diagnostic(f"--device {name}: {_first_line(problem)}", None, "as in --device cpu")]) from None
    return device


def _name(device: Any) -> str:
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)


def _first_line(problem: Exception) -> str:
    return next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)


def _loaded(request: Request, source: Source) -> Any:
    """The program; with random weights where the archive has none."""
    import torch

    if find_spec("transformers") is not None:  # outputs of its models are of types that it has to register
        with contextlib.suppress(ImportError):
            import_module("transformers.modeling_outputs")
    with zipfile.ZipFile(request.model) as archive:
        whole = any("/data/weights/" in name for name in archive.namelist()) or not any(
            "/models/" in name for name in archive.namelist()
        )
    told = logging.getLogger("torch.export")
    level = told.level
    told.setLevel(logging.CRITICAL)  # what it says is in the exception as well
    try:
        return torch.export.load(request.model) if whole else _without_weights(source)
    except Exception as problem:  # noqa: BLE001 - whatever PyTorch raises is about the file
        message = f"PyTorch {torch.__version__} does not load '{request.model}': {_first_line(problem)}"
        raise InputError([Diagnostic(message, None, "was it exported by a newer version?")]) from None
    finally:
        told.setLevel(level)


def _without_weights(source: Source) -> Any:
    """A program whose archive holds no weights."""
    import torch
    from torch._export.serde.schema import ScalarType
    from torch._export.serde.serialize import (
        _SERIALIZE_TO_TORCH_DTYPE,
        SerializedArtifact,
        deserialize,
    )

    root = json.loads(source.data)["graph_module"]
    shapes = root["graph"]["tensor_values"]
    state: dict[str, Any] = {}
    for spec in root["signature"]["input_specs"]:
        kind, held = next(iter(spec.items()))
        if kind in ("parameter", "buffer"):
            described = shapes[held["arg"]["name"]]
            lengths = [length["as_int"] for length in described["sizes"]]
            dtype = _SERIALIZE_TO_TORCH_DTYPE[ScalarType(described["dtype"])]
            value = _random(lengths, dtype)
            name = held[f"{kind}_name"]
            state[name] = torch.nn.Parameter(value, dtype.is_floating_point) if kind == "parameter" else value
    return deserialize(SerializedArtifact(source.data, _bytes(state), _bytes({}), b""))


def _bytes(value: object) -> bytes:
    import torch

    out = io.BytesIO()
    torch.save(value, out)
    return out.getvalue()


def _random(lengths: Sequence[int], dtype: Any) -> Any:
    """A tensor of small random numbers; of zeros where it holds no fractions."""
    import torch

    if dtype.is_floating_point or dtype.is_complex:
        return (torch.randn(tuple(lengths), dtype=torch.float32) * 0.02).to(dtype)
    return torch.zeros(tuple(lengths), dtype=dtype)


def _inputs(program: Any, shapes: Mapping[str, tuple[int, ...]], device: Any) -> list[Any]:
    """The inputs one after the other: whole numbers as in the example of the export, since they may be indices."""
    import torch

    example = program.example_inputs
    examples = [] if example is None else torch.utils._pytree.tree_leaves(example)
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    out = []
    for i, spec in enumerate(specs):
        name = spec.arg.name
        if name not in shapes:
            out.append(getattr(spec.arg, "value", None))
            continue
        dtype = values[name].dtype
        lengths = shapes[name]
        given = examples[i] if len(examples) == len(specs) else None
        if dtype.is_floating_point or given is None or not given.numel():
            value = _random(lengths, dtype)
        else:
            count = math.prod(lengths)
            value = given.flatten().repeat(-(-count // given.numel()))[:count].reshape(lengths)
        out.append(value.to(device))
    return out


class _Running:
    """A program and its inputs."""

    def __init__(
        self,
        steps: Sequence[Step],
        beginning: Mapping[Any, Any],
        device: Any,
        operators: Sequence[str],
        whole: tuple[_Whole, _Whole | None],
        clock: Callable[[], float],
    ) -> None:
        import torch

        self.clock = clock
        self.torch, self.steps, self.beginning, self.device = torch, steps, beginning, device
        self.position = {name: i for i, name in enumerate(operators)}
        self.counts_with = first_readers(steps, self.position)
        self.whole, self.interpreter = whole
        self.calls = np.bincount(list(self.counts_with.values()), minlength=len(operators))

    def passes(self, count: int) -> list[Pass]:
        """So many passes, each by operators and as a whole."""
        with self.torch.no_grad():
            return [self._pass() for _ in range(count)]

    def _pass(self) -> Pass:
        seconds, whole = self._by_operators(), self._seconds(self.whole)
        if self.interpreter is None:
            return Pass(seconds, whole)
        interpreted = self._seconds(self.interpreter)
        return Pass(seconds + max(0.0, interpreted - whole) * self.calls / self.calls.sum(), interpreted)

    def allocated(self) -> Floats:
        """One pass more: bytes that each operator had allocated at most while it ran."""
        with self.torch.no_grad():
            return self._allocated_on_gpu() if self.device.type == "cuda" else self._allocated_on_cpu()

    def _seconds(self, model: _Whole) -> float:
        begun = self.clock()
        self._told(model, "the model")
        self._wait()
        return self.clock() - begun

    def _wait(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def _told(self, call: Any, what: str, *arguments: Any, **options: Any) -> Any:
        """What a call gives; InputError with what is said where it fails."""
        try:
            return call(*arguments, **options)
        except Exception as problem:  # noqa: BLE001 - whatever PyTorch raises is about the model
            raise InputError(
                [Diagnostic(f"{what} fails: {_first_line(problem)}", None, "are its sizes right?")]
            ) from None

    def _run(self, around: Any) -> None:
        """One pass; ``around(step)`` is a context for each call."""
        environment = dict(self.beginning)
        look = environment.__getitem__
        map_arg = self.torch.fx.node.map_arg
        for step in self.steps:
            arguments, options = map_arg(step.arguments, look), map_arg(step.options, look)
            with around(step), step.context() if step.context is not None else contextlib.nullcontext():
                environment[step.key] = self._told(step.call, f"operator '{step.name}'", *arguments, **options)
                del arguments, options
                for ended in step.ends:
                    environment.pop(ended, None)

    def _by_operators(self) -> Floats:
        out = np.zeros(len(self.position))
        if self.device.type == "cuda":
            return self._by_events(out)
        clock = self.clock

        @contextlib.contextmanager
        def timed(step: Step) -> Iterator[None]:
            begun = clock()
            yield
            if step.key in self.counts_with:
                out[self.counts_with[step.key]] += clock() - begun

        self._run(timed)
        return out

    def _by_events(self, out: Floats) -> Floats:
        """On a GPU: events before and after each call, read when all have passed."""
        marks: list[tuple[Any, Any, Any]] = []

        @contextlib.contextmanager
        def timed(step: Step) -> Iterator[None]:
            before, after = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            before.record()
            yield
            after.record()
            marks.append((step.key, before, after))

        self._run(timed)
        self._wait()
        for key, before, after in marks:
            if key in self.counts_with:
                out[self.counts_with[key]] += before.elapsed_time(after) * 1e-3
        return out

    def _allocated_on_gpu(self) -> Floats:
        out = np.zeros(len(self.position))
        cuda = self.torch.cuda

        @contextlib.contextmanager
        def counted(step: Step) -> Iterator[None]:
            cuda.reset_peak_memory_stats(self.device)
            before = cuda.memory_allocated(self.device)
            yield
            if step.name in self.position:
                out[self.position[step.name]] = cuda.max_memory_allocated(self.device) - before

        self._run(counted)
        return out

    def _allocated_on_cpu(self) -> Floats:
        """From the allocations that PyTorch's profiler sees while each operator runs."""
        profiler, out = self.torch.profiler, np.zeros(len(self.position))
        with (
            _without_stderr(),
            profiler.profile(activities=[profiler.ProfilerActivity.CPU], profile_memory=True) as seen,
        ):
            self._run(lambda step: profiler.record_function(f"placedsl:{step.name}"))
        events = seen.profiler.kineto_results.events()
        moves = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
        at = np.array([when for when, _ in moves], dtype=np.int64)
        size = np.array([size for _, size in moves], dtype=float)
        for event in events:
            position = self.position.get(event.name().removeprefix("placedsl:"))
            if position is not None and event.name().startswith("placedsl:"):
                first, last = np.searchsorted(at, (event.start_ns(), event.end_ns()))
                out[position] = max(0.0, float(np.cumsum(size[first:last]).max(initial=0.0)))
        return out


@contextlib.contextmanager
def _without_stderr() -> Iterator[None]:
    """Drop what is written to standard error: PyTorch's profiler tells from C++ that it begins and ends."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
