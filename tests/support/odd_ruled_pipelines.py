"""Random small pipelines under rules, of unlike kinds: training, hosts, leaves without time, two sources, colocated
layers, and times and sizes of other magnitudes."""

from __future__ import annotations

import itertools
import re

import numpy as np

from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem
from support.ruled_pipelines import random_rules

#: More placements than this are not enumerated.
MOST_PLACEMENTS = 20_000
KINDS = ("chain", "residual", "leaves", "training", "two sources")


class _Text:
    """The nodes and edges of a spec."""

    def __init__(self, rng: np.random.Generator, host: bool, slow: bool) -> None:
        self.rng, self.host, self.slow = rng, host, slow
        self.nodes, self.edges = list[str](), list[tuple[int, int]]()

    def node(self, layer: int, time: int | None = None, memory: int | None = None, further: str = "") -> int:
        rng = self.rng
        took = (int(rng.integers(2, 30)) if time is None else time) / int(rng.choice([1, 7]))
        times = [f"a: {took:.6f} ms"]
        times += [f"b: {took * float(rng.choice([0.7, 2.0])):.6f} ms"] if self.slow else []
        times += [f"cpu: {took * float(rng.choice([1.5, 4.0, 10.0])):.6f} ms"] if self.host else []
        size = int(rng.integers(0, 9)) * int(rng.choice([997, 1024])) if memory is None else memory
        number = len(self.nodes)
        self.nodes.append(
            f"    node n{number} {{ time = {{{', '.join(times)}}}, memory = {size} MB,"
            f" output = {rng.integers(0, 40)} MiB, layer = {layer}, cache = {rng.integers(0, 4)}{further} }}"
        )
        return number


def _graph(rng: np.random.Generator, kind: str, text: _Text) -> None:
    count = int(rng.integers(2, 4) if kind == "training" else rng.integers(4, 7))
    for v in range(count):
        text.node(v if kind == "training" else v // 2)
    text.edges += [(v, v + 1) for v in range(count - 1)]
    if kind == "residual":
        text.edges += [(v, v + 2) for v in range(0, count - 2, 2)]
    if kind == "training":
        for v in range(count):
            back = text.node(count - 1 - v, further=", backward = true")
            text.edges.append((back - 1, back))
        text.edges += [(v, 2 * count - 1 - v) for v in range(count - 1)]
    if kind == "leaves":
        for _ in range(int(rng.integers(1, 3))):
            leaf = text.node(9, time=int(rng.choice([0, 0, 1])), memory=int(rng.choice([0, 0, 3000])))
            other = int(rng.integers(count))
            text.edges.append((other, leaf) if rng.integers(2) else (leaf, other))
    if kind == "two sources":
        text.edges.append((text.node(8), int(rng.integers(1, count))))


def odd_ruled_pipeline(seed: int) -> str:
    """The text of a spec."""
    rng = np.random.default_rng([77, seed])
    kind, host = KINDS[seed % len(KINDS)], bool(rng.integers(2))
    counts = int(rng.integers(1, 4)), int(rng.integers(0, 2))
    text = _Text(rng, host, bool(counts[1]))
    _graph(rng, kind, text)
    devices = [
        f"device {name}[{count}]: accelerator {{ memory = {rng.integers(8, 40)} GB, price = {rng.integers(1, 4)} USD/h,"
        f" idle = {rng.integers(20, 90)} W, peak = {rng.integers(150, 400)} W }}"
        for name, count in zip("ab", counts, strict=True)
        if count
    ]
    devices += ["device cpu: host { price = 0 USD/h, idle = 1 W, peak = 2 W }"] if host else []
    schedules = ["", "schedule pipedream"] if kind == "training" else ["", "", "schedule overlapped", "schedule duplex"]
    written = "\n".join([
        "graph {", *text.nodes, *(f"    n{u} -> n{v}" for u, v in text.edges), "}", *devices,
        "interconnect { bandwidth = 8 GB/s }", str(rng.choice(schedules)), "minimize time_per_sample", "subject to",
        *(["    memory"] if rng.integers(2) else []), "    contiguous",
        *(["    colocated by layer"] if kind == "training" or rng.integers(3) == 0 else []),
        *random_rules(rng, len(text.nodes), counts),
    ])  # fmt: skip
    return _scaled(written, float(rng.choice([1.0, 1e-5, 1e6])), float(rng.choice([1.0, 1e-3, 1e2])))


def _scaled(text: str, times: float, sizes: float) -> str:
    """The same with all times and all sizes multiplied."""
    text = re.sub(r"([0-9.]+) ms", lambda found: f"{float(found[1]) * times:.9g} ms", text)
    text = text.replace("bandwidth = 8 GB/s", f"bandwidth = {8.0 * sizes / times:.9g} GB/s")
    return re.sub(r"([0-9.]+) (MB|GB|MiB)(?!/s)", lambda found: f"{float(found[1]) * sizes:.6g} {found[2]}", text)


def least(problem: Problem) -> float:
    """The least value of a placement that the evaluator accepts; inf where there is none."""
    there = [np.flatnonzero(np.isfinite(row)).tolist() for row in problem.time]
    found = (evaluate(problem, list(placement)) for placement in itertools.product(*there))
    return min((one.objectives[0] for one in found if not one.violations), default=float("inf"))
