"""What a command is doing, on stderr, while nothing else is shown.

On a terminal this is one line that renews itself every second and is gone at the end.  Elsewhere there is a line after
ten seconds, and each further one after twice the time: seven lines in ten minutes.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

from placedsl.system import interruption

#: Seconds before the first line of a terminal, and of anything else.
SOON, LATER = 1.0, 10.0


class Ticker:
    """Calls a function every second from a thread, from :meth:`start` to :meth:`stop`."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self.tick = tick
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; the first call is after a second.  Where no thread can be had nothing is called."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None

    def stop(self) -> None:
        """No call is made after this."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(SOON):
            self.tick()


class Heartbeat:
    """Use as a context, and call :meth:`doing` where the work changes.  Nothing is left of a line on a terminal.

    The line is written without ``rich``, which hides the cursor: a signal may end the process at any moment.
    """

    def __init__(self, doing: str = "", *, quiet: bool = False) -> None:
        self.text, self.quiet = doing, quiet
        self.terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.next = LATER
        self._ticker = Ticker(self._tick)
        self._began = 0.0

    def __enter__(self) -> Heartbeat:
        self._began = time.monotonic()
        if not self.quiet:
            self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ticker.stop()
        if interruption.line_is_open():
            interruption.line_opens(False)
            self._write("\r\x1b[K")

    def doing(self, text: str) -> None:
        """What is done from here on: "reading model.onnx", say."""
        self.text = text

    def show(self, seconds: float) -> None:
        """Show what is being done since so many seconds; without a terminal only now and then."""
        line = f"{self.text}  {seconds:.0f} s"
        if self.terminal:
            most = shutil.get_terminal_size().columns - 1
            interruption.line_opens(True)
            self._write("\r" + (line if len(line) <= most else line[: most - 1] + "…") + "\x1b[K")
        elif seconds >= self.next:
            self.next = 2 * seconds
            self._write(line + "\n")

    def _tick(self) -> None:
        if self.text:
            self.show(time.monotonic() - self._began)

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
