"""Random small specs whose devices stream what does not fit, and what their placements cost by plain enumeration.

Loads without streaming come from :mod:`support.brute_force`; what is streamed, and peaks of activations, are worked out
here from the numbers of the problem alone, step by step.
"""

from __future__ import annotations

import random

import numpy as np

from placedsl.problem.problem import Problem
from support import brute_force


def streaming_spec(seed: int, *, peak: bool = False, links: bool = False, clusters: bool = False) -> str:
    """A spec with at most a few thousand placements: rooms below, at and above what stages hold."""
    rng = random.Random(f"streaming {seed}")
    families = rng.choice([("gpu", 2), ("gpu", 3), ("gpu", 1, "tpu", 1), ("gpu", 2, "tpu", 1), ("gpu", 1, "tpu", 2)])
    families = rng.choice([("gpu", 1), ("gpu", 2), ("gpu", 1, "tpu", 1)]) if clusters else families
    hosts = rng.choice([0, 0, 1]) if not links and not clusters else 0
    devices = sum(families[1::2]) * (1 + clusters) + hosts
    training = rng.random() < 0.25
    nodes = rng.randint(1, {2: 8, 3: 6, 4: 5}[devices] // (2 if training else 1))
    unit = rng.choice(["MiB", "kB", "GB"])
    scale = {"MiB": 2.0**20, "kB": 1e3, "GB": 1e9}[unit]
    sizes = [rng.choice([0, 1, 2, 3, 5, 0.7]) for _ in range(nodes * (1 + training))]
    lines = ["graph {"]
    for number, size in enumerate(sizes):
        part, v = ("f", "b")[number // nodes], number % nodes
        time = rng.choice([0, 1, 2, 3, 5, 8]) / rng.choice([1, 1, 3])
        times = f"accelerator: {time:.9g} ms, host: {rng.choice([3, 7, 12])} ms"
        if "tpu" in families and rng.random() < 0.3:
            times += f", tpu: {rng.choice([1, 4])} ms"
        extra = ", backward = true" * (part == "b")
        extra += f", group = {v}" if training or rng.random() < 0.2 else ""
        lines.append(
            f"    node {part}{v} {{ time = {{{times}}}, memory = {size} {unit}, "
            f"output = {rng.choice([0, 1, 2, 4])} {unit}{extra} }}"
        )
    for u in range(nodes):
        for v in range(u + 1, nodes):
            if rng.random() < 1.6 / nodes:
                lines.append(f"    f{u} -> f{v}")
                lines += [f"    b{v} -> b{u}"] if training else []
        if training:
            lines.append(f"    f{u} -> b{u}")
    lines.append("}")
    whole = sum(sizes)
    lines += ["cluster server[2] {"] if clusters else []
    for name, count in zip(families[::2], families[1::2], strict=True):
        room = rng.choice([0, 0.5, whole / 2, whole / devices, sum(sizes[: rng.randint(1, nodes)]), whole, 2 * whole])
        # About as long as the work: what is streamed decides.
        rate = scale * rng.choice([0.2, 1, 4]) * 1e3
        reserve = "peak" if peak else f"{rng.choice([0, 0, 1, 0.4, 3]):g} {unit}"
        said = f"memory = {room:.12g} {unit}, streams = {rate:.12g} B/s"
        said += f", reserve = {reserve}" if peak or rng.random() < 0.7 else ""
        streams = name == families[0] or rng.random() < 0.7
        lines.append(f"device {name}[{count}]: accelerator {{ {said if streams else f'memory = {room} {unit}'} }}")
    lines += [f"interconnect {{ bandwidth = {scale * 4e3:g} B/s }}", "}"] if clusters else []
    if hosts:
        said = f" {{ memory = {rng.choice([1, 4])} {unit}, streams = {scale * 2e3:g} B/s }}"
        lines.append(f"device cpu: host{said if rng.random() < 0.5 else ''}")
    bandwidth = f"{{ bandwidth = {scale * rng.choice([500, 2000]):g} B/s }}"
    if links:
        lines += [f"link {a} <-> {b} {bandwidth}" for a in families[::2] for b in families[::2] if a <= b]
    lines += [f"interconnect {bandwidth}", "minimize time_per_sample"]
    rules = ["contiguous"] if rng.random() < 0.6 else []
    if any("group" in line for line in lines) and rng.random() < 0.6:
        rules.append("colocated by group")
    return "\n".join([*lines, *(["subject to"] if rules else []), *(f"    {rule}" for rule in rules)]) + "\n"


def streamed(problem: Problem, every: np.ndarray) -> np.ndarray:
    """How long each device streams in each placement, a row of devices each."""
    out = np.zeros((len(every), len(problem.machine.devices)))
    for d, device in enumerate(problem.machine.devices):
        rate = device.attributes.get("streams", 0.0)
        if not rate:
            continue
        for row, placed in enumerate(every):
            here = np.flatnonzero(placed == d).tolist()
            if here:
                aside = peak(problem, here) if device.reserves_peak else device.attributes.get("reserve", 0.0)
                needed = sum(float(problem.graph.memory[v]) for v in here) + aside
                out[row, d] = max(needed - device.memory, 0.0) / rate
    return out


def order(problem: Problem) -> list[int]:
    """All nodes: of those whose inputs are there, always the one that stands first."""
    edges = set(zip(problem.graph.edge_source.tolist(), problem.graph.edge_target.tolist(), strict=True))
    out: list[int] = []
    while len(out) < problem.graph.nodes:
        out.append(
            min(
                v for v in range(problem.graph.nodes)
                if v not in out and all(u in out for u, w in edges if w == v)
            )
        )  # fmt: skip
    return out


def peak(problem: Problem, here: list[int]) -> float:
    """The most bytes that lie on a device while it runs its nodes, one after another."""
    graph = problem.graph
    readers = [set(graph.edge_target[graph.edge_tensor == t].tolist()) for t in range(graph.tensors)]
    left = [v for v in order(problem) if v in here]
    lying: set[int] = set()
    most = 0.0
    while left:
        v = left.pop(0)
        lying |= {t for t in range(graph.tensors) if graph.tensor_producer[t] == v or v in readers[t]}
        most = max(most, sum(float(problem.size[t]) for t in lying))
        lying = {t for t in lying if readers[t] & set(left)}
    return most


def best(problem: Problem) -> float:
    """The least time per sample over all placements that are allowed."""
    every = brute_force.placements(problem)
    every = every[brute_force.allowed(problem, every)]
    return float((brute_force.loads(problem, every) + streamed(problem, every)).max(axis=1).min())
