"""Random small pipelines under rules of their own, and their optima by enumeration."""

from __future__ import annotations

import time

import numpy as np

import placedsl
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem
from support.brute_force import placements, time_per_sample

#: Seconds after which a search is given up.
_SECONDS = 10.0


def _graph(rng: np.random.Generator, nodes: int) -> list[str]:
    """A chain, a chain with residual edges, or branches that come together."""
    kind = rng.integers(3)
    odd = rng.integers(2)
    lines = []
    for v in range(nodes):
        time = rng.integers(2, 30) / (7 if odd else 1)
        slow = rng.choice([f", b: {time * rng.choice([0.7, 2.0, 1.9]):.4f} ms"] * 6 + [""])
        lines.append(
            f"    node n{v} {{ time = {{a: {time:.4f} ms{slow}}},"
            f" memory = {rng.integers(0, 9) * (997 if odd else 1024)} MB, output = {rng.integers(0, 40)} MiB,"
            f" layer = {v // 2}, cache = {rng.integers(0, 4)} }}"
        )
    edges = [(v, v + 1) for v in range(nodes - 1)]
    if kind == 1:
        edges += [(v, v + 3) for v in range(0, nodes - 3, 2)]
    if kind == 2:
        middle = int(rng.integers(1, nodes - 1))
        edges = [(0, v) if v <= middle else (v - 1, v) for v in range(1, nodes)]
        edges += [(v, middle + 1) for v in range(1, middle) if middle + 1 < nodes]
    return ["graph {", *lines, *(f"    n{u} -> n{v}" for u, v in edges), "}"]


def random_rules(rng: np.random.Generator, nodes: int, kinds: tuple[int, int]) -> list[str]:
    """Some of the forms that users write, with random numbers."""

    def node() -> str:
        return f"n{rng.integers(nodes)}"

    def family() -> str:
        return "ab"[rng.integers(2 if kinds[1] else 1)]

    def one() -> str:
        name = family()
        return f"{name}[{rng.integers(kinds['ab'.index(name)]) + 1}]"

    def number(low: int, high: int) -> int:
        return int(rng.integers(low, high))

    x = number(5, 120)
    pool = [
        f"{node()} on {one()}", f"not ({node()} on {one()})", f"{node()} on {one()} or {node()} on {one()}",
        f"sum(d in devices: d.price * used(d)) <= {number(2, 9)} USD/h",
        f"sum(d in devices: d.idle * used(d) + (d.peak - d.idle) * load(d) / {number(20, 90)} ms)"
        f" <= {number(200, 900)} W",
        f"count(d in {family()}: used(d)) <= {number(0, 3)}", f"devices_used <= {number(1, 4)}",
        f"devices_used >= {number(1, 4)}",
        f"forall d in devices: count(v in nodes: v on d) <= {number(2, nodes)}",
        f"forall d in {family()}: memory(d) + sum(v in nodes: v.cache * 1 GB * (v on d)) <= {number(6, 30)} GB",
        f"forall d in {family()}, e in {family()} where d != e: load(d) <= (1 + {x}%) * load(e)",
        f"forall d in devices, e in devices where d != e: used(d) and used(e) => load(d) <= (1 + {x}%) * load(e)",
        f"forall d in devices: abs(load(d) - mean(e in devices: load(e))) <= {x}% * mean(e in devices: load(e))",
        f"forall d in devices: used(d) => memory(d) >= {number(0, 12)} GB",
        f"forall d in {family()}: used(d) => load(d) >= {number(2, 30)} ms",
        f"max(d in devices: memory(d)) - min(d in devices: memory(d)) <= {number(3, 25)} GB",
        "forall d in devices, e in devices where d != e: count(v in nodes: v on d)"
        f" <= count(v in nodes: v on e) + {number(1, 4)}",
        f"sum(v in nodes, d in {family()}: v.memory * (v on d)) <= {x}% * sum(v in nodes: v.memory)",
        f"sum(d in {family()}: {node()} on d) == sum(d in {family()}: {node()} on d)",
        f"({node()} on {one()}) => not ({node()} on {one()})",
        f"({node()} on {one()}) => load({one()}) <= {number(10, 90)} ms",
        f"forall d in devices: ({node()} on d) => not ({node()} on d)",
        f"load({one()}) >= {number(2, 40)} ms or load({one()}) <= {number(2, 40)} ms",
        f"load({one()}) <= mean(d in {family()}: load(d)) + {number(0, 20)} ms",
        f"load({one()}) <= {x}% * load({one()})",
        f"load({one()}) <= {number(5, 60)} ms", f"time_per_sample <= {number(20, 120)} ms",
        f"forall d in devices: load(d) >= {number(1, 9)} ms", f"exists d in {family()}: used(d)",
        f"forall d in devices: ({node()} on d) * load(d) <= {number(10, 80)} ms",
        f"sum(d in devices: compute_time(d)) <= {number(40, 200)} ms", f"communication <= {number(1, 40)} ms",
        f"sum(d in {family()}: traffic(d, {one()})) <= {number(1, 60)} MiB",
        f"forall d in {family()}: count(v in nodes: v on d) != {number(1, 4)}",
        f"max(load({one()}), load({one()})) >= {number(5, 40)} ms",
        f"forall d in devices: load(d) <= {number(60, 100)}% * time_per_sample + {number(1, 20)} ms",
    ]  # fmt: skip
    chosen = rng.choice(len(pool), size=int(rng.integers(1, 4)), replace=False)
    return [f"    r{i}: {pool[k]}" for i, k in enumerate(chosen.tolist())]


def ruled_pipeline(seed: int) -> str:
    """The text of a spec."""
    rng = np.random.default_rng(seed)
    first = int(rng.integers(1, 4))
    kinds = (first, int(rng.integers(0, 5 - first)))
    nodes = int(rng.integers(4, 8 if sum(kinds) < 4 else 7))
    devices = [
        f"device {name}[{count}]: accelerator {{ memory = {rng.integers(8, 40)} GB, price = {rng.integers(1, 4)} USD/h,"
        f" idle = {rng.integers(20, 90)} W, peak = {rng.integers(150, 400)} W }}"
        for name, count in zip("ab", kinds, strict=True)
    ]
    schedule = rng.choice(["", "", "", "schedule overlapped", "schedule duplex"])
    return "\n".join([
        *_graph(rng, nodes), *devices, "interconnect { bandwidth = 8 GB/s }", schedule, "minimize time_per_sample",
        "subject to", *(["    memory"] if rng.integers(2) else []), "    contiguous", *random_rules(rng, nodes, kinds),
    ])  # fmt: skip


def optimum(problem: Problem) -> float:
    """The least value of a placement that the evaluator accepts; inf where there is none."""
    every = placements(problem)
    supported = np.isfinite(problem.time[np.arange(problem.graph.nodes), every]).all(axis=1)
    every = every[supported]
    value = time_per_sample(problem, every)
    for i in np.argsort(value, kind="stable").tolist():
        found = evaluate(problem, every[i].tolist())
        if not found.violations:
            return found.objectives[0]
    return float("inf")


def searched(text: str) -> tuple[float, float, bool, int]:
    """Value, bound, whether all is settled by the program over paths, and how many placements it told."""
    from placedsl.algorithms.exclusion import with_implied
    from placedsl.algorithms.pipelines.path_program.solve import solve

    problem = with_implied(placedsl.loads(text).problem)
    values, bounds = [float("inf")], [-float("inf")]

    def found(placement: np.ndarray) -> None:
        result = evaluate(problem, [int(d) for d in placement])
        assert not result.violations
        values.append(result.objectives[0])

    settled = solve(problem, found, bounds.append, deadline=time.monotonic() + _SECONDS)
    return min(values), max(bounds), settled, len(values) - 1


def refuted(text: str, threshold: float) -> tuple[bool, bool]:
    """Whether mixtures of paths refute a time per sample, and whether whole numbers of devices do."""
    from placedsl.algorithms.pipelines.path_program.instance import instance
    from placedsl.algorithms.pipelines.path_program.path_bound import priced
    from placedsl.algorithms.pipelines.path_program.path_rows import path_rows
    from placedsl.algorithms.pipelines.path_program.search import PathSearch

    known = instance(placedsl.loads(text).problem)
    assert known is not None
    search = PathSearch(known, lambda _: True, lambda _: None, lambda: None)
    choice, box = search._stages(threshold), search._box(threshold)
    assert choice is not None
    rows = path_rows(choice, box)
    assert rows is not None
    values, limits = rows.limits(box)
    base, goal = choice.table.base[rows.stages], choice.table.goal[rows.stages]
    mixed = priced(base, goal, values, limits, choice.table.ideals.count)
    return mixed.refuted is True, search._by_counts(choice, rows, values, limits)
