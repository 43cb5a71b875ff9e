"""Small random problems of schedule calls, and their latency by the definition, slowly: for the tests beside it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from placedsl.algorithms.subgraph_calls.instance import build
from placedsl.algorithms.subgraph_calls.latency_kernel import CallInstance


def random_instance(
    seed: int,
    *,
    nodes: int = 6,
    devices: int = 3,
    slots: int | None = None,
    alike: bool = False,
    chains: bool = False,
    adjacent: bool = False,
    tied: bool = False,
) -> CallInstance:
    """A problem of a few nodes: widths, classes, memory limits, missing support, a host or none, all by chance.

    ``chains``: most nodes read from the one before; ``adjacent``: and half of them are of its class;
    ``tied``: what the last node reads is made of what the first of a chain reads.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, nodes + 1))
    accelerators = int(rng.integers(1, devices + 1))
    hosts = int(rng.integers(0 if accelerators > 1 else 1, 2))
    d = accelerators + hosts
    density = rng.choice([0.2, 0.4, 0.7])
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < density]
    if chains:
        pairs = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < (0.8 if v == u + 1 else 0.1)]
    if tied and n > 4:
        pairs = [(0, 1), (0, n - 2), *((v, v + 1) for v in range(1, n - 3)), (n - 3, n - 1), (n - 2, n - 1)]
    producer, read_tensor, reader = [], [], []
    for u in range(n):
        own = [v for w, v in pairs if w == u]
        # One tensor for all readers, or one for each.
        parts = [[v] for v in own] if rng.random() < 0.3 else [own]
        for part in parts:
            producer.append(u)
            read_tensor += [len(producer) - 1] * len(part)
            reader += part
    time = rng.choice([0.0, 1.0, 2.0, 3.5, 5.0], (d, n))
    transfer = rng.choice([0.0, 0.5, 1.0, 3.0], (d, len(producer)))
    if alike or rng.random() < 0.5:
        time[:accelerators], transfer[:accelerators] = time[0], transfer[0]
    host = np.arange(d) >= accelerators
    transfer[host] = 0.0
    time[host] *= rng.choice([1.0, 3.0])
    if hosts:
        time[:accelerators, rng.random(n) < 0.1] = np.inf
    memory = rng.choice([0.0, 1.0, 2.0], n)
    capacity = np.full(d, float(rng.choice([2.0, 3.0, 4.0, 100.0])))
    capacity[host] = np.inf
    groups = [rng.integers(0, n, n)] if rng.random() < 0.5 else []
    if adjacent:
        capacity[~host] = rng.choice([1.0, 2.0, 3.0, 4.0, 6.0], 1 if alike else accelerators)
        groups = [np.cumsum(rng.random(n) < 0.5)]
    q = int(rng.integers(1, 4)) if slots is None else slots
    return build(
        time=time, transfer=transfer, memory=memory, capacity=capacity, host=host, slots=q, groups=groups,
        producer=np.array(producer, dtype=np.int64), read_tensor=np.array(read_tensor, dtype=np.int64),
        reader=np.array(reader, dtype=np.int64),
    )  # fmt: skip


def latency(instance: CallInstance, place: list[int]) -> float:
    """The latency of places: what has all its inputs runs, until nothing is left; inf where something stays."""
    q, n = instance.slots, len(place)
    device = [p // q for p in place]
    if not all(math.isfinite(instance.time[device[v], v]) for v in range(n)):
        return math.inf
    for d in range(len(instance.capacity)):
        if sum(instance.memory[v] for v in range(n) if device[v] == d) > instance.capacity[d]:
            return math.inf
    if any(device[u] != device[v] for u in range(n) for v in range(n) if instance.unit[u] == instance.unit[v]):
        return math.inf
    readers = [
        instance.reader[instance.read_start[t] : instance.read_start[t + 1]].tolist()
        for t in range(len(instance.producer))
    ]
    reads = {v: [t for t, who in enumerate(readers) if v in who] for v in range(n)}
    jobs = [[v] for v in range(n) if instance.host[device[v]]]
    jobs += [
        [v for v in range(n) if place[v] == p] for p in sorted(set(place)) if not instance.host[p // q]
    ]  # fmt: skip
    finish: dict[int, float] = {}
    free = [0.0] * len(instance.capacity)
    while jobs:
        for job in jobs:
            d = device[job[0]]
            taken = {t for v in job for t in reads[v] if instance.producer[t] not in job}
            earlier = any(device[other[0]] == d and place[other[0]] < place[job[0]] for other in jobs)
            if all(instance.producer[t] in finish for t in taken) and not (earlier and not instance.host[d]):
                break
        else:
            return math.inf
        jobs.remove(job)
        start = max((finish[instance.producer[t]] for t in taken), default=0.0)
        end = start + sum(instance.time[d, v] for v in job)
        if not instance.host[d]:
            given = [t for t in range(len(readers)) if instance.producer[t] in job and set(readers[t]) - set(job)]
            end = max(start, free[d]) + end - start + sum(instance.transfer[d, t] for t in taken)
            end += sum(instance.transfer[d, t] for t in given)
            free[d] = end
        finish |= dict.fromkeys(job, end)
    return max(finish.values(), default=0.0)


def all_places(instance: CallInstance) -> Iterator[list[int]]:
    """Every way to give each node a place: colocation and memory are for the latency to say."""
    q = instance.slots
    places = [d * q + p for d in range(len(instance.capacity)) for p in range(1 if instance.host[d] else q)]
    for combination in itertools.product(places, repeat=len(instance.unit)):
        yield list(combination)


def optimum(instance: CallInstance) -> float:
    """The least latency of all places."""
    from placedsl.algorithms.subgraph_calls.instance import latency_of

    return min(latency_of(instance, np.array(place, dtype=np.int64)) for place in all_places(instance))
