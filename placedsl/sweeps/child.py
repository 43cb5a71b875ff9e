"""The near side of a worker process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from placedsl.solvers.messages import receive, send
from placedsl.sweeps.tasks import FAULT, Result, Task

_LAST_WORDS = 5


class Child:
    """A process of :mod:`placedsl.sweeps.worker`, in a session of its own: Ctrl-C does not reach it."""

    def __init__(self) -> None:
        environment = dict(os.environ)
        root = str(Path(__file__).resolve().parents[2])
        # All that this process can import, the child must: a plug-in may lie anywhere on the search path.
        environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys((root, *filter(None, sys.path))))
        self.chatter = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self.process = subprocess.Popen(
            [sys.executable, "-m", "placedsl.sweeps.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.chatter, start_new_session=True, env=environment,
        )  # fmt: skip

    def solved(self, task: Task) -> Result:
        """Have a run solved; a process that dies over it is a result too."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            send(stdin, task)
            result = receive(stdout)
        except (EOFError, OSError, ValueError):
            return Result(FAULT, None, self._death())
        assert isinstance(result, Result)
        return result

    @property
    def alive(self) -> bool:
        """Whether it can be given another run."""
        return self.process.poll() is None

    def kill(self) -> None:
        """End it at once, with the programs that it has started; a thread that waits for it is told by the pipe."""
        if not self.alive:
            return
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()

    def close(self) -> None:
        """End it, wait for its end, and leave nothing open."""
        self.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.chatter):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _death(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2.0)
        code = self.process.poll()
        if code is None:
            how = "stopped answering"
        elif os.name == "posix" and code == -signal.SIGKILL:
            how = "was killed, most likely because the memory was used up; fewer runs at a time (--jobs) need less"
        elif code < 0:
            how = f"crashed ({signal.Signals(-code).name})"
        else:
            how = f"ended with exit code {code}"
        self.chatter.seek(0, os.SEEK_END)
        self.chatter.seek(max(0, self.chatter.tell() - 2000))
        said = self.chatter.read().decode("utf-8", "replace").strip().splitlines()[-_LAST_WORDS:]
        return f"the process of this run {how}" + (f"; its last words: {' / '.join(said)}" if said else "")
