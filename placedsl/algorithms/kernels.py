"""Kernels: functions that numba compiles, and keeps on disk where there is room."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core.caching import FunctionCache


class _Kept(FunctionCache):  # type: ignore[misc]
    """What is compiled of one kernel, on disk.  What cannot be written there, the next process compiles again."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept for some types; what refers to modules that are gone, of an earlier version, is not."""
        try:
            return super().load_overload(sig, target_context)
        except (ImportError, AttributeError):
            self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for some types; a full disk is no error."""
        with suppress(OSError):
            super().save_overload(sig, data)


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A kernel that is compiled when it is first called, with the options of ``numba.njit``."""

    def made(function: Callable[..., Any]) -> Any:
        compiled: Any = numba.njit(**options)(function)
        if compiled is not function:  # where numba is told not to compile, it gives the function back
            with suppress(RuntimeError, OSError):  # there is no folder to keep it in
                compiled._cache = _Kept(function)
        return compiled

    return made
