"""How a command begins and ends: signals, standard streams, messages for what fails, exit codes.

Nothing is imported here that takes time: a signal is answered from the first moments on.
"""

from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import sys

from placedsl.system import interruption

TYPE_CHECKING = False
if TYPE_CHECKING:
    from placedsl.diagnostics import Diagnostic

_EXIT_FAULT = 70
_EXIT_USAGE = 2
#: As shells tell of programs that a closed pipe ends.
_EXIT_UNREAD = 141
#: Bytes of address space below which nothing is tried.
_ADDRESS_SPACE = 10**9
#: Errors of the machine, not of placedsl: the disk is full, a stream is closed, memory or processes are used up.
_NO_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF, errno.EFBIG)
_NO_ROOM = (errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE)
#: What libraries say where memory cannot be had, in exceptions of other types.
_NO_MEMORY_TEXTS = ("cannot allocate memory", "failed to map segment", "can't start new thread", "bad_alloc")


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code; every expected failure is reported as a message."""
    stdout = sys.stdout
    try:
        import click

        from placedsl.cli.commands import cli
        from placedsl.diagnostics import InputError, PlacedslError
    except Exception as problem:  # noqa: BLE001 - memory that is short shows in many ways
        return _failed(problem)
    try:
        return int(cli.main(args=arguments, prog_name="placedsl", standalone_mode=False) or 0)
    except (click.exceptions.Abort, interruption.Stopped, KeyboardInterrupt):
        _tell("stopped")
        return interruption.EXIT_NOTHING
    except click.ClickException as problem:
        problem.show()
        return _EXIT_USAGE
    except InputError as problem:
        _show(problem.diagnostics)
        return problem.exit_code
    except PlacedslError as problem:
        _tell(f"error: {problem}")
        return problem.exit_code
    except BrokenPipeError:
        return _EXIT_UNREAD
    except SystemExit as ended:
        # Click ends so when a pipe closes, and wraps what is left of it; the language server when its client says so.
        return int(ended.code or 0) if sys.stdout is stdout else _EXIT_UNREAD
    except Exception as problem:  # noqa: BLE001 - the last line of defence: our own fault, told without a traceback
        return _failed(problem)


def _tell(message: str) -> None:
    """One message on stderr."""
    try:
        sys.stderr.write(message + "\n")
        sys.stderr.flush()
    except MemoryError:
        os.write(2, b"error: the memory of this machine was not enough\n")


def _show(diagnostics: tuple[Diagnostic, ...]) -> None:
    _tell("\n\n".join(d.render() for d in diagnostics))
    if len(diagnostics) > 1:
        _tell(f"\n{len(diagnostics)} errors")


def _failed(problem: Exception) -> int:
    """Say why a command failed that has raised no error of placedsl's own; the exit code."""
    if interruption.pending():
        _tell("stopped")
        return interruption.EXIT_NOTHING
    number = problem.errno if isinstance(problem, OSError) else None
    if isinstance(problem, MemoryError) or number in _NO_ROOM or _names_memory(problem):
        _tell("error: the memory of this machine was not enough; contract the graph, or ask for fewer devices")
        return interruption.EXIT_NOTHING
    if isinstance(problem, OSError) and number in _NO_OUTPUT:
        _tell(_unwritten(problem))
        sys.stdout = io.StringIO()  # what is left of the output cannot be written either
        return _EXIT_USAGE
    _fault(problem)
    return _EXIT_FAULT


def _names_memory(problem: BaseException | None) -> bool:
    """Whether a library reports, in an exception of another type or what has caused it, that memory is short."""
    while problem is not None:
        if isinstance(problem, MemoryError) or any(text in str(problem).lower() for text in _NO_MEMORY_TEXTS):
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def _unwritten(problem: OSError) -> str:
    return f"error: the output could not be written: {(problem.strerror or 'failed').lower()}"


def _fault(problem: Exception) -> None:
    import traceback
    from pathlib import Path

    where = traceback.extract_tb(problem.__traceback__)[-1]
    place = f"{Path(where.filename).name}:{where.lineno}"
    _tell(
        f"error: a fault of placedsl itself: {type(problem).__name__}: {problem} ({place}). "
        "Please report it with the spec."
    )


class _Lenient(io.FileIO):
    """Standard error: a message that cannot be written changes nothing about how the command ends."""

    def write(self, data: object, /) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError:
            return len(data)  # type: ignore[arg-type]


def _open_streams() -> None:
    """Streams that are open, and take every character.

    A stream that is closed (``>&-``) would give its number to the next file that is opened.  Where stdout was closed,
    writing to it fails, as on a full disk.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest number that is free, which is this one
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0)), encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w")), encoding="utf-8")
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    known = sys.stderr.encoding if sys.stderr is not None else "utf-8"
    paper = io.BufferedWriter(_Lenient(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(paper, encoding=known, errors="backslashreplace", line_buffering=True)


def _too_narrow() -> int:
    """The exit code where the address space is too small to work in, else 0: numerical libraries end the process, or
    wait for ever, when they cannot have their buffers and threads."""
    try:
        import resource
    except ModuleNotFoundError:  # not on Windows
        return 0
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= _ADDRESS_SPACE:
        return 0
    _tell(
        f"error: the memory of this process is limited to {limit / 1e6:.0f} MB (ulimit -v); "
        f"placedsl needs {_ADDRESS_SPACE / 1e6:.0f} MB"
    )
    return interruption.EXIT_NOTHING


def run() -> None:
    """The entry point."""
    interruption.install()
    _open_streams()
    # Most objects of a run live to its end; looking for garbage among them takes a tenth of a short one, and taking
    # them apart one by one at the end a quarter.
    gc.set_threshold(200_000, 20, 20)
    # Nothing here multiplies matrices that are worth threads; those of OpenBLAS would wait, busily, for nothing.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code = _too_narrow() or main()
    interruption.ignore()
    atexit._run_exitfuncs()
    try:
        if not sys.stdout.closed:  # the language server closes it itself
            sys.stdout.flush()
    except BrokenPipeError:  # who reads has seen enough
        os._exit(code)
    except OSError as problem:
        _tell(_unwritten(problem))
        code = code or _EXIT_USAGE
    sys.stderr.flush()
    os._exit(code)
