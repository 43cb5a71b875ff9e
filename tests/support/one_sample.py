"""Small random specs for the schedules of one sample, and their least latency by enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator

import numpy as np

from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem

#: Rules of a dataflow spec: nothing shared, devices, ports, links, and more than one of these.
SHARED = ((), ("sequential",), ("congestion",), ("congestion by link",), ("sequential", "congestion by port"))


def random_graph(rng: np.random.Generator, training: bool) -> list[str]:
    """An inline graph: times by kind of device, memory, outputs; of training, each node has its backward pass."""
    n = int(rng.integers(2, 4)) if training else int(rng.integers(3, 6))
    whole = rng.random() < 0.5
    edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.45]

    def number(low: float, high: float) -> float:
        return float(rng.integers(int(low), int(high) + 1)) if whole else round(float(rng.uniform(low, high)), 3)

    lines = ["graph {"]
    for suffix, backward in (("", "false"), ("b", "true")) if training else (("", "false"),):
        for v in range(n):
            fast, slow = number(0, 5), number(1, 9)
            time = f"accelerator: {fast} s" if rng.random() < 0.15 else f"accelerator: {fast} s, host: {slow} s"
            lines.append(
                f"    node n{v}{suffix} {{ time = {{{time}}}, memory = {int(rng.integers(0, 4))} GiB, "
                f"output = {number(0, 4)} GiB, backward = {backward}, group = {v} }}"
            )
    lines += [f"    n{u} -> n{v}" for u, v in edges]
    if training:
        lines += [f"    n{v}b -> n{u}b" for u, v in edges] + [f"    n{n - 1} -> n{n - 1}b", f"    n{0} -> n{0}b"]
    return [*lines, "}"]


def random_calls(seed: int) -> str:
    """A spec for schedule calls: one or two calls an accelerator, memory, training graphs colocated."""
    rng = np.random.default_rng(seed)
    training = bool(rng.random() < 0.35)
    pieces = int(rng.integers(1, 3))
    lines = random_graph(rng, training)
    lines += [f"device gpu[{int(rng.integers(1, 3))}]: accelerator {{ memory = {int(rng.integers(4, 9))} GiB }}"]
    lines += ["device cpu: host", "interconnect { bandwidth = 1 GiB/s }"]
    lines += [f"schedule calls {{ pieces = {pieces} }}", "minimize latency", "subject to", "    memory"]
    lines += ["    colocated by group"] if training else []
    return "\n".join(lines) + "\n"


def random_dataflow(seed: int) -> str:
    """A spec for schedule dataflow: unlike devices, directed links, a way over two of them, all that is shared."""
    rng = np.random.default_rng(seed)
    lines = random_graph(rng, False)
    lines += [f"device gpu[2]: accelerator {{ memory = {int(rng.integers(5, 12))} GiB }}", "device cpu: host"]
    if rng.random() < 0.5:
        lines += ["interconnect { bandwidth = 2 GiB/s, latency = 1 s }"]
    else:
        lines += [
            "link gpu[1] -> cpu { bandwidth = 1 GiB/s, latency = 1 s }",
            "link cpu -> gpu[1] { bandwidth = 4 GiB/s }",
        ]
        lines += ["link gpu[2] <-> cpu { bandwidth = 2 GiB/s }"]  # gpu[1] to gpu[2] by way of the host
    lines += ["schedule dataflow", "minimize latency", "subject to", "    memory"]
    lines += [f"    {rule}" for rule in SHARED[seed % len(SHARED)]]
    return "\n".join(lines) + "\n"


def least_of_calls(problem: Problem) -> float:
    """Over all placements and all numbers of calls, by the evaluator."""
    calls = [problem.execution.slots if accelerator else 1 for accelerator in problem.accelerators]
    choices = [(d, p) for d, most in enumerate(calls) for p in range(1, most + 1)]
    best = math.inf
    for chosen in itertools.product(choices, repeat=problem.graph.nodes):
        values = {"piece": {(v,): float(p) for v, (_, p) in enumerate(chosen)}}
        found = evaluate(problem, [d for d, _ in chosen], values)
        if not found.violations:
            best = min(best, found.objectives[0])
    return best


def placements(problem: Problem) -> Iterator[list[int]]:
    """Every placement that fits into memory."""
    for place in itertools.product(range(len(problem.machine.devices)), repeat=problem.graph.nodes):
        held = np.bincount(place, problem.graph.memory, minlength=len(problem.machine.devices))
        supported = np.isfinite(problem.time[np.arange(len(place)), list(place)]).all()
        if supported and (held <= problem.device_memory).all():
            yield list(place)


def least_of_dataflow(problem: Problem) -> float:
    """Over all placements and all orders of what may not overlap, by appending one task after the other."""
    best = math.inf
    for place in placements(problem):
        best = _best_order(problem, place, best)
    return best


def latency_of(problem: Problem, place: list[int]) -> float:
    """The least latency of one placement over all orders of what may not overlap."""
    return _best_order(problem, place, math.inf)


def _best_order(problem: Problem, place: list[int], best: float) -> float:
    graph, moves = problem.graph, problem.device_to_device
    assert moves is not None
    congestion = problem.constraint("congestion")
    length: list[float] = [float(problem.time[v, d]) for v, d in enumerate(place)]
    shares: list[list[Hashable]] = [[("device", d)] if problem.constraint("sequential") else [] for d in place]
    before: list[set[int]] = [set() for _ in place]
    task_of: dict[tuple[int, int], int] = {}
    for tensor, reader in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
        maker = int(graph.tensor_producer[tensor])
        if place[maker] == place[reader]:
            before[reader].add(maker)
            continue
        key = tensor, place[reader]
        if key not in task_of:
            task_of[key] = len(length)
            length.append(float(moves.time(tensor, place[maker], place[reader])))
            before.append({maker})
            by = congestion.by if congestion else ""
            ports: list[Hashable] = [("out", place[maker]), ("in", place[reader])]
            links: list[Hashable] = [("link", int(k)) for k in moves.hops(place[maker], place[reader])]
            shares.append(ports if by == "port" else links if by == "link" else [])
        before[reader].add(task_of[key])
    count = len(length)
    if not all(map(math.isfinite, length)):
        return best
    shares = [ways if x > 0 else [] for ways, x in zip(shares, length, strict=True)]
    tail = list(length)
    for _ in range(count):
        for task in range(count):
            for other in before[task]:
                tail[other] = max(tail[other], length[other] + tail[task])

    def go(end: dict[int, float], free: dict[Hashable, float], best: float) -> float:
        if len(end) == count:
            return min(best, max(end.values(), default=0.0))
        ready = [task for task in range(count) if task not in end and before[task] <= end.keys()]
        alone = [task for task in ready if not shares[task]]
        for task in alone[:1] or ready:
            begin = max([*(end[b] for b in before[task]), *(free.get(way, 0.0) for way in shares[task])], default=0.0)
            if begin + tail[task] >= best - 1e-12:
                if task in alone:
                    return best
                continue
            over = begin + length[task]
            best = go({**end, task: over}, {**free, **dict.fromkeys(shares[task], over)}, best)
        return best

    return go({}, {}, best)
