"""Compiled functions where nothing can be kept on disk, or where something else is."""

from __future__ import annotations

import errno
import pickle
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core.caching import FunctionCache

from placedsl.algorithms import kernels
from placedsl.algorithms.kernels import kernel
from placedsl.arrays import Floats

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
    assert made.compiled.nopython_signatures


def second(_: Floats, more: Floats) -> Floats:
    return more


def added(values: Floats, more: Floats) -> float:
    total = 0.0
    for i in range(len(values)):
        total += values[i] + more[i]
    return total


def test_arrays_that_a_kernel_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """References to them have to be counted."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    values = np.arange(4.0)
    with pytest.raises(TypeError, match=r"second.*a kernel that does not say so, returns arrays"):
        kernel()(second)(values, values[:2])
    assert kernel(allocates=True)(second)(values, values[:2]).tolist() == [0.0, 1.0]


def test_a_kernel_that_allocates_nothing_keeps_no_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    values, made = np.arange(4.0), kernel()(added)
    before = sys.getrefcount(values)
    for _ in range(10):
        assert made(values, values[:]) == 12.0
    assert sys.getrefcount(values) == before


def test_a_function_whose_code_can_be_kept_nowhere() -> None:
    names: dict[str, object] = {}
    exec("def thrice(number): return 3 * number", names)
    made = kernel()(names["thrice"])  # type: ignore[arg-type]
    assert made(4) == 12
    assert made.compiled.nopython_signatures


def test_what_an_earlier_version_kept_of_modules_that_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index names the types of arguments, and those the modules that they are from."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert kernel()(twice)(4) == 8
    (index,) = tmp_path.rglob("*.nbi")
    version = pickle.dumps(pickle.loads(index.read_bytes()))  # what comes first in it
    index.write_bytes(version + pickle.dumps(({"twice": Fraction(1, 2)}, {})).replace(b"fractions", b"fractiens"))
    made = kernel()(twice)
    assert made(4) == 8
    assert made.compiled.stats.cache_misses
    again = kernel()(twice)
    assert again(4) == 8
    assert again.compiled.stats.cache_hits


def test_a_kernel_with_many_steps_is_not_run_plainly_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk over ideals calls no other kernel: it says how many steps it takes, which count as calls."""
    monkeypatch.setattr(kernels, "sys", SimpleNamespace(modules={}))
    monkeypatch.setattr(kernels, "kernels_run_compiled", lambda: True)
    asked: list[bool] = []

    def work() -> int:
        for _ in range(100):
            asked.append(kernels.spent_plainly(kernels.MOST_PLAIN_CALLS // 5))
        return len(asked)

    assert kernels.begun_plainly(work, 10) == 5 + 100
    assert asked == [True] * 5 + [False] * 100
    assert kernels.begun_plainly(lambda: kernels.spent_plainly(7), 10)


def test_what_is_not_compiled_looks_at_the_clock_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "sys", SimpleNamespace(modules={}))
    monkeypatch.setattr(kernels, "kernels_run_compiled", lambda: True)
    steps = 1000 * kernels.SLOWER
    assert kernels.between_looks(steps) == steps
    assert kernels.begun_plainly(lambda: kernels.between_looks(steps), 10) == 1000
    monkeypatch.setattr(kernels, "kernels_run_compiled", lambda: False)
    assert kernels.between_looks(steps) == 1000
    assert kernels.between_looks(3) == 1


def test_plain_runs_end_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "sys", SimpleNamespace(modules={}))
    monkeypatch.setattr(kernels, "kernels_run_compiled", lambda: True)
    now = [0.0]
    monkeypatch.setattr(kernels, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def work() -> float:
        plainly = kernels.spent_plainly(1)
        now[0] += 100.0
        return -1.0 if plainly and kernels.spent_plainly(1) else now[0]

    assert kernels.begun_plainly(work, 10) == 200.0
