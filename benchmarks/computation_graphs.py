"""Random computation graphs like REGAL's (Paliwal et al. 2020), which MTPP is measured on: wide, 50 to 200 operators.

    python benchmarks/computation_graphs.py --family erdos-renyi --operators 110 --seed 1 > graph.json

Four families of random graphs are numbered at random and directed from the smaller number to the larger one.  An
operator makes up to as many tensors as it has readers, each with readers of its own, of which MTPP keeps the first one
with its readers; a tenth of the operators make none.  A sink, which takes no time, reads what nobody else
reads.  Sizes are drawn around 50, and the time of an operator is about that of reading and writing all its tensors.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from typing import Any

import networkx as nx

FAMILIES = ("erdos-renyi", "barabasi-albert", "watts-strogatz", "stochastic-block")
#: The graphs of the tables: so many operators of each family.
SIZES = (50, 80, 110, 140, 170, 200)
#: Mean and deviation of sizes, deviation of an operator's time, and how many operators make no tensor.
_SIZE, _SPREAD, _NOISE, _WITHOUT = 50.0, 10.0, 0.1, 0.1


def undirected(family: str, operators: int, seed: int) -> Any:
    """A random graph of a family."""
    match family:
        case "erdos-renyi":
            return nx.gnp_random_graph(operators, 0.05, seed=seed)
        case "barabasi-albert":
            return nx.barabasi_albert_graph(operators, 2, seed=seed)
        case "watts-strogatz":
            return nx.watts_strogatz_graph(operators, 4, 0.3, seed=seed)
        case _:
            sizes = [operators // 4 + (k < operators % 4) for k in range(4)]
            inside, between = 0.3, 0.01
            rows = [[inside if i == j else between for j in range(4)] for i in range(4)]
            return nx.stochastic_block_model(sizes, rows, seed=seed)


def graph(family: str, operators: int, seed: int) -> dict[str, Any]:
    """A graph as the project's own JSON has it; times in milliseconds, a byte takes as long as a unit of work."""
    rng = random.Random(f"{family} {operators} {seed}")
    number = list(range(operators))
    rng.shuffle(number)
    readers: list[list[int]] = [[] for _ in range(operators)]
    for u, v in undirected(family, operators, rng.randrange(2**31)).edges():
        readers[min(number[u], number[v])].append(max(number[u], number[v]))
    kept: list[list[int]] = []
    moved = [0.0] * operators  # bytes that each operator reads and makes, of all tensors
    sizes = []
    for v, own in enumerate(readers):
        rng.shuffle(own)
        tensors = rng.randint(1, len(own)) if own else 1
        none = rng.random() < _WITHOUT
        made = [0 if none else max(1, round(rng.gauss(_SIZE, _SPREAD))) for _ in range(tensors)]
        moved[v] += sum(made)
        of = [*range(tensors), *(rng.randrange(tensors) for _ in own[tensors:])]
        for w, tensor in zip(own, of, strict=False):
            moved[w] += made[tensor]
        sizes.append(made[0])
        kept.append([w for w, tensor in zip(own, of, strict=False) if tensor == 0] if own else [operators])
    time = [round(max(0.0, 1.0 + rng.gauss(0.0, _NOISE)) * amount, 3) for amount in moved]
    names = [*(f"v{v}" for v in range(operators)), "sink"]
    nodes = [
        {"id": name, "time": {"accelerator": spent}, "output": size}
        for name, spent, size in zip(names, [*time, 0.0], [*sizes, 0], strict=True)
    ]
    edges = [{"from": names[v], "to": names[w]} for v, own in enumerate(kept) for w in sorted(own)]
    return {"format": "placedsl-graph", "version": 1, "nodes": nodes, "edges": edges}


def main(arguments: Sequence[str]) -> int:
    """Write one."""
    parser = argparse.ArgumentParser(description="A random computation graph, as JSON.")
    parser.add_argument("--family", choices=FAMILIES, default=FAMILIES[0])
    parser.add_argument("--operators", type=int, default=110)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    json.dump(graph(asked.family, asked.operators, asked.seed), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
