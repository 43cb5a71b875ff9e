"""Devices ``sim:0``, ``sim:1`` … that compute on the CPU, for clients that move modules to accelerators.

A tensor of such a device wraps one of the CPU.  An operator over tensors of two devices raises RuntimeError, as it does
on accelerators; copies from device to device are counted in ``COPIES``.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "sim"
COPIES: Counter[tuple[str, str]] = Counter()
_TO_DEVICE = (torch.ops.aten._to_copy.default,)


class Simulated(torch.Tensor):
    """A tensor of a simulated device."""

    @staticmethod
    def __new__(cls, held: torch.Tensor, device: torch.device) -> Simulated:
        return torch.Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype,
            device=device, requires_grad=held.requires_grad,
        )  # fmt: skip

    def __init__(self, held: torch.Tensor, device: torch.device) -> None:
        self.held, self.on = held.detach(), device

    def __repr__(self) -> str:
        return f"Simulated({self.held!r}, {self.on})"

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(function, args, kwargs or {})


class Devices(TorchDispatchMode):
    """While it is entered, tensors can be made on and moved to simulated devices."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(function, args, kwargs or {})


def _run(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    flat, spec = tree_flatten((args, kwargs))
    own = {str(x.on) for x in flat if isinstance(x, Simulated)}
    asked = kwargs.get("device")
    if function is torch.ops.aten.copy_.default:
        target, source = args[0], args[1]
        ends = str(getattr(source, "on", "cpu")), str(getattr(target, "on", "cpu"))
        COPIES[ends] += ends[0] != ends[1]
        _held(target).copy_(_held(source))
        return target
    if len(own) > 1:
        raise RuntimeError(f"tensors of {' and '.join(sorted(own))} in {function}")
    others = [x for x in flat if isinstance(x, torch.Tensor) and not isinstance(x, Simulated) and x.dim() > 0]
    if own and others and function not in _TO_DEVICE:
        raise RuntimeError(f"tensors of {own.pop()} and of the CPU in {function}")
    given = [_held(x) for x in flat]
    inner, inside = tree_unflatten(given, spec)
    if asked is not None:
        inside = inside | {"device": torch.device("cpu")}
    out = function(*inner, **inside)
    device = torch.device(asked) if asked is not None else torch.device(next(iter(own))) if own else None
    if asked is not None and function in _TO_DEVICE:
        before = own.pop() if own else "cpu"
        COPIES[before, str(device)] += before != str(device)
    if device is None or device.type != NAME:
        return out
    if device.index is None:
        device = torch.device(NAME, 0)
    known = {id(_held(x)): x for x in flat if isinstance(x, Simulated)}
    return tree_map(lambda x: known.get(id(x)) or Simulated(x, device) if isinstance(x, torch.Tensor) else x, out)


def _held(x: Any) -> Any:
    return x.held if isinstance(x, Simulated) else x


def register() -> Devices:
    """Make the name of the devices known, once a process."""
    _setup_privateuseone_for_python_backend(NAME)
    return Devices()
