"""Calls in processes of their own, which end together with a test run whatever they are at."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

#: Seconds after which a call is given up.
GIVEN_UP = 300.0


class NotReturnedError(Exception):
    """The process ended during the call, or the call took too long."""


class Apart:
    """A process for each name, started when it is first asked; a solver that does not return is killed with it."""

    def __init__(self) -> None:
        self._processes: dict[str, tuple[BaseProcess, Connection]] = {}

    def call(self, name: str, function: Callable[..., Any], *arguments: Any, seconds: float = GIVEN_UP) -> Any:
        """What the function returns there, or raises; NotReturnedError if it does neither within so many seconds."""
        if name not in self._processes:
            self._processes[name] = _started()
        process, channel = self._processes[name]
        channel.send((function, arguments))
        ready = wait([channel, process.sentinel], seconds)
        if channel not in ready:
            self.end(name)
            ended = f"ended with {process.exitcode}" if ready else f"was killed after {seconds:g} s"
            raise NotReturnedError(f"the process for {name} {ended}")
        returned, value = channel.recv()
        if not returned:
            raise value
        return value

    def end(self, name: str) -> None:
        """Kill the process of this name."""
        process, channel = self._processes.pop(name)
        process.kill()
        process.join()
        channel.close()

    def close(self) -> None:
        """Kill all of them."""
        for name in list(self._processes):
            self.end(name)


def _started() -> tuple[BaseProcess, Connection]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _serve(channel: Connection) -> None:
    """Answer calls until the other side is gone."""
    while True:
        try:
            function, arguments = channel.recv()
        except EOFError:
            return
        try:
            answer = True, function(*arguments)
        except Exception as error:  # noqa: BLE001 - it is raised on the other side
            answer = False, error
        channel.send(answer)
