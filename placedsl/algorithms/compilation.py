"""Seconds that kernels take to compile: once, on a machine where they have never run.

A clock that decides what else to start leaves them out: further processes would compile the same kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


def kernels_run_compiled() -> bool:
    """Whether kernels are compiled in this process; on the first run of an installation they may be plain Python."""
    from numba import config

    return not config.DISABLE_JIT


@contextmanager
def compilation_seconds() -> Iterator[Callable[[], float]]:
    """Yields a function that returns the seconds of compilation in this process since the ``with`` block began."""
    # Not for those who only ask what an algorithm supports.
    from numba.core import event

    listener = event.TimingListener()
    with event.install_listener("numba:compile", listener):
        yield lambda: listener.duration if listener.done else 0.0
