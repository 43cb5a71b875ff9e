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


def packed(argument: object) -> bytes:
    """An argument of a member as bytes."""
    return zlib.compress(pickle.dumps(argument, protocol=5), 1)


def unpacked(channel: PlannerChannel, work: Callable[..., None], arguments: Sequence[bytes]) -> None:
    """The work of a member whose arguments are :func:`packed`; they are unpacked in its own process only."""
    work(channel, *(pickle.loads(zlib.decompress(argument)) for argument in arguments))


def condensed(messages: Sequence[object]) -> list[object]:
    """Of the reports among the messages the newest placements and the best bound; the others as they are."""
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
        self.hear(known)

    def hear(self, known: Known) -> None:
        """Pass on what the planner knows."""
        self.known = known
        self.child.send(known)

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


#: The members on this worker by the planner's run and their number in it.
_SEATS: dict[tuple[str, int], _Seat] = {}


def host(run: str, number: int, key: str, known: Known, work: Callable[..., None], arguments: Sequence[bytes]) -> None:
    """The task ``key``: a member until its end is collected, or it is not wanted any more."""
    still = wanted(key)
    seat = _SEATS[run, number] = _Seat(known, work, arguments)
    try:
        while still() and not seat.over and time.monotonic() < seat.asked + _LEASE_S:
            if seat.dismissed.wait(_LOOK_S):
                break
    finally:
        del _SEATS[run, number]
        seat.child.close()


def exchange(run: str, known: Known, last: bool = False) -> bytes:
    """Tell the members of a run what the planner knows; what they have reported, by number, pickled.

    ``last``: the run is over, and the members end.
    """
    found: list[tuple[int, list[object]]] = []
    for (whose, number), seat in list(_SEATS.items()):
        if whose != run:
            continue
        if known != seat.known:
            seat.hear(known)
        if messages := seat.collected():
            found.append((number, messages))
        if last:
            seat.dismissed.set()
    return pickle.dumps(found, protocol=5) if found else b""
