"""Compiled functions where nothing can be kept on disk."""

from __future__ import annotations

import errno

import numba
import pytest
from numba.core.caching import FunctionCache

from placedsl.algorithms.kernels import kernel

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def twice(number: int) -> int:
    return 2 * number


def test_a_full_disk_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def save(*_: object) -> None:
        asked.append(True)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FunctionCache, "save_overload", save)
    monkeypatch.setattr(FunctionCache, "load_overload", lambda *_: None)
    made = kernel()(twice)
    assert made(4) == 8
    assert asked
    assert made.nopython_signatures


def test_a_function_whose_code_can_be_kept_nowhere() -> None:
    names: dict[str, object] = {}
    exec("def thrice(number): return 3 * number", names)
    made = kernel()(names["thrice"])  # type: ignore[arg-type]
    assert made(4) == 12
    assert made.nopython_signatures
