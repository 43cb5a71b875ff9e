"""A cluster as a host of further members of the portfolio.

The planner decides what runs where: each thread of a worker of the cluster has one member.  A worker that is lost costs
what its members have not reported; they are begun anew where there is room.  A worker that joins later is given members
as well.  Nothing that comes from a cluster is believed more than what comes from a process of
this machine: placements are evaluated, bounds are claims.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import pickle
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from placedsl.algorithms.exchange import Key
from placedsl.planner.portfolio.cluster_worker import exchange, host, packed
from placedsl.planner.portfolio.findings import Findings, Told
from placedsl.planner.portfolio.portfolio import Done, Known, Member, Message, Report, message_of
from placedsl.processes.channel import Failure
from placedsl.processes.dask_cluster import connected, held, other_version, quiet
from placedsl.system.installation import package_version

#: Seconds between two looks at which workers there are.
_LOOK_S = 0.5
#: Seconds between two exchanges with a worker: at least, and for each worker that there is, so that exchanges with many
#: of them take the planner's process no more than a share of its time.
_PAUSE_S, _PAUSE_EACH_S = 0.1, 0.02
#: Seconds within which a scheduler says which workers there are, and a worker which placedsl it has.
_ANSWER_S = 20.0
#: Seconds for the last exchange of all, and for what ends the tasks.
_LAST_S, _END_S = 1.0, 3.0
#: After so many members that failed no others are begun.
_MOST_FAILURES = 5
#: Numbers and texts are sent along with each task; what is larger than this is sent to a worker once, in bytes.
_SMALL = 10_000


class Cluster:
    """The cluster behind an address, and an account of what it has done.

    UsageError as of :func:`placedsl.processes.dask_cluster.connected`.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.client: Any = connected(address)
        # What befalls the connection is told by a note; lines of a log would stand between those of the progress.
        self._quiet = contextlib.ExitStack()
        self._quiet.enter_context(quiet())
        #: How many members of a name were begun, and the workers that were used, lost, late and refused.
        self.begun: Counter[str] = Counter()
        self.used: set[str] = set()
        self.lost: set[str] = set()
        self.late: set[str] = set()
        self.refused: list[str] = []
        self.unreachable = ""

    def host(self, members: Iterator[Member]) -> ClusterHost:
        """A host of these members, in their order, as many as the cluster has threads."""
        return ClusterHost(self, members)

    def close(self) -> None:
        """Leave the cluster; what still ran there ends."""
        with self._quiet:
            self.client.close(timeout=_END_S)

    def notes(self) -> list[str]:
        """What the cluster has done, and what has befallen it."""
        where = f"the cluster at {self.address}"
        notes = []
        if not self.begun and not self.unreachable:
            notes = [f"{where} was not used: the problem was settled before, or there is nothing that it could do"]
        elif self.begun:
            tasks = ", ".join(f"{name} ({count})" for name, count in sorted(self.begun.items()))
            notes = [f"{where} ran beside this machine, on {_workers(len(self.used))}: {tasks}"]
        if self.late:
            notes.append(f"{_workers(len(self.late))} joined later and took members as well")
        if self.lost:
            again = "what ran there was begun anew where there was room, and nothing else was lost"
            notes.append(f"{_workers(len(self.lost))} of the cluster {_was(len(self.lost))} lost: {again}")
        notes += [f"a worker of the cluster was not used: {reason}" for reason in self.refused]
        if self.unreachable:
            notes.append(f"{where} was lost, and this machine went on alone: {self.unreachable}")
        return notes


def pause_between(workers: int) -> float:
    """Seconds between two exchanges with each of so many workers."""
    return max(_PAUSE_S, _PAUSE_EACH_S * workers)


def _workers(number: int) -> str:
    return "1 worker" if number == 1 else f"{number} workers"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


@dataclass(eq=False)
class _Seat:
    """A member that runs on a worker."""

    member: Member
    future: Any


@dataclass(eq=False)
class _Worker:
    """A worker of the cluster: how many members it takes, those that it has, by number; how much of what was told
    they have heard, and the value of the best placement that they know."""

    threads: int
    heard: int = 0
    best: float = float("inf")
    seats: dict[int, _Seat] = field(default_factory=dict)


class ClusterHost:
    """See :class:`placedsl.planner.portfolio.portfolio.Host`.  All of its work is done in the client's event loop."""

    def __init__(self, cluster: Cluster, members: Iterator[Member]) -> None:
        self.cluster, self.client = cluster, cluster.client
        self.members, self.again = members, deque[Member]()
        self.run, self.numbers, self.failures = uuid.uuid4().hex[:12], 0, 0
        self.known = Known()
        self.workers: dict[str, _Worker] = {}
        self._sent: dict[int, tuple[object, Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        #: What members have told, in the order in which it came.
        self.findings, self.told = Findings(), list[Key]()
        self._deliver: Callable[[Message | Told], None] = lambda _: None
        self._work: concurrent.futures.Future[None] | None = None

    def start(self, deliver: Callable[[Message | Told], None], known: Known) -> None:
        """Begin: members for all workers that there are."""
        self._deliver, self.known = deliver, known
        self._work = asyncio.run_coroutine_threadsafe(self._attend(), self.client.loop.asyncio_loop)

    def send(self, known: Known) -> None:
        """Have what the planner knows sent along with the next exchange."""
        self.known = known

    def tell(self, told: Told) -> None:
        """Have what others have told sent along with the next exchanges."""
        with contextlib.suppress(RuntimeError):  # the client's loop has ended
            self.client.loop.asyncio_loop.call_soon_threadsafe(self._keep, told)

    def _keep(self, told: Told) -> None:
        self.told += self.findings.raised(told.numbers)

    def end(self) -> None:
        """Exchange for the last time, and end the members."""
        work, self._work = self._work, None
        if work is None:
            return
        work.cancel()
        ending = asyncio.run_coroutine_threadsafe(self._end(), self.client.loop.asyncio_loop)
        try:
            ending.result(_LAST_S + _END_S)
        except TimeoutError:
            self.cluster.unreachable = self.cluster.unreachable or "it did not say that its members have ended"

    async def _attend(self) -> None:
        first = True
        while not self.cluster.unreachable:
            try:
                await self._look(first)
            except Exception as problem:  # noqa: BLE001 - whatever a cluster can do: it is told, and the run goes on
                self.cluster.unreachable = str(problem) or type(problem).__name__
            first = False
            await asyncio.sleep(_LOOK_S)

    async def _look(self, first: bool) -> None:
        """Take notice of workers that have gone or come, and give each free thread a member."""
        if self.client.status != "running":
            raise ConnectionError("its scheduler does not answer any more")
        threads: dict[str, int] = await asyncio.wait_for(self.client.nthreads(), _ANSWER_S)
        for address in [address for address in self.workers if address not in threads]:
            await self._lose(address)
        for address in [address for address in threads if address not in self.workers]:
            await self._welcome(address, threads[address], late=not first)
        for address, worker in list(self.workers.items()):
            for number, seat in list(worker.seats.items()):
                if seat.future.status in ("error", "cancelled"):
                    del worker.seats[number]
                    self._fail(seat.member, f"its task on the cluster: {seat.future.status}")
            while len(worker.seats) < worker.threads and self.failures < _MOST_FAILURES:
                member = self.again.popleft() if self.again else await asyncio.to_thread(next, self.members, None)
                if member is None:
                    break
                await self._begin(member, address, worker)

    async def _welcome(self, address: str, threads: int, *, late: bool) -> None:
        """Use a worker, unless it has another placedsl."""
        worker = self.workers[address] = _Worker(0)
        try:
            asking = self.client.run(package_version, workers=[address])
            version = (await asyncio.wait_for(asking, _ANSWER_S))[address]
        except Exception as problem:  # noqa: BLE001 - whatever the other side raised
            reason = str(problem) or type(problem).__name__
            self.cluster.refused.append(f"{address} does not say which placedsl it has: {reason}")
            return
        if (different := other_version(address, version)) is not None:
            self.cluster.refused.append(different)
            return
        worker.threads = threads
        if late:
            self.cluster.late.add(address)
        task = asyncio.get_running_loop().create_task(self._exchange_for_ever(address))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _lose(self, address: str) -> None:
        """A worker has gone: what it did others do."""
        worker = self.workers.pop(address)
        if worker.seats:
            self.cluster.lost.add(address)
            self.again.extend(seat.member for seat in worker.seats.values())
            await self.client.cancel([seat.future for seat in worker.seats.values()])

    async def _begin(self, member: Member, address: str, worker: _Worker) -> None:
        """Have a worker begin a member."""
        arguments = [await self._argument(argument) for argument in member.arguments]
        number, key = self.numbers, f"placedsl-{self.run}-{self.numbers}"
        self.numbers += 1
        future = self.client.submit(
            host, self.run, number, key, self.known, member.work, arguments, key=key, workers=[address], pure=False,
            retries=0,
        )  # fmt: skip
        worker.seats[number] = _Seat(member, future)
        self.cluster.begun[member.kind or member.name] += 1
        self.cluster.used.add(address)

    async def _argument(self, argument: object) -> Any:
        """An argument in bytes; what is large as the result of a task, which is the same for all members."""
        if id(argument) in self._sent:
            return self._sent[id(argument)][1]
        body = await asyncio.to_thread(packed, argument)
        if len(body) <= _SMALL:
            return body
        # The argument is kept as well, so that its id stays its own.
        self._sent[id(argument)] = (argument, self.client.submit(held, body, pure=False))
        return self._sent[id(argument)][1]

    async def _exchange_for_ever(self, address: str) -> None:
        while address in self.workers:
            await asyncio.sleep(pause_between(len(self.workers)))
            await self._exchange(address)

    async def _exchange(self, address: str, *, last: bool = False) -> bool:
        """Tell a worker's members what is known, and deliver what they have reported; whether the worker answered."""
        worker, told, until, known = self.workers.get(address), None, len(self.told), self.known
        if worker is not None:
            if worker.heard < until:
                told = Told({key: self.findings.numbers[key] for key in self.told[worker.heard :]})
                worker.heard = until
            known, worker.best = known.after(worker.best), known.best
        try:
            body = (await self.client.run(exchange, self.run, known, told, last, workers=[address]))[address]
        except Exception:  # noqa: BLE001 - a worker that has gone is noticed at the next look, as is a lost scheduler
            return False
        if body and worker is not None:
            for number, messages in pickle.loads(body):
                for message in messages:
                    self._take(worker, number, message)
        return True

    def _take(self, worker: _Worker, number: int, message: object) -> None:
        seat = worker.seats.get(number)
        if seat is None:
            return
        if isinstance(message, Report):
            self._deliver(message_of(seat.member.name, message))
            return
        if isinstance(message, Told):
            self._keep(message)
            self._deliver(message)
            return
        del worker.seats[number]
        if not isinstance(message, Done):
            self._fail(seat.member, message.message if isinstance(message, Failure) else "its process has gone")

    def _fail(self, member: Member, reason: str) -> None:
        self.failures += 1
        self._deliver(Message(member.name, None, float("-inf"), f"{reason} (on the cluster)"))

    async def _end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        last = [self._exchange(address, last=True) for address, worker in self.workers.items() if worker.seats]
        with contextlib.suppress(TimeoutError):
            if all(await asyncio.wait_for(asyncio.gather(*last), _LAST_S)):
                return  # all members end by themselves
        futures = [seat.future for worker in self.workers.values() for seat in worker.seats.values()]
        self.workers.clear()
        if futures and not self.cluster.unreachable:
            await self.client.cancel(futures)
