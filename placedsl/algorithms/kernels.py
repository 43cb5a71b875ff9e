"""Kernels: functions of plain Python that numba compiles, and keeps on disk where there is room.

Nothing of numba is imported before a kernel has to be compiled: that takes longer than many a small problem takes
without, which is why these are :func:`begun_plainly`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from placedsl.algorithms.compilation import kernels_run_compiled, numba_with_clock

_Result = TypeVar("_Result")

#: So many calls of kernels, by one another as well, are made in plain Python before they are compiled, of problems with
#: so many nodes (a kernel that calls no other takes time that grows with them): some tenths of a second, less than it
#: takes to import numba and to load what it has kept.  No call is begun after so many seconds.
MOST_PLAIN_CALLS, MOST_PLAIN_NODES, _MOST_PLAIN_SECONDS = 40_000, 200, 1.0


#: A kernel that is not compiled takes so many times as long, at the least.
SLOWER = 200


class _ImpatientError(Exception):
    """So many calls were not enough."""


class _Patience:
    """How many calls are left, and until when."""

    def __init__(self, calls: int, seconds: float) -> None:
        self.left, self.until = calls, time.monotonic() + seconds

    def spend(self, calls: int) -> None:
        """So many calls fewer."""
        self.left -= calls
        if self.left < 0 or time.monotonic() > self.until:
            raise _ImpatientError


#: None: kernels are compiled.
_PATIENCE: ContextVar[_Patience | None] = ContextVar("_PATIENCE", default=None)


class Kernel:
    """A function that is compiled when it is called, or when a kernel that calls it is compiled.

    What numba reads of it is ``_numba_type_``, where it is called by another one, and ``py_func`` and
    ``targetoptions``, where it becomes part of it.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func, self.targetoptions = function, options
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__

    def __call__(self, *arguments: Any) -> Any:
        """Its result, whichever way it is run."""
        patience = _PATIENCE.get()
        if patience is None:
            return self.compiled(*arguments)
        patience.spend(1)
        return self.py_func(*arguments)

    def __reduce__(self) -> str:
        return self.__qualname__

    @cached_property
    def compiled(self) -> Any:
        """The function as numba has it; where numba is told not to compile, the function itself."""
        if not kernels_run_compiled():
            return self.py_func
        made: Any = numba_with_clock()[0].njit(**self.targetoptions)(self.py_func)
        with suppress(RuntimeError, OSError):  # there is no folder to keep it in
            made._cache = _kept()(self.py_func)
            made._cache.counts_references = self.targetoptions["_nrt"]
        return made

    @property
    def _numba_type_(self) -> Any:
        return self.compiled._numba_type_


def kernel(*, allocates: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """A kernel, with the options of ``numba.njit``.

    ``allocates``: it makes arrays, or returns some.  Only then numba counts references to arrays: in loops over arrays
    that come in tuples, counting takes up to half of the time, and what a kernel is given lives as long as it runs.
    """
    own = {**options, "_nrt": allocates}  # or it would be that of the kernel that calls it
    return lambda function: Kernel(function, own)


def begun_plainly(work: Callable[[], _Result], nodes: int) -> _Result:
    """Do what calls kernels on so many nodes: where they are few, first in plain Python, and anew with compiled kernels
    where that takes more calls than :data:`MOST_PLAIN_CALLS`."""
    if nodes > MOST_PLAIN_NODES or "numba" in sys.modules or not kernels_run_compiled():
        return work()
    before = _PATIENCE.set(_Patience(MOST_PLAIN_CALLS, _MOST_PLAIN_SECONDS))
    try:
        return work()
    except _ImpatientError:
        pass
    finally:
        _PATIENCE.reset(before)
    return work()


def between_looks(steps: int) -> int:
    """How many steps a kernel may take until the clock is looked at, of so many where it is compiled."""
    plainly = _PATIENCE.get() is not None or not kernels_run_compiled()
    return max(1, steps // SLOWER) if plainly else steps


def spent_plainly(steps: int) -> bool:
    """Whether kernels run in plain Python; where they do, the next one takes so many steps, each as long as a call."""
    patience = _PATIENCE.get()
    if patience is not None:
        patience.spend(steps)
    return patience is not None or not kernels_run_compiled()


@lru_cache(maxsize=1)
def _kept() -> Any:
    """The class of what numba keeps on disk of a kernel."""
    from numba.core.caching import FunctionCache
    from numba.core.registry import cpu_target

    class Kept(FunctionCache):  # type: ignore[misc]
        """What cannot be written there, the next process compiles again."""

        counts_references = True

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            """What is kept for some types; what refers to modules that are gone, of an earlier version, is not."""
            try:
                return super().load_overload(sig, target_context)
            except (ImportError, AttributeError):
                self.flush()
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            """Keep what was compiled for some types; a full disk is no error."""
            returned = cpu_target.target_context.data_model_manager[data.signature.return_type]
            if returned.contains_nrt_meminfo() and not self.counts_references:
                raise TypeError(f"{self._name}, a kernel that does not say so, returns arrays")
            with suppress(OSError):
                super().save_overload(sig, data)

    return Kept
