"""Tiny graphs on devices that are all alike, as plain numbers, and what their bounds are by enumeration.

Nothing here is placedsl's: costs are written down anew from the definition of MTPP (Xie et al. 2023, section 2), in
which a tensor that goes along all edges out of its maker is paid once by each block that has some of its operators and
not all.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from functools import cache

import numpy as np


@dataclass(frozen=True)
class TinyGraph:
    """``work`` and ``size`` of each operator's tensor, the ``readers`` of each, and the number of ``blocks``."""

    work: tuple[float, ...]
    size: tuple[float, ...]
    readers: tuple[tuple[int, ...], ...]
    blocks: int

    @property
    def simple(self) -> float:
        return max(*self.work, sum(self.work) / self.blocks)

    def spec(self, rules: str = "contiguous") -> str:
        nodes = "\n".join(
            f"    node v{v} {{ time = {{accelerator: {w!r} s}}, output = {s!r} B }}"
            for v, (w, s) in enumerate(zip(self.work, self.size, strict=True))
        )
        edges = "\n".join(f"    v{u} -> v{v}" for u, own in enumerate(self.readers) for v in own)
        return (
            f"graph {{\n{nodes}\n{edges}\n}}\ndevice tpu[{self.blocks}]: accelerator\n"
            "interconnect { bandwidth = 1 B/s }\nminimize time_per_sample\n"
            + (f"subject to\n    {rules}\n" if rules else "")
        )


def tiny_graph(seed: int) -> TinyGraph:
    """Up to six operators: sparse and dense, with hubs, ties, fractions and magnitudes that lie far apart."""
    rng = random.Random(f"tiny graph {seed}")
    count, blocks = rng.randint(1, 6), rng.choice([2, 2, 3, 3, 4, 5])
    if blocks > 3:
        count = min(count, 5)
    amounts = rng.choice([[0, 1, 2, 3, 5], [1 / 3, 0.1, 2.7, 7], [1, 1, 1], [0.001, 1, 1000], [0, 0, 10, 1]])
    sizes = rng.choice([[0, 1, 2], [1, 1], [0.25, 1 / 7, 3], [0.001, 50], [0]])
    dense = rng.choice([0.2, 0.4, 0.8])
    readers = [[v for v in range(u + 1, count) if rng.random() < dense] for u in range(count)]
    if rng.random() < 0.3:
        hub = rng.randrange(count)
        readers[hub] = list(range(hub + 1, count))
    return TinyGraph(
        tuple(float(rng.choice(amounts)) for _ in range(count)), tuple(float(rng.choice(sizes)) for _ in range(count)),
        tuple(tuple(own) for own in readers), blocks,
    )  # fmt: skip


def long_graph(seed: int) -> TinyGraph:
    """Four to nine operators that mostly follow one another."""
    rng = random.Random(f"long graph {seed}")
    count = rng.randint(4, 9)
    readers = [[v for v in range(u + 1, min(count, u + 3)) if rng.random() < 0.7] for u in range(count)]
    return TinyGraph(
        tuple(rng.choice([1.0, 2.0, 3.0, 0.5]) for _ in range(count)),
        tuple(rng.choice([0.0, 0.1, 0.5, 1.0, 5.0]) for _ in range(count)), tuple(map(tuple, readers)),
        rng.choice([2, 3] if count > 7 else [2, 3, 4]),
    )  # fmt: skip


@cache
def numbers(count: int, blocks: int) -> np.ndarray:
    """All ways to give a block to each of so many operators."""
    return np.array(list(itertools.product(range(blocks), repeat=count)), dtype=np.int64)


def loads(graph: TinyGraph, every: np.ndarray, blocks: int, transfers: bool = True) -> np.ndarray:
    """The load of each block."""
    out = np.stack([(every == b) @ np.array(graph.work) for b in range(blocks)], axis=1)
    for u, own in enumerate(graph.readers):
        if own and transfers:
            pins = every[:, [u, *own]]
            for b in range(blocks):
                has = (pins == b).sum(axis=1)
                out[:, b] += np.where((has > 0) & (has <= len(own)), graph.size[u], 0.0)
    return out


def in_order(graph: TinyGraph, every: np.ndarray) -> np.ndarray:
    """Which of them have no edge from a later block to an earlier one."""
    fine = np.ones(len(every), dtype=bool)
    for u, own in enumerate(graph.readers):
        for v in own:
            fine &= every[:, u] <= every[:, v]
    return fine


def optimum(graph: TinyGraph, *, ordered: bool = True) -> float:
    """The least largest load."""
    every = numbers(len(graph.work), graph.blocks)
    every = every[in_order(graph, every)] if ordered else every
    return float(loads(graph, every, graph.blocks).max(axis=1).min())


def superblocks(graph: TinyGraph, most: tuple[int, ...], *, ordered: bool = True) -> float:
    """The least T such that superblock b loads at most ``most[b]`` times T."""
    every = numbers(len(graph.work), len(most))
    every = every[in_order(graph, every)] if ordered else every
    return float((loads(graph, every, len(most)) / np.array(most)).max(axis=1).min())


def bottleneck(graph: TinyGraph, *, ordered: bool = True, transfers: bool = True) -> float:
    """The least load of the middle one of three blocks that works as much as the simple bound."""
    every = numbers(len(graph.work), 3)
    every = every[in_order(graph, every)] if ordered else every
    heavy = loads(graph, every, 3, False)[:, 1] >= graph.simple * (1 - 1e-9)
    return float(loads(graph, every, 3, transfers)[heavy, 1].min())


def guesses(graph: TinyGraph) -> list[float]:
    """The value of each guess at the bottleneck."""
    k = graph.blocks
    return [superblocks(graph, tuple(m for m in (b, 1, k - b - 1) if m)) for b in range(k)]
