"""The command ``placedsl``: run in this process, or started in one of its own."""

from __future__ import annotations

import contextlib
import io
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from placedsl.cli.main import main
from support.paths import child_environment


def run(*arguments: object, folder: Path | None = None, given: bytes = b"") -> subprocess.CompletedProcess[str]:
    """Run it here, in a folder and with a text on stdin; exit code, stdout and stderr.

    A process of its own takes a second to import what this one has, and longer where kernels are compiled.
    """
    command = [str(argument) for argument in arguments]
    stdin, stdout, stderr = (io.TextIOWrapper(io.BytesIO(text), "utf-8", newline="") for text in (given, b"", b""))
    with (
        contextlib.chdir(folder or Path.cwd()),
        mock.patch("sys.stdin", stdin),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        code = main(command)
    out, err = (_held(stream) for stream in (stdout, stderr))
    return subprocess.CompletedProcess(command, code, out, err)


def _held(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def started(*arguments: object, folder: Path | None = None, **further: Any) -> subprocess.Popen[str]:
    """Start it in a process of its own, with pipes for stdout and stderr.

    It can be interrupted even if these tests run where Ctrl-C is ignored: behind ``nohup``, or beside a shell's script.
    """
    command = [sys.executable, "-m", "placedsl", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=child_environment(), cwd=folder,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - in this thread
        **further,
    )  # fmt: skip


def finished(process: subprocess.Popen[str], seconds: float = 120) -> subprocess.CompletedProcess[str]:
    """Wait for the end of a started one."""
    out, err = process.communicate(timeout=seconds)
    assert "Traceback" not in out + err
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
