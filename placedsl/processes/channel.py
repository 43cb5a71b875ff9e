"""Messages between a process and its child: pickles, each preceded by its length."""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import IO, Any

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 24


@dataclass(frozen=True)
class Failure:
    """The last message of a child whose work raised an exception: its type and text."""

    message: str


@dataclass(frozen=True)
class Gone:
    """Delivered in the parent after the last message of a child: its end of the pipe is closed."""


def send(stream: IO[bytes], message: object) -> None:
    """Write one message, and flush."""
    body = pickle.dumps(message, protocol=5)
    stream.write(_LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one message; EOFError when the other end is closed."""
    head = _exactly(stream, _LENGTH.size)
    return pickle.loads(_exactly(stream, _LENGTH.unpack(head)[0]))


def _exactly(stream: IO[bytes], size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = stream.read(min(size, _CHUNK))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
