"""Whether kernels are compiled, and the seconds that this takes: once, on a machine where they have never run.

A clock that decides what else to start leaves them out: further processes would compile the same kernels.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any


def kernels_run_compiled() -> bool:
    """Whether kernels are compiled in this process; on the first run of an installation they may be plain Python."""
    if "numba" in sys.modules:
        return not numba_with_clock()[0].config.DISABLE_JIT
    return os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


@contextmanager
def compilation_seconds() -> Iterator[Callable[[], float]]:
    """Yields a function that returns the seconds of compilation in this process since the ``with`` block began."""
    before = _seconds()
    yield lambda: _seconds() - before


def _seconds() -> float:
    """Those that numba took to be imported and to compile, or to load what it has kept."""
    if "numba" not in sys.modules:
        return 0.0
    _, clock, imported = numba_with_clock()
    return imported + (float(clock.duration) if clock.done else 0.0)


@lru_cache(maxsize=1)
def numba_with_clock() -> tuple[Any, Any, float]:
    """numba, imported by the first call, what adds up the seconds of compilation, and those of the import."""
    before = time.perf_counter()
    import numba
    from numba.core import event

    clock = event.TimingListener()
    event.register("numba:compile", clock)
    return numba, clock, time.perf_counter() - before
