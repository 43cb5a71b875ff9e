"""One sample under schedule ``calls``: uninterrupted calls of accelerators, and hosts that do everything at once.

Tarnawski et al. 2020, section 4.  A call waits until all tensors that it reads from outside are in RAM, transfers them
in, computes, and transfers out what others read; all its outputs appear at its end.  A transfer across the boundary of
a cluster takes longer by what the cluster charges.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence

from placedsl.evaluation.load_components import transfer_durations
from placedsl.evaluation.problem_data import ProblemData
from placedsl.evaluation.sample_times import SampleTimes, Task
from placedsl.evaluation.tolerance import total


def run(data: ProblemData, placement: Sequence[int], piece: Sequence[int]) -> SampleTimes:
    """Let all calls and host nodes run as early as they can; ``piece``: the call of its device that a node is in."""
    tasks: dict[Task, int] = {}
    task_of: list[int] = []
    for v, d in enumerate(placement):
        one: Task = ("call", d, piece[v]) if data.accelerator[d] else ("node", v, d)
        task_of.append(tasks.setdefault(one, len(tasks)))
    names = list(tasks)
    after: list[set[int]] = [set() for _ in names]
    terms: list[list[float]] = [[] for _ in names]
    for v, d in enumerate(placement):
        terms[task_of[v]].append(data.time[v][d])
    for tensor, producer in enumerate(data.producer):
        home = task_of[producer]
        reading = {task_of[reader] for reader in data.readers[tensor]} - {home}
        after[home] |= reading
        made, readers = placement[producer], {placement[reader] for reader in data.readers[tensor]}
        for task in (*reading, *([home] if reading else ())):
            kind, device, _ = names[task]
            if kind == "call":
                others = {made, *readers} if task == home else {made}
                terms[task].extend(transfer_durations(data, tensor, device, others))
    for earlier, later in _turns(names):
        after[earlier].add(later)
    waits = [0] * len(names)
    for successors in after:
        for task in successors:
            waits[task] += 1
    began, ended = [0.0] * len(names), [-1.0] * len(names)
    events = [(total(terms[task]), task) for task, number in enumerate(waits) if not number]
    heapq.heapify(events)
    while events:
        now, task = heapq.heappop(events)
        ended[task] = now
        for other in after[task]:
            waits[other] -= 1
            if not waits[other]:
                began[other] = now
                heapq.heappush(events, (now + total(terms[other]), other))
    if min(ended, default=0.0) < 0.0:
        return SampleTimes(circle=tuple(names[task] for task in _circle(after, ended)))
    calls = {(d, p): (began[task], ended[task]) for task, (kind, d, p) in enumerate(names) if kind == "call"}
    return SampleTimes([began[task] for task in task_of], [ended[task] for task in task_of], calls=calls)


def _turns(names: Sequence[Task]) -> list[tuple[int, int]]:
    """Calls of one device run one after the other in the order of their numbers."""
    calls = sorted((device, number, task) for task, (kind, device, number) in enumerate(names) if kind == "call")
    return [(a[2], b[2]) for a, b in itertools.pairwise(calls) if a[0] == b[0]]


def _circle(after: Sequence[set[int]], ended: Sequence[float]) -> list[int]:
    """Tasks that wait for one another, each for the one before it."""
    before: dict[int, int] = {}
    for task, successors in enumerate(after):
        if ended[task] < 0.0:
            before |= dict.fromkeys((other for other in successors if ended[other] < 0.0), task)
    at = next(iter(before))
    seen: list[int] = []
    while at not in seen:
        seen.append(at)
        at = before[at]
    return seen[seen.index(at) :][::-1]
