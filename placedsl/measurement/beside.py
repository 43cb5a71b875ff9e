"""Processes that run a model all the while another one is measured, as the devices of one machine do: ``--beside N``.

Workers of one machine share its memory, caches and power, so an operator may take longer when all of them work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from placedsl.diagnostics import Diagnostic, InputError
from placedsl.graph.readers.sizes import Size
from placedsl.measurement import runners
from placedsl.measurement.runs import Request
from placedsl.system.installation import import_root

_READY = "ready"


@contextmanager
def others(count: int, request: Request) -> Iterator[None]:
    """So many processes run the model of a request until the context ends.  InputError where one does not begin."""
    sizes = {name: size.value for name, size in request.sizes.items()}
    asked = json.dumps([str(request.model), request.device, sizes, request.threads, request.interpreted,
                        request.training])  # fmt: skip
    path = os.pathsep.join(dict.fromkeys((import_root(), *filter(None, sys.path))))
    children = [
        subprocess.Popen(
            [sys.executable, "-m", __name__, asked], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONPATH": path},
        )
        for _ in range(count)
    ]  # fmt: skip
    try:
        for child in children:
            assert child.stdout is not None
            if child.stdout.readline().strip() != _READY:
                hint = "is there memory for so many copies of the model?"
                raise InputError([Diagnostic("a process beside the one that is measured does not run", None, hint)])
        yield
    finally:
        for child in children:
            child.kill()
            child.communicate()


def main(asked: str) -> None:
    """Run a model again and again, until standard input is closed."""
    model, device, sizes, threads, interpreted, training = json.loads(asked)
    given = {name: Size(value) for name, value in sizes.items()}
    ready = runners.prepare(Request(Path(model), device, given, threads, interpreted, training))
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    ready.run(1)
    sys.stdout.write(_READY + "\n")
    sys.stdout.flush()
    while True:
        ready.run(ready.most)


def _leave_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
