"""Problems of one sample: small ones by hand, and random ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placedsl.evaluation.evaluate import Evaluation, evaluate
from placedsl.machine.machine import Device, Link, Machine
from placedsl.machine.routes import transfer_times
from placedsl.problem.problem import Problem
from support.evaluation_problems import built_in, problem_of

INF = float("inf")


def calls_problem(edges, producers, time, transfer, kinds=("accelerator", "accelerator", "host"), pieces=1) -> Problem:
    """Schedule ``calls``: edges are (source, target, tensor), a tensor takes so long into and out of an accelerator."""
    memory = tuple(INF for _ in kinds)
    made = problem_of(edges, producers, time, transfer, kinds=kinds, device_memory=memory, schedule="calls")
    return replace(made, execution=replace(made.execution, slots=pieces))


def dataflow_problem(edges, producers, time, size=None, links=None, given=None, rules=()) -> Problem:
    """Schedule ``dataflow`` on accelerators: ``links`` are (source, target, bandwidth, latency), one way each.

    ``given``: t x D x D transfer times instead.  ``rules``: names as ``"sequential"`` or ``("congestion", "link")``.
    """
    devices = len(time[0])
    kinds = tuple("accelerator" for _ in range(devices))
    size = np.array([0.0] * len(producers) if size is None else size, dtype=float)
    named = tuple(Device(f"gpu[{d + 1}]", "gpu", "accelerator", INF) for d in range(devices))
    wires = tuple(Link(f"gpu[{a + 1}]", f"gpu[{b + 1}]", False, w, delay) for a, b, w, delay in links or ())
    asked = tuple(built_in(*([rule] if isinstance(rule, str) else rule)) for rule in rules)
    made = problem_of(
        edges, producers, time, list(size), kinds=kinds, device_memory=(INF,) * devices, schedule="dataflow",
        rules=asked,
    )  # fmt: skip
    machine = Machine(named, wires)
    between = transfer_times(machine, size, None if given is None else np.array(given, dtype=float))
    return replace(made, machine=machine, device_to_device=between)


def starts(*nodes, sent=None):
    """What an answer says of the run."""
    return {"start": {(v,): float(at) for v, at in enumerate(nodes)}, "sent": dict(sent or {})}


def run(problem: Problem, placement, values=None) -> Evaluation:
    """The evaluation, which breaks nothing."""
    found = evaluate(problem, placement, values)
    assert found.feasible, found.violations
    return found


def random_graph(rng: np.random.Generator, nodes: int, chance: float):
    """Edges and producers of a graph whose nodes make one or two tensors each, read by later nodes."""
    producers = [v for v in range(nodes) for _ in range(int(rng.integers(1, 3)))]
    edges = [
        (u, v, t)
        for t, u in enumerate(producers)
        for v in range(u + 1, nodes)
        if rng.random() < chance / (v - u) ** 0.5
    ]
    return edges, producers


def random_dataflow(rng: np.random.Generator, rules=()) -> Problem:
    """Up to nine nodes on up to four devices, some nodes and transfers of no length; links in a ring and more, or
    transfer times for each pair."""
    nodes, devices = int(rng.integers(2, 10)), int(rng.integers(2, 5))
    edges, producers = random_graph(rng, nodes, 0.5)
    time = rng.uniform(1, 9, (nodes, devices)) * (rng.random((nodes, 1)) < 0.85)
    if rng.random() < 0.4:
        given = rng.uniform(1, 9, (len(producers), devices, devices)) * (rng.random((len(producers), 1, 1)) < 0.85)
        return dataflow_problem(edges, producers, time, given=given, rules=rules)
    links = [(d, (d + 1) % devices, float(rng.uniform(0.5, 2)), float(rng.choice([0.0, 0.7]))) for d in range(devices)]
    extra = [(a, b) for a in range(devices) for b in range(devices) if a != b and rng.random() < 0.3]
    links += [(a, b, float(rng.uniform(0.5, 2)), 0.1) for a, b in extra if (a + 1) % devices != b]
    size = rng.uniform(0.5, 6, len(producers)) * (rng.random(len(producers)) < 0.85)
    return dataflow_problem(edges, producers, time, size, links, rules=rules)
