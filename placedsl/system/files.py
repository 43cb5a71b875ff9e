"""Files: read up to a size, and written whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TextIO

from placedsl import limits
from placedsl.diagnostics import UsageError
from placedsl.system.interruption import finishing

#: Bytes that are read at once where a file does not say how many it has.
_PIECE = 2**16


class TooLargeError(OSError):
    """A file with more bytes than a limit allows; ``limit`` is its name, ``size`` in bytes (None: not known)."""

    def __init__(self, path: Path, size: int | None, limit: str) -> None:
        largest = limits.count(limit)
        told = f"more than {largest:,} bytes" if size is None else f"{size:,} bytes, more than {largest:,}"
        super().__init__(None, f"it has {told}, which are not read")
        self.path, self.size, self.limit = path, size, limit

    def hint(self, text: str) -> str:
        """What to do about it, and how the limit is raised."""
        return limits.hint(text, self.limit, self.size)


def read_bytes(path: Path, limit: str) -> bytes:
    """The content of a file; :class:`TooLargeError` before more bytes than the limit allows are in memory."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) and limits.count("stream-bytes") < limits.count(limit):
            limit = "stream-bytes"
        most = limits.count(limit)
        if status.st_size > most:
            raise TooLargeError(path, status.st_size if stat.S_ISREG(status.st_mode) else None, limit)
        # A buffer as large as is asked for is taken before anything is read, so no more is asked for than there may be.
        pieces, left = [], most + 1
        while left and (piece := file.read(min(left, max(status.st_size, _PIECE) + 1))):
            pieces.append(piece)
            left -= len(piece)
        if not left:
            raise TooLargeError(path, None, limit)
        return b"".join(pieces)


def write(target: Path, content: str | bytes) -> None:
    """Write a file, texts in UTF-8; UsageError where it cannot be written.

    A regular file is written beside its place and renamed: a reader sees the old content or the new, never a part.
    Links are followed.  What is no regular file (a pipe, ``/dev/stdout``) is written to as it is.
    """
    try:
        data = content.encode("utf-8") if isinstance(content, str) else content
        with finishing():
            _write(target, data)
    except OSError as problem:
        raise UsageError(f"'{target}' cannot be written: {(problem.strerror or 'failed').lower()}") from None
    except UnicodeEncodeError as problem:
        raise UsageError(
            f"'{target}' cannot be written: {problem.object[problem.start : problem.end]!a} is no character"
        ) from None


def remove(target: Path) -> None:
    """Remove a regular file, where there is one; UsageError where neither it nor what is in it can be removed.

    Links are followed: what a later :func:`write` would replace is what is removed.
    """
    file = Path(os.path.realpath(target))
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return
        try:
            file.unlink()
        except PermissionError:
            file.write_bytes(b"")  # the folder cannot be written to, the file may be
    except FileNotFoundError:
        return
    except OSError as problem:
        raise UsageError(f"'{target}' cannot be removed: {(problem.strerror or 'failed').lower()}") from None


def _write(target: Path, data: bytes) -> None:
    try:
        status = target.stat()
    except FileNotFoundError:
        _replace(Path(os.path.realpath(target)), data, None)
        return
    stream = _own_stream(status)
    if stream is not None:
        stream.flush()
        _write_all(stream.fileno(), data)
    elif stat.S_ISREG(status.st_mode):
        _replace(Path(os.path.realpath(target)), data, status)
    else:
        with target.open("wb", buffering=0) as file:
            _write_all(file.fileno(), data)


def _own_stream(status: os.stat_result) -> TextIO | None:
    """Standard output or error where they go to this file, so that neither writes over what the other wrote."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if os.path.samestat(os.fstat(stream.fileno()), status):
                return stream
        except (OSError, ValueError, AttributeError):  # replaced by one without a file, or closed
            continue
    return None


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _replace(target: Path, data: bytes, before: os.stat_result | None) -> None:
    """Rename a new file over the old one, with the permissions of that."""
    import tempfile  # only who writes needs it

    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:80]}.", suffix=".partial", dir=target.parent)
    except PermissionError:
        if before is None:
            raise
        target.write_bytes(data)  # the folder cannot be written to, the file may be
        return
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        partial.chmod(stat.S_IMODE(before.st_mode) if before is not None else 0o666 & ~_mask())
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _mask() -> int:
    """The permissions that new files are not given."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
