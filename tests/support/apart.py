"""Calls in processes of their own, which end together with a test run whatever they are at."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import TimeoutError as GivenUp
from multiprocessing import get_context
from multiprocessing.pool import Pool
from typing import Any

#: Seconds after which a call is given up.
GIVEN_UP = 300.0


class Apart:
    """A process for each name, started when it is first asked; a solver that does not return is killed with it."""

    def __init__(self) -> None:
        self._processes: dict[str, Pool] = {}

    def call(self, name: str, function: Callable[..., Any], *arguments: Any, seconds: float = GIVEN_UP) -> Any:
        """What the function returns there, or raises; multiprocessing's TimeoutError after so many seconds."""
        if name not in self._processes:
            self._processes[name] = get_context("spawn").Pool(1)
        try:
            return self._processes[name].apply_async(function, arguments).get(seconds)
        except GivenUp:
            self.end(name)
            raise

    def end(self, name: str) -> None:
        """Kill the process of this name."""
        self._processes.pop(name).terminate()

    def close(self) -> None:
        """Kill all of them."""
        for name in list(self._processes):
            self.end(name)
