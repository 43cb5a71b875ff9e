"""A portfolio: processes that look for placements and bounds while the planner does something else.

A member is a name and a function of an importable module.  The planner reads the members' messages now and then, and
leaves the ``with`` block when it knows enough: nothing of the members is left then.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from placedsl.algorithms.exchange import Key
from placedsl.arrays import Integers
from placedsl.planner.portfolio.findings import Findings, Told
from placedsl.problem.values import Values
from placedsl.processes.channel import Failure, Gone
from placedsl.processes.child import Child


class PlannerChannel(Protocol):
    """A member's channel to the planner."""

    #: The value of the best placement that the planner knows (inf: none); falls while the member works.
    best: float
    #: The best bound that the planner knows (-inf: none); rises while the member works.
    bound: float
    #: The best placement (None: none that the planner has told of yet); it may come a moment after its value.
    placement: Integers | None

    def report(
        self, placement: Integers | None, bound: float, values: Values | None = None, by: str = "",
        certificate: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Report a placement (None: none) and a proven lower bound on the first objective (-inf: none).

        ``values``: what else an answer contains, by name and positions; see
        :func:`placedsl.evaluation.evaluate.evaluate`.  ``by``: what proves the bound, where that is not the member, and
        its ``certificate``.
        """

    def tell(self, found: Mapping[Key, float]) -> None:
        """Tell the other members of numbers that only rise, by keys that say what they are."""

    def heard(self) -> Mapping[Key, float]:
        """What the others have told since the last call, as far as it is news."""


@dataclass(frozen=True)
class Member:
    """Work for a process of its own: ``work(channel, *arguments)``, which may go on for ever.

    ``work`` is a function at the top of a module, so that the process can import it; ``arguments`` can be pickled.
    ``delay``: so many seconds after the others, which have the cores for themselves while they start.  ``kind``: what
    it is one of, where there are many.
    """

    name: str
    work: Callable[..., None]
    arguments: tuple[Any, ...] = ()
    delay: float = 0.0
    kind: str = ""


@dataclass(frozen=True)
class Known:
    """To a member's process: the value of the best placement (inf: none), the best bound (-inf: none), and the
    placement itself (None: it was told before, or there is none).
    """

    best: float = np.inf
    bound: float = -np.inf
    placement: Integers | None = field(default=None, compare=False)

    def joined(self, other: Known) -> Known:
        """With what else is known: the value only falls, the bound only rises."""
        news = other.best < self.best and other.placement is not None
        placement = other.placement if news else self.placement
        return Known(min(self.best, other.best), max(self.bound, other.bound), placement)

    def after(self, best: float) -> Known:
        """The same for one who knows a placement of that value."""
        return self if self.best < best else replace(self, placement=None)


@dataclass(frozen=True, eq=False)
class Report:
    """From a member's process: a placement (None: none), a bound, and the placement's values."""

    placement: Integers | None
    bound: float
    values: Values | None = None
    by: str = ""
    certificate: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Done:
    """From a member's process, last: its work is finished."""


@dataclass(frozen=True, eq=False)
class Message:
    """What one member reported: a placement or a bound; or why it has failed."""

    member: str
    placement: Integers | None
    bound: float
    failed: str = ""
    values: Values | None = None
    by: str = ""
    certificate: Mapping[str, Any] | None = None


class Host(Protocol):
    """Where further members run, as many as there is room for: a cluster."""

    def start(self, deliver: Callable[[Message | Told], None], known: Known) -> None:
        """Begin; ``deliver`` takes the messages, in a thread of the host's own."""

    def send(self, known: Known) -> None:
        """Send the members what the planner knows."""

    def tell(self, told: Told) -> None:
        """Send the members what others have told."""

    def end(self) -> None:
        """End the members; the messages that can be had at once are delivered.  Once ended it does not begin again."""


def message_of(member: str, report: Report) -> Message:
    """A member's report as a message."""
    return Message(
        member, report.placement, report.bound, values=report.values, by=report.by, certificate=report.certificate
    )


class Portfolio:
    """Members that run beside the planner; used in a ``with`` block.

    They start at the first call of :meth:`messages` after ``delay`` seconds: what is solved at once needs no processes.
    ``brief``: they are soon over, so that no solver beside them has to leave them a core.  ``further``: a host of
    further members, which begin when these do.
    """

    def __init__(
        self, members: Sequence[Member], delay: float = 0.0, *, brief: bool = False, further: Host | None = None
    ) -> None:
        self.brief, self.further, self.hosting = brief, further, False
        self.members = list(members)
        self.due = time.monotonic() + delay
        self.known = Known()
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.running: list[_Process] = []
        #: What members have told; it is passed on in the threads that read their messages.
        self.findings, self._telling = Findings(), threading.Lock()

    def add(self, member: Member) -> None:
        """One more, before any has started."""
        self.members.append(member)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()

    def messages(self) -> Iterator[Message]:
        """The messages since the last call; never waits."""
        since = time.monotonic() - self.due
        begin = [member for member in self.members if member.delay <= since]
        self.members = [member for member in self.members if member.delay > since]
        for member in begin:
            process = _Process(member, self._take, self.known)
            with self._telling:
                self.running.append(process)
                process.child.send(Told(dict(self.findings.numbers)))
        if self.further is not None and not self.hosting and since >= 0.0:
            self.further.start(lambda message: self._take(message, None), self.known)
            with self._telling:
                self.hosting = True
                self.further.tell(Told(dict(self.findings.numbers)))
        with contextlib.suppress(queue.Empty):
            while True:
                yield self.inbox.get_nowait()

    def _take(self, message: Message | Told, by: _Process | None) -> None:
        """A message of a process, or of the host."""
        if isinstance(message, Message):
            self.inbox.put(message)
            return
        with self._telling:
            told = Told(self.findings.raised(message.numbers))
            if not told.numbers:
                return
            for process in self.running:
                if process is not by:
                    process.child.send(told)
            if by is not None and self.further is not None and self.hosting:
                self.further.tell(told)

    @property
    def names(self) -> set[str]:
        """Those of all members, whether they have begun or not."""
        return {one.name for one in self.members} | {one.name for one in self.running}

    @property
    def active(self) -> bool:
        """Some member of this machine has not ended yet, or not begun."""
        return bool(self.members) or any(not process.ended for process in self.running)

    def announce(self, best: float, bound: float = -np.inf, placement: Integers | None = None) -> None:
        """Send the members the value of the best placement, the best bound, and the placement."""
        before, known = self.known, self.known.joined(Known(best, bound, placement))
        if known == before:
            return
        self.known = known
        for process in self.running:
            process.child.send(known.after(before.best))
        if self.further is not None and self.hosting:
            self.further.send(known)

    def stop(self) -> None:
        """End all members at once, and what they have started; their messages can still be read."""
        self.members = []
        for process in self.running:
            process.end()
        if self.further is not None:
            self.further.end()
            self.further = None


class _Process:
    """One member's process."""

    def __init__(self, member: Member, deliver: Callable[[Message | Told, _Process], None], known: Known) -> None:
        self.name, self.deliver = member.name, deliver
        self.ended = False
        self.child = Child("placedsl.planner.portfolio.worker", self._take)
        self.child.send((member.work, member.arguments))
        self.child.send(known)

    def end(self) -> None:
        """Kill it, and wait until its messages are in."""
        self.ended = True
        self.child.close()

    def _take(self, message: object) -> None:
        match message:
            case Report():
                self.deliver(message_of(self.name, message), self)
                return
            case Told():
                self.deliver(message, self)
                return
            case Failure():
                self._fail(message.message)
            case Gone() if not self.ended:
                self._fail("its process has gone")
        self.ended = True

    def _fail(self, reason: str) -> None:
        self.deliver(Message(self.name, None, -np.inf, reason), self)
