"""One sample under schedule ``dataflow``: an event-driven simulation of devices, ports and links.

An operator runs when its inputs have arrived on its device; a tensor leaves for each device that reads it when it is
made.  Where devices run one operator at a time, or transfers may not meet on a port or a link, tasks take turns: in a
given order, or by the dispatch rule that of those that could start the one goes first that most is still to come after.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.sample_times import SampleTimes, Task

#: What is known of start times: those of nodes, and of transfers of a tensor to a device.
Starts = tuple[Mapping[tuple[int, ...], float], Mapping[tuple[int, ...], float]]


def run(
    data: ProblemData, placement: Sequence[int], given: Starts | None = None, *, not_before: bool = False
) -> SampleTimes:
    """Let everything run as early as it can, in the order of the ``given`` starts where there are any.

    ``not_before``: nothing starts before its given time.  A start that comes before that of a task that it waits for
    counts as one right after it.
    """
    world = _World(data, placement)
    if given is None:
        began = world.dispatched()
    else:
        wanted = world.wanted(given)
        began = world.in_order(wanted, wanted if not_before else None)
    ended = [b + d for b, d in zip(began, world.duration, strict=True)]
    nodes = data.nodes
    sent = {(t, d): began[task] for (t, d), task in world.transfer.items()}
    arrived = {(t, d): ended[task] for (t, d), task in world.transfer.items()}
    return SampleTimes(began[:nodes], ended[:nodes], sent, arrived)


class _World:
    """Tasks (nodes, then transfers), what each waits for, how long it takes, and what it occupies."""

    def __init__(self, data: ProblemData, placement: Sequence[int]) -> None:
        moves = data.problem.device_to_device
        assert moves is not None
        nodes = data.nodes
        self.names: list[Task] = [("node", v, d) for v, d in enumerate(placement)]
        self.duration = [data.time[v][d] for v, d in enumerate(placement)]
        self.transfer: dict[tuple[int, int], int] = {}
        self.before: list[list[int]] = [[] for _ in range(nodes)]
        self.occupies: list[list[Hashable]] = [[("device", d)] if data.sequential else [] for d in placement]
        # By tensor and device, so that ties go by number whatever order the edges stand in.
        for tensor, reader in sorted(data.reads, key=lambda read: (read[0], placement[read[1]])):
            home, device = placement[data.producer[tensor]], placement[reader]
            if home == device:
                self.before[reader].append(data.producer[tensor])
                continue
            task = self.transfer.get((tensor, device))
            if task is None:
                task = self.transfer[tensor, device] = len(self.names)
                self.names.append(("transfer", tensor, device))
                self.duration.append(float(moves.time(tensor, home, device)))
                self.before.append([data.producer[tensor]])
                ways: list[Hashable] = [("out", home), ("in", device)] if "port" in data.congestion else []
                if "link" in data.congestion:
                    ways += [("link", int(link)) for link in moves.hops(home, device)]
                self.occupies.append(ways)
            self.before[reader].append(task)
        for task, length in enumerate(self.duration):
            if length == 0.0:
                self.occupies[task] = []
        self.after: list[list[int]] = [[] for _ in self.names]
        for task, earlier in enumerate(self.before):
            for other in earlier:
                self.after[other].append(task)

    def topological(self, key: Sequence[float]) -> list[int]:
        """The tasks in an order that heeds what waits for what, the least key first among those that can come."""
        waits = [len(earlier) for earlier in self.before]
        heap = [(key[task], task) for task, number in enumerate(waits) if not number]
        heapq.heapify(heap)
        out = []
        while heap:
            _, task = heapq.heappop(heap)
            out.append(task)
            for other in self.after[task]:
                waits[other] -= 1
                if not waits[other]:
                    heapq.heappush(heap, (key[other], other))
        return out

    def wanted(self, given: Starts) -> list[float]:
        """The given start of each task; a transfer without one is wanted as soon as its tensor is made."""
        starts, sent = given
        out = [float(starts.get((v,), 0.0)) for v in range(len(self.names) - len(self.transfer))]
        for (tensor, device), task in self.transfer.items():
            maker = self.before[task][0]
            out.append(float(sent.get((tensor, device), out[maker] + self.duration[maker])))
        return out

    def in_order(self, key: Sequence[float], release: Sequence[float] | None) -> list[float]:
        """Starts where tasks take their turns in the order of the key."""
        began, free = [0.0] * len(self.names), dict[Hashable, float]()
        for task in self.topological(key):
            earliest = max((began[b] + self.duration[b] for b in self.before[task]), default=0.0)
            for way in self.occupies[task]:
                earliest = max(earliest, free.get(way, 0.0))
            if release is not None:
                earliest = max(earliest, release[task])
            began[task] = earliest
            for way in self.occupies[task]:
                free[way] = earliest + self.duration[task]
        return began

    def urgency(self) -> list[float]:
        """How long the longest way from the start of each task to the end takes."""
        out = [0.0] * len(self.names)
        for task in reversed(self.topological([0.0] * len(self.names))):
            out[task] = self.duration[task] + max((out[other] for other in self.after[task]), default=0.0)
        return out

    def dispatched(self) -> list[float]:
        """Starts by the dispatch rule: whatever is free starts the most urgent task that waits for it and can start."""
        urgency, waits = self.urgency(), [len(earlier) for earlier in self.before]
        began = [-1.0] * len(self.names)
        busy: set[Hashable] = set()
        queues: dict[Hashable, list[tuple[float, int]]] = {}
        events: list[tuple[float, int]] = []

        def start(task: int) -> None:
            began[task] = now
            busy.update(self.occupies[task])
            heapq.heappush(events, (now + self.duration[task], task))

        now, ready = 0.0, [task for task, number in enumerate(waits) if not number]
        freed: list[Hashable] = []
        while True:
            for task in ready:
                for way in self.occupies[task]:
                    heapq.heappush(queues.setdefault(way, []), (-urgency[task], task))
                    freed.append(way)
                if not self.occupies[task]:
                    start(task)
            # What ends at this very instant, having no length, may make something more urgent ready.
            if not events or events[0][0] > now:
                for task in self._next(queues, dict.fromkeys(freed), busy, began):
                    start(task)
                freed = []
            if not events:
                return began
            now, ready = events[0][0], []
            while events and events[0][0] == now:
                _, task = heapq.heappop(events)
                busy.difference_update(self.occupies[task])
                freed += self.occupies[task]
                for other in self.after[task]:
                    waits[other] -= 1
                    if not waits[other]:
                        ready.append(other)

    def _next(
        self,
        queues: Mapping[Hashable, list[tuple[float, int]]],
        freed: Iterable[Hashable],
        busy: set[Hashable],
        began: Sequence[float],
    ) -> Iterator[int]:
        """The tasks that start now, the most urgent first, of those that wait for something that may be free."""
        turn = itertools.count()  # ways cannot be compared
        heads = [(*heapq.heappop(queues[way]), next(turn), way) for way in freed if queues.get(way)]
        heapq.heapify(heads)
        later: list[tuple[Hashable, tuple[float, int]]] = []
        while heads:
            key, task, _, way = heapq.heappop(heads)
            if began[task] < 0.0:
                if busy.isdisjoint(self.occupies[task]):
                    yield task
                else:
                    later.append((way, (key, task)))
            if way not in busy and queues[way]:
                heapq.heappush(heads, (*heapq.heappop(queues[way]), next(turn), way))
        for way, entry in later:
            heapq.heappush(queues[way], entry)
