"""Models that a Python file makes: ``model.py:NAME``, a function that returns a module of PyTorch and its arguments."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from placedsl.diagnostics import Diagnostic, InputError, nearest
from placedsl.system import paths

_NAMED = re.compile(r"(?P<file>.*\.py):(?P<name>[^\W\d]\w*)$")
_EXPECTED = "return module, arguments: a torch.nn.Module, and a tensor, a tuple of arguments or a dictionary of them"


@dataclass(frozen=True)
class Called:
    """A module of PyTorch and the arguments that it is run with."""

    module: Any
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


def named(model: Path) -> tuple[Path, str] | None:
    """The file and the name of ``model.py:NAME``; None: the model is a file of its own."""
    match = _NAMED.match(str(model))
    return (Path(match["file"]), match["name"]) if match else None


def made(file: Path, name: str) -> Called:
    """What the function returns; InputError where it does not, with the place in the file."""
    import torch

    if not paths.is_file(file):
        raise _wrong(f"there is no file '{file}'", "as in model.py:NAME")
    with _importable(file.parent):
        scope = _module(file)
        function = getattr(scope, name, None)
        if not callable(function):
            known = [own for own, value in vars(scope).items() if callable(value) and not own.startswith("_")]
            raise _wrong(f"'{file}' has no function '{name}'", nearest(name, known))
        try:
            returned = function()
        except Exception as problem:  # noqa: BLE001 - the file is the user's
            raise _wrong(f"{name}() of '{file}' fails{_where(problem, file)}: {_told(problem)}") from None
    if not (isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[0], torch.nn.Module)):
        raise _wrong(f"{name}() of '{file}' returns {type(returned).__name__}", _EXPECTED)
    module, given = returned
    if isinstance(given, dict):
        return Called(module, (), given)
    return Called(module, given if isinstance(given, tuple) else (given,))


def export(model: Path, to: Path) -> None:
    """Write the program that ``torch.export`` makes of the model; InputError where it makes none."""
    import torch

    found = named(model)
    assert found is not None, model
    called = made(*found)
    try:
        program = torch.export.export(called.module.eval(), called.arguments, called.options)
    except Exception as problem:  # noqa: BLE001 - whatever PyTorch raises is about the model
        hint = "--training measures its layers as they are, without an export"
        raise _wrong(f"torch.export does not take {model.name}: {_told(problem)}", hint) from None
    torch.export.save(program, to)


def _module(file: Path) -> Any:
    described = spec_from_file_location(file.stem, file)
    assert described is not None
    assert described.loader is not None
    scope = module_from_spec(described)
    sys.modules[file.stem] = scope  # dataclasses look their module up
    try:
        described.loader.exec_module(scope)
    except Exception as problem:  # noqa: BLE001 - the file is the user's
        raise _wrong(f"'{file}' fails{_where(problem, file)}: {_told(problem)}") from None
    return scope


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """What stands beside the file can be imported by it."""
    sys.path.insert(0, str(folder.absolute()))
    try:
        yield
    finally:
        sys.path.remove(str(folder.absolute()))


def _where(problem: BaseException, file: Path) -> str:
    """The last line of the file that was running."""
    line, at = 0, problem.__traceback__
    own = str(file.absolute())
    while at is not None:
        if at.tb_frame.f_code.co_filename == own:
            line = at.tb_lineno
        at = at.tb_next
    return f" in line {line}" if line else ""


def _told(problem: BaseException) -> str:
    first = next((line.strip() for line in str(problem).splitlines() if line.strip()), "")
    return f"{type(problem).__name__}: {first}" if first else type(problem).__name__


def _wrong(message: str, hint: str = "") -> InputError:
    return InputError([Diagnostic(message, None, hint)])
