"""A portfolio: processes that look for placements and bounds while the planner does something else.

A member is a name and a function of an importable module.  The planner asks for the news now and then, and leaves the
``with`` block when it knows enough: nothing of the members is left then.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

import numpy as np

from placedsl.cost.expressions import OwnValues
from placedsl.graph.graph import Integers
from placedsl.solvers.messages import receive, send


class Link(Protocol):
    """A member's line to the planner."""

    #: The value of the best placement that the planner knows of (inf: none); falls while the member works.
    best: float

    def say(self, placement: Integers | None, bound: float, values: OwnValues | None = None) -> None:
        """Tell of a placement (None: none) and of a proven lower bound on the first objective (-inf: none).

        ``values``: what else an answer says, by name and positions; see :func:`placedsl.cost.evaluate.evaluate`.
        """


@dataclass(frozen=True)
class Member:
    """Something that runs in a process of its own: ``work(link, *arguments)``, which may go on for ever.

    ``work`` is a function at the top of a module, so that the process can import it; ``arguments`` can be pickled.
    """

    name: str
    work: Callable[..., None]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class News:
    """What one member said: a placement or a bound; or why it has failed."""

    member: str
    placement: Integers | None
    bound: float
    failed: str = ""
    values: OwnValues | None = None


class Portfolio:
    """Members that run beside; used in a ``with`` block.

    They start at the first :meth:`news` after ``delay`` seconds: what is solved at once needs no processes.
    ``brief``: they are soon over, so that no solver beside them has to leave them a core.
    """

    def __init__(self, members: Sequence[Member], delay: float = 0.0, *, brief: bool = False) -> None:
        self.brief = brief
        self.members = list(members)
        self.due = time.monotonic() + delay
        self.running: list[_Process] = []
        self.inbox: queue.SimpleQueue[News] = queue.SimpleQueue()
        self.best = np.inf

    def add(self, member: Member) -> None:
        """One more, before any has started."""
        self.members.append(member)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()

    def news(self) -> Iterator[News]:
        """What has been said since the last time; never waits."""
        if self.members and time.monotonic() >= self.due:
            waiting, self.members = self.members, []
            self.running += [_Process(member, self.inbox.put, self.best) for member in waiting]
        with contextlib.suppress(queue.Empty):
            while True:
                yield self.inbox.get_nowait()

    @property
    def active(self) -> bool:
        """Some member has not ended yet, or not begun."""
        return bool(self.members) or any(process.threads[1].is_alive() for process in self.running)

    def tell(self, best: float) -> None:
        """Let the members know the value of the best placement."""
        if best < self.best:
            self.best = best
            for process in self.running:
                process.outbox.put(best)

    def stop(self) -> None:
        """End all members at once, and what they have started; what they have said can still be asked for."""
        self.members = []
        for process in self.running:
            process.end()


class _Process:
    """The parent's side of one member."""

    def __init__(self, member: Member, tell: Callable[[News], None], best: float) -> None:
        self.member, self.tell = member, tell
        self.ending = False
        #: Values of the best placement, for the child; None ends it.
        self.outbox: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self.outbox.put(best)
        environment = dict(os.environ)
        root = str(Path(__file__).resolve().parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys((root, *filter(None, sys.path))))
        self.child = subprocess.Popen(
            [sys.executable, "-m", "placedsl.portfolio.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True, env=environment,
        )  # fmt: skip
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._give, self._hear)]
        for thread in self.threads:
            thread.start()

    def end(self) -> None:
        """Kill it, and wait until its words are all in."""
        self.ending = True
        self.outbox.put(None)
        if self.child.poll() is None:
            if os.name == "posix":
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.child.pid, signal.SIGKILL)
            else:
                self.child.kill()
        self.child.wait()
        for thread in self.threads:
            thread.join()
        for pipe in (self.child.stdin, self.child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _give(self) -> None:
        stdin = self._pipe(self.child.stdin)
        # A child that has gone is noticed by its other pipe.
        with contextlib.suppress(OSError, ValueError):
            send(stdin, (self.member.work, self.member.arguments))
            while (best := self.outbox.get()) is not None:
                send(stdin, best)

    def _hear(self) -> None:
        stdout, name = self._pipe(self.child.stdout), self.member.name
        try:
            while True:
                message = receive(stdout)
                if message[0] == "done":
                    return
                if message[0] == "failed":
                    self.tell(News(name, None, -float("inf"), message[1]))
                    return
                self.tell(News(name, message[1], message[2], values=message[3]))
        except (EOFError, OSError, ValueError):
            if not self.ending:
                self.tell(News(name, None, -float("inf"), "its process has gone"))

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe
