"""Layers and modules of a PyTorch model, timed one by one as the model runs them, forward and backward.

A *unit* is a numbered module (``layers.3``) or a module with weights outside of these.  Forward, a pass is the model's
own with a clock before and behind each unit.  For training each unit is run by itself with the inputs that the model
gives it: forward with the graph of its gradients, then backward.  What the model does between units is in no unit; the
share of the units in the time of the whole model tells how much that is.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placedsl.arrays import Floats
from placedsl.diagnostics import Diagnostic, InputError
from placedsl.measurement.interpreter import exported, shares
from placedsl.measurement.python_models import Called
from placedsl.measurement.runs import Pass, Request, Runnable
from placedsl.measurement.training_graph import BACKWARD, MeasuredUnit, training_graph


@dataclass(frozen=True)
class Unit:
    """A unit, and what it was given when the model ran: ``arguments`` and ``options``.

    ``sources``  positions of the units that made what it is given as it is (empty: all came from between units)
    ``made``     bytes that it returns
    """

    path: str
    module: Any
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    sources: tuple[int, ...]
    made: int


def paths_of(module: Any) -> list[str]:
    """The units of a model by their paths: up to the first number, else modules without children that have weights."""
    out: dict[str, None] = {}
    for path, own in module.named_modules():
        parts = path.split(".")
        number = next((k for k, part in enumerate(parts) if part.isdecimal()), None)
        if number is not None:
            if any(True for _ in module.get_submodule(".".join(parts[: number + 1])).parameters()):
                out[".".join(parts[: number + 1])] = None
        elif path and not any(True for _ in own.children()) and any(True for _ in own.parameters()):
            out[path] = None
    return list(out)


def prepare(request: Request, called: Called, paths: Sequence[str], content: str) -> Runnable:
    """The units of a model, ready to be run; ``content``: what tells the model from others."""
    import torch

    if request.threads is not None:
        torch.set_num_threads(request.threads)
    device = torch.device(request.device)
    called = Called(called.module.to(device), _moved(called.arguments, device), _moved(called.options, device))
    units = _units(called, paths)
    running = _Running(called, units, device, request)
    settings = {"runtime": f"torch {torch.__version__}", "device": request.device, "units": "layers and modules"}
    if device.type == "cuda":
        settings["device"] = torch.cuda.get_device_name(device)
    else:
        settings["threads"] = str(torch.get_num_threads())
    if request.cpu_time:
        settings["clock"] = "of the processor"
    if request.interpreted:
        settings["calls"] = "by an interpreter"
    given = [one for one in _tensors((called.arguments, called.options)) if one.dim() <= 5]
    settings["inputs"] = ", ".join("x".join(map(str, one.shape)) or "1" for one in given[:4])
    names = [unit.path for unit in units]
    if not request.training:
        return Runnable(names, settings, _digest(content), [], running.passes, 1, running.allocated)
    settings["passes"] = "forward and backward"
    described = [running.described(unit) for unit in units]
    return Runnable(
        [*names, *(name + BACKWARD for name in names)], settings, _digest(content), [], running.passes, 1,
        running.allocated, lambda times, name: training_graph(described, times, name),
    )  # fmt: skip


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def _moved(value: Any, device: Any) -> Any:
    import torch

    return torch.utils._pytree.tree_map(lambda one: one.to(device) if isinstance(one, torch.Tensor) else one, value)


def _tensors(value: Any) -> list[Any]:
    """The tensors within a value of lists, tuples, dictionaries and registered classes."""
    import torch

    leaves = torch.utils._pytree.tree_leaves(value)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _units(called: Called, paths: Sequence[str]) -> list[Unit]:
    """The units in the order in which the model runs them; InputError where one is run twice, or none."""
    import torch

    ran: list[tuple[str, Any, tuple[Any, ...], Mapping[str, Any], Any]] = []

    def hook(path: str) -> Any:
        def note(module: Any, arguments: Any, options: Any, made: Any) -> None:
            ran.append((path, module, arguments, options, made))

        return note

    with contextlib.ExitStack() as hooks, torch.no_grad():
        for path in paths:
            module = called.module.get_submodule(path)
            hooks.callback(module.register_forward_hook(hook(path), with_kwargs=True).remove)
        _run(called)
    names = [path for path, *_ in ran]
    twice = next((path for path in names if names.count(path) > 1), None)
    if twice is not None:
        hint = "its times are those of one call: profile the exported program, operator by operator"
        raise InputError([Diagnostic(f"module '{twice}' is run {names.count(twice)} times in a pass", None, hint)])
    if not ran:
        hint = "is it made of torch.nn modules?"
        raise InputError([Diagnostic("this model runs no module with weights", None, hint)])
    maker: dict[int, int] = {}
    out = []
    for k, (path, module, arguments, options, made) in enumerate(ran):
        given = [maker[id(one)] for one in _tensors((arguments, dict(options))) if id(one) in maker]
        returned = _tensors(made)
        size = sum(one.numel() * one.element_size() for one in returned)
        out.append(Unit(path, module, arguments, options, tuple(dict.fromkeys(given)), size))
        maker |= {id(one): k for one in returned}  # ran keeps them, so that no other has their id
    return out


def _run(called: Called) -> Any:
    """Run the whole model; InputError with what is said where it fails."""
    try:
        return called.module(*called.arguments, **_fresh(called.options))
    except Exception as problem:  # noqa: BLE001 - whatever PyTorch raises is about the model
        told = next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
        raise InputError([Diagnostic(f"the model fails: {told}", None, "are its inputs right?")]) from None


def _fresh(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with a copy of keys and values that the model writes to."""
    import torch

    return {
        name: value if value is None or isinstance(value, torch.Tensor | bool | int | float) else copy.deepcopy(value)
        for name, value in options.items()
    }


class _Running:
    """The units of a model, and the model."""

    def __init__(self, called: Called, units: Sequence[Unit], device: Any, request: Request) -> None:
        import torch

        self.torch, self.called, self.units, self.device = torch, called, units, device
        self.training, self.clock = request.training, request.clock
        self.interpreter, self.calls = None, np.zeros(len(units))
        if request.interpreted:
            self.interpreter = exported(called)
            self.calls = shares(self.interpreter, [unit.path for unit in units])

    def passes(self, count: int) -> list[Pass]:
        """So many passes."""
        if self.training:
            return [self._trained() for _ in range(count)]
        with self.torch.no_grad():
            return [self._forward() for _ in range(count)]

    def allocated(self) -> Floats:
        """Not known of whole modules."""
        return np.full(len(self.units) * (2 if self.training else 1), np.nan)

    def described(self, unit: Unit) -> MeasuredUnit:
        """What a graph for training has of a unit."""
        parameters = {id(one): one for one in unit.module.parameters()}
        weights = sum(one.numel() * one.element_size() for one in parameters.values())
        saved: dict[int, int] = {}

        def keep(one: Any) -> Any:
            if id(one) not in parameters and one.untyped_storage().data_ptr() not in held:
                saved[one.untyped_storage().data_ptr()] = one.untyped_storage().nbytes()
            return one

        held = {one.untyped_storage().data_ptr() for one in parameters.values()}
        arguments, options = self._inputs(unit)
        with self.torch.autograd.graph.saved_tensors_hooks(keep, lambda one: one):
            made = unit.module(*arguments, **options)
        assert made is not None
        return MeasuredUnit(
            unit.path, type(unit.module).__name__, float(weights), float(unit.made), float(sum(saved.values())),
            unit.sources,
        )  # fmt: skip

    def _now(self) -> float:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)
        return self.clock()

    def _forward(self) -> Pass:
        seconds, begun = np.zeros(len(self.units)), [0.0]

        @contextlib.contextmanager
        def timed(k: int) -> Iterator[None]:
            def before(*_: Any) -> None:
                begun[0] = self._now()

            def after(*_: Any) -> None:
                seconds[k] = self._now() - begun[0]

            first = self.units[k].module.register_forward_pre_hook(before)
            last = self.units[k].module.register_forward_hook(after)
            yield
            first.remove()
            last.remove()

        options = _fresh(self.called.options)
        with contextlib.ExitStack() as hooks:
            for k in range(len(self.units)):
                hooks.enter_context(timed(k))
            start = self._now()
            self.called.module(*self.called.arguments, **options)
            whole = self._now() - start
        return Pass(seconds, whole)

    def _inputs(self, unit: Unit) -> tuple[Any, Any]:
        """What the unit is given, with gradients wanted of numbers that are no indices."""

        def own(one: Any) -> Any:
            if not isinstance(one, self.torch.Tensor):
                return one
            return one.detach().requires_grad_(one.is_floating_point())

        return self.torch.utils._pytree.tree_map(own, (unit.arguments, dict(unit.options)))  # type: ignore[no-any-return]

    def _trained(self) -> Pass:
        seconds = np.zeros(2 * len(self.units))
        for k, unit in enumerate(self.units):
            arguments, options = self._inputs(unit)
            begun = self._now()
            made = unit.module(*arguments, **options)
            seconds[k] = self._now() - begun
            wanted = [one for one in _tensors(made) if one.requires_grad]
            gradients = [self.torch.ones_like(one) for one in wanted]
            begun = self._now()
            if wanted:
                self.torch.autograd.backward(wanted, gradients)
            seconds[len(self.units) + k] = self._now() - begun
        begun = self._now()
        made = [one for one in _tensors(_values(_run(self.called))) if one.requires_grad]
        forward = self._now() - begun
        self.torch.autograd.backward(made, [self.torch.ones_like(one) for one in made])
        whole = self._now() - begun
        if self.interpreter is not None:
            begun = self._now()
            self.interpreter(*self.called.arguments, **_fresh(self.called.options))
            added = max(0.0, self._now() - begun - forward)
            seconds[: len(self.units)] += added * self.calls
            whole += added
        return Pass(seconds, whole)


def _values(made: Any) -> Any:
    """What a model returns; outputs of transformers are dictionaries."""
    return dict(made) if isinstance(made, Mapping) else made
