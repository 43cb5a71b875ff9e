"""What :mod:`isolated` and :mod:`worker` say to each other: length-prefixed pickles."""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import IO, Any

from placedsl.program.program import LinearProgram
from placedsl.solvers.interface import Budget

_LENGTH = struct.Struct("<Q")

#: From the parent, after the task: stop, and say what there is.
STOP = b"s"


@dataclass(frozen=True, eq=False)
class Task:
    """What the child is to do; ``sent`` is the parent's wall clock when it began."""

    name: str
    program: LinearProgram
    budget: Budget
    sent: float


def send(stream: IO[bytes], message: object) -> None:
    """Write one message, and flush."""
    body = pickle.dumps(message, protocol=5)
    stream.write(_LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one message; EOFError when the other side has gone."""
    head = _exactly(stream, _LENGTH.size)
    return pickle.loads(_exactly(stream, _LENGTH.unpack(head)[0]))


def _exactly(stream: IO[bytes], size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = stream.read(min(size, 1 << 24))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
