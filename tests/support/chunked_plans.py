"""Plans whose stages hold several chunks of the model in turn, by enumeration of what the documents say, in fractions.

Nothing here is placedsl's: the optimum is computed from the workload's JSON.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from support.piper_workloads import BANDWIDTH, Asked, drawn

Edges = dict[tuple[int, int], int]


def drawn_with_chunks(seed: int, most: int = 6) -> tuple[Asked, int]:
    """A random problem, and how many chunks a stage holds."""
    asked, rng = drawn(seed, most), random.Random(seed)
    chunks, microbatches = rng.choice((2, 2, 3)), rng.choice((1, 2, 3, 4, 6, 12))
    copies = tuple(d for d in asked.copies if microbatches % d == 0)
    held = rng.choice(("pipeline", "pipeline", "pipeline", "batch", "sample"))
    together = rng.random() < 0.25
    return dataclasses.replace(
        asked, microbatches=microbatches, copies=copies, held=held, together=together, memory=rng.randint(6, 80)
    ), chunks  # fmt: skip


def spec_with_chunks(asked: Asked, chunks: int, file: str) -> str:
    """The spec, which refers to the workload by a file name."""
    return asked.spec(file).replace("parallelism {", f"parallelism {{\n    chunks = {chunks}")


def moments(stages: int, place: int, chunks: int, samples: int, held: str) -> set[tuple[int, ...]]:
    """What a copy holds of each chunk at once, pass after pass; ``place``: of its stage, from 0."""
    if held == "sample":
        return {tuple(int(c == k) for c in range(chunks)) for k in range(chunks)}
    if held == "batch":
        return {(samples,) * chunks}
    forth = [c for first in range(0, samples, stages) for c in range(chunks) for _ in range(stages)]
    back = [chunks - 1 - c for c in forth]
    ahead = min(2 * (stages - place - 1) + (chunks - 1) * stages + 1, len(forth))
    now, out = [0] * chunks, set()
    for k, c in enumerate(forth):
        if k >= ahead:
            now[back[k - ahead]] -= 1
        now[c] += 1
        out.add(tuple(now))
    return out


def optimum_with_chunks(asked: Asked, chunks: int, may_take: Callable[[int], bool] = lambda _: True) -> Fraction | None:
    """The least largest time per sample of a stage; None where there is no plan.  ``may_take``: so many devices."""
    nodes = {node["id"]: node for node in asked.workload["nodes"]}
    edges = {(e["sourceId"], e["destId"]): e["communicationCost"] for e in asked.workload["edges"]}
    best: Fraction | None = None
    for copies in asked.copies:
        for stages in range(1, asked.devices // (copies * min(asked.tensor)) + 1):
            if asked.held == "pipeline" and asked.microbatches % (copies * stages):
                continue
            for at in _positions(asked, nodes, edges, stages * chunks, stages):
                loads = [
                    [(t, _load(asked, nodes, edges, at, (place, stages, chunks), copies, t)) for t in asked.tensor]
                    for place in range(stages)
                ]
                for chosen in product(*loads):
                    known = [load for _, load in chosen if load is not None]
                    taken = copies * sum(t for t, _ in chosen)
                    if len(known) < stages or taken > asked.devices or not may_take(taken):
                        continue
                    best = max(known) if best is None else min(best, max(known))
    return best


def _positions(
    asked: Asked, nodes: dict[int, dict[str, Any]], edges: Edges, parts: int, stages: int
) -> Iterator[dict[int, int]]:
    """Every way to divide the nodes into so many parts, along which work goes forward."""
    for chosen in product(range(parts), repeat=len(nodes)):
        at = dict(zip(nodes, chosen, strict=True))
        if len(set(chosen)) < parts or any(at[u] > at[v] for u, v in edges):
            continue
        if asked.together and any(at[u] != at[v] for u in nodes for v in nodes if nodes[u]["name"] == nodes[v]["name"]):
            continue
        yield at


def _load(
    asked: Asked, nodes: dict[int, dict[str, Any]], edges: Edges, at: dict[int, int], stage: tuple[int, int, int],
    copies: int, degree: int,
) -> Fraction | None:  # fmt: skip
    """Seconds per sample of a stage with the best options that fit; None where none do."""
    place, stages, chunks = stage
    own = sorted(v for v in nodes if at[v] % stages == place)
    options = [nodes[v]["TMPCs"].get(str(degree), []) for v in own]
    if not all(options):
        return None
    moved = Fraction(0)
    for (u, v), size in edges.items():
        if (u in own) != (v in own):
            inside, key, other = (v, "syncTimeFw", u) if v in own else (u, "syncTimeBw", v)
            moved += 2 * (size + nodes[inside]["TMPCs"][str(degree)][0][key][str(other)])
    period = {"sample": 1, "round": copies, "batch": asked.microbatches}[asked.exchange]
    held = moments(stages, place, chunks, asked.microbatches // copies, asked.held)
    best: Fraction | None = None
    for taken in product(*options):
        stash = max(
            sum(o["memoryUsageA"] * now[at[v] // stages] for v, o in zip(own, taken, strict=True)) for now in held
        )
        if stash + sum(o["memoryUsageB"] for o in taken) > asked.memory:
            continue
        weights = Fraction(sum(o["parameterSize"] for o in taken), BANDWIDTH)
        time = (sum(Fraction(o["timePerSample"]) for o in taken) + moved / BANDWIDTH) / copies
        load = time + Fraction(4 * (copies - 1), copies) * weights / period
        best = load if best is None else min(best, load)
    return best
