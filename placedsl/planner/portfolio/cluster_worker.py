"""Members of the portfolio on a worker of a cluster: each a task, whose work is done by a process of its own.

The planner calls :func:`exchange` on each worker now and then: it brings what the planner knows and takes along what
the members have reported since.  A member's process ends with its task, which ends when the planner does not want it
any more or has gone.
"""

from __future__ import annotations

import pickle
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from placedsl.planner.portfolio.findings import Findings, Told
from placedsl.planner.portfolio.portfolio import Done, Known, PlannerChannel, Report
from placedsl.processes.channel import Failure, Gone
from placedsl.processes.child import Child
from placedsl.processes.dask_cluster import wanted

#: Seconds between two looks at whether a member is still wanted.
_LOOK_S = 0.25
#: A member that the planner has not asked for so many seconds ends: nobody can say any more that it is not wanted.
_LEASE_S = 120.0
#: So many placements of a member are kept between two exchanges, the newest; and messages before they are sorted out.
_PLACEMENTS, _MESSAGES = 8, 64
#: Of so many runs is kept what was told of them.
_RUNS = 8


def packed(argument: object) -> bytes:
    """An argument of a member as bytes."""
    return zlib.compress(pickle.dumps(argument, protocol=5), 1)


def unpacked(channel: PlannerChannel, work: Callable[..., None], arguments: Sequence[bytes]) -> None:
    """The work of a member whose arguments are :func:`packed`; they are unpacked in its own process only."""
    work(channel, *(pickle.loads(zlib.decompress(argument)) for argument in arguments))


def condensed(messages: Sequence[object]) -> list[object]:
    """Of the reports among the messages the newest placements and the best bound, what was told as one message; the
    others as they are."""
    told = [message for message in messages if isinstance(message, Told)]
    if len(told) > 1:
        together = Findings()
        for message in told:
            together.raised(message.numbers)
        first = messages.index(told[0])
        rest = [message for message in messages if not isinstance(message, Told)]
        messages = [*rest[:first], Told(together.numbers), *rest[first:]]
    reports = [message for message in messages if isinstance(message, Report)]
    kept = [report for report in reports if report.placement is not None][-_PLACEMENTS:]
    if reports:
        kept.append(max(reports, key=lambda report: report.bound))
    chosen = {id(report) for report in kept}
    return [message for message in messages if not isinstance(message, Report) or id(message) in chosen]


class _Seat:
    """One member's process on this worker, and what it has reported since the last exchange."""

    def __init__(self, known: Known, work: Callable[..., None], arguments: Sequence[bytes]) -> None:
        self.lock, self.ended, self.messages = threading.Lock(), threading.Event(), list[object]()
        #: The planner needs it no more.
        self.dismissed = threading.Event()
        self.child = Child("placedsl.planner.portfolio.worker", self._take)
        self.child.send((unpacked, (work, arguments)))
        self.asked = time.monotonic()
        self.known = Known()
        self.hear(known)

    def hear(self, known: Known) -> None:
        """Pass on what the planner knows."""
        self.child.send(known.after(self.known.best))
        self.known = known

    def tell(self, told: Told) -> None:
        """Pass on what others have told."""
        self.child.send(told)

    def collected(self) -> list[object]:
        """What was reported since the last call."""
        self.asked = time.monotonic()
        with self.lock:
            found, self.messages = condensed(self.messages), []
        return found

    @property
    def over(self) -> bool:
        """Whether the process has ended, and all that it reported was collected."""
        with self.lock:
            return self.ended.is_set() and not self.messages

    def _take(self, message: object) -> None:
        with self.lock:
            if self.ended.is_set():
                return
            self.messages.append(message)
            if len(self.messages) > _MESSAGES:
                self.messages = condensed(self.messages)
            if isinstance(message, Done | Failure | Gone):
                self.ended.set()


@dataclass
class _Heard:
    """What members of a run hear when they begin: what the planner knows, and what others have told."""

    known: Known = field(default_factory=Known)
    findings: Findings = field(default_factory=Findings)

    def joined(self, known: Known) -> Known:
        """With what the planner says; that may lack a placement which it has sent before."""
        self.known = self.known.joined(known)
        return self.known


#: The members on this worker by the planner's run and their number in it; and what they have heard, by run.
_SEATS: dict[tuple[str, int], _Seat] = {}
_HEARD: dict[str, _Heard] = {}
_TELLING = threading.Lock()


def host(run: str, number: int, key: str, known: Known, work: Callable[..., None], arguments: Sequence[bytes]) -> None:
    """The task ``key``: a member until its end is collected, or it is not wanted any more."""
    still = wanted(key)
    seat = _Seat(known, work, arguments)
    with _TELLING:
        heard = _HEARD.setdefault(run, _Heard())
        seat.hear(heard.joined(known))
        seat.tell(Told(dict(heard.findings.numbers)))
        _SEATS[run, number] = seat
    try:
        while still() and not seat.over and time.monotonic() < seat.asked + _LEASE_S:
            if seat.dismissed.wait(_LOOK_S):
                break
    finally:
        with _TELLING:
            del _SEATS[run, number]
            if not any(whose == run for whose, _ in _SEATS):
                _HEARD.pop(run, None)
        seat.child.close()


def exchange(run: str, known: Known, told: Told | None = None, last: bool = False) -> bytes:
    """Tell the members of a run what the planner knows, and what others have told; what they have reported, by number,
    pickled.

    ``last``: the run is over, and the members end.
    """
    found: list[tuple[int, list[object]]] = []
    with _TELLING:
        seats = [(number, seat) for (whose, number), seat in _SEATS.items() if whose == run]
        heard = _HEARD.setdefault(run, _Heard())
        known = heard.joined(known)
        if told is not None:
            told = Told(heard.findings.raised(told.numbers))
        while len(_HEARD) > _RUNS:  # of runs that have ended
            del _HEARD[next(iter(_HEARD))]
    for number, seat in seats:
        if known != seat.known:
            seat.hear(known)
        if told is not None:
            seat.tell(told)
        if messages := seat.collected():
            found.append((number, messages))
        if last:
            seat.dismissed.set()
    return pickle.dumps(found, protocol=5) if found else b""
