"""A Dask cluster behind an address: how it is reached, and what its workers are asked before they are used.

Errors are :class:`UsageError`, each a sentence that says what to do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from placedsl.diagnostics import UsageError
from placedsl.system.installation import package_version

#: Seconds within which a scheduler answers, and has a worker.
PATIENCE = 10.0


def connected(address: str) -> Any:
    """A client of the cluster, whose workers all have this version of placedsl.

    UsageError when ``distributed`` is not installed, nothing answers, there is no worker, or one has another placedsl.
    """
    if find_spec("distributed") is None:
        raise UsageError("--dask needs the package 'distributed': pip install 'placedsl[dask]'")
    from distributed import Client

    patience = PATIENCE
    try:
        with quiet():
            client: Any = Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError, TypeError) as problem:
        reason = str(problem).partition("\n")[0] or type(problem).__name__
        raise UsageError(f"no Dask scheduler answers at '{address}' within {patience:g} s: {reason}") from None
    try:
        _refuse_other_versions(client, address, patience)
    except BaseException:
        client.close()
        raise
    return client


def _refuse_other_versions(client: Any, address: str, patience: float) -> None:
    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError:
        raise UsageError(f"the Dask scheduler at '{address}' has no workers") from None
    try:
        found: dict[str, str] = client.run(package_version)
    except Exception as problem:  # noqa: BLE001 - whatever the other side raised
        raise UsageError(f"the workers at '{address}' cannot import placedsl: {problem}") from None
    for worker, version in found.items():
        if (different := other_version(worker, version)) is not None:
            raise UsageError(different)


def other_version(worker: str, version: str) -> str | None:
    """In words, that a worker has another version of placedsl; None where it has this one."""
    own = package_version()
    if version == own:
        return None
    return f"the worker {worker} has placedsl {version}, here it is {own}: both must be the same"


def held(data: Any) -> Any:
    """The data of a task: submitted once, it serves all tasks that read it.

    It is a task, not scattered data: what a lost worker held is then made again.
    """
    return data


def wanted(key: str) -> Callable[[], bool]:
    """Whether the cluster still waits for a task, asked of the worker that this thread belongs to."""
    from distributed import get_worker

    tasks = get_worker().state.tasks

    def known() -> bool:
        task = tasks.get(key)
        return task is not None and task.state == "executing"

    return known


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the log lines of attempts to connect: what came of them is told in one sentence."""
    import logging

    # The latter has a level of its own.
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
