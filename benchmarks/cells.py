"""Graphs like NASNet's: wide cells, each fed by the two before it; their ideals are beyond counting.

A cell has blocks that stand side by side.  A block adds two branches up, each a row of small operators that begins at
one of the two cells before or at an earlier block, or passes it on as it is; what no block of the cell reads is
concatenated.  Some cells halve the resolution.  Times and sizes are drawn at random around those of such operators.

    python benchmarks/cells.py --cells 40 > nasnet.json      # in the project's own format
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
from typing import Any

#: Operators of a separable convolution, applied twice: kind, and its time relative to that of a pointwise convolution.
_SEPARABLE = (("relu", 0.1), ("depthwise", 0.6), ("pointwise", 1.0), ("batchnorm", 0.15))
_BLOCKS = 5
#: Bytes of a feature map at full resolution, and milliseconds of a pointwise convolution on it.
_MAP, _POINTWISE = 4 * 2**20, 0.4


def graph(cells: int, seed: int = 0, *, training: bool = False) -> dict[str, Any]:
    """A graph of about 60 operators a cell, twice that for training, as the project's own JSON has it."""
    rng = random.Random(seed)
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, str]] = []

    def operator(name: str, share: float, scale: float, sources: list[str]) -> str:
        nodes.append(
            {
                "id": name,
                "time": {"accelerator": round(_POINTWISE * share * scale * rng.uniform(0.6, 1.6), 6)},
                "memory": round(_MAP * scale * rng.uniform(0.2, 1.0)),
                "output": round(_MAP * scale * rng.uniform(0.8, 1.2)),
                "attributes": {"layer": name},
            }
        )
        edges.extend({"from": source, "to": name} for source in dict.fromkeys(sources))
        return name

    previous = last = operator("stem", 2.0, 1.0, [])
    scale = 1.0
    for c in range(cells):
        if c and c % max(1, cells // 3) == 0:
            scale /= 2.0
        states = [
            operator(f"cell{c}.fit{i}", 0.5, scale, [source]) for i, source in enumerate((previous, last))
        ]  # fmt: skip
        unread = set(states)
        for b in range(_BLOCKS):
            ends = []
            for side in range(2):
                source = rng.choice(states)
                unread.discard(source)
                end = source
                if rng.random() < 0.75:
                    for i, (kind, share) in enumerate(_SEPARABLE * 2):
                        end = operator(f"cell{c}.block{b}.{side}.{kind}{i // 4}", share, scale, [end])
                ends.append(end)
            states.append(operator(f"cell{c}.block{b}.add", 0.1, scale, ends))
            unread.add(states[-1])
        previous, last = last, operator(f"cell{c}.concat", 0.2, scale, sorted(unread))
    operator("head", 1.0, scale, [last])
    if training:
        _add_backward(nodes, edges)
    return {"format": "placedsl-graph", "version": 1, "time_unit": "ms", "nodes": nodes, "edges": edges}


def _add_backward(nodes: list[dict[str, Any]], edges: list[dict[str, str]]) -> None:
    """A backward operator for each: it takes twice as long, holds nothing, and shares a device with its forward one."""
    for node in list(nodes):
        time = {kind: 2 * t for kind, t in node["time"].items()}
        back = {**node, "id": f"{node['id']}.backward", "time": time, "memory": 0, "backward": True}
        nodes.append(back)
    edges.extend([{"from": f"{e['to']}.backward", "to": f"{e['from']}.backward"} for e in list(edges)])
    edges.append({"from": "head", "to": "head.backward"})


def blocks(branches: int, length: int, count: int) -> dict[str, Any]:
    """Blocks of parallel branches in a row, random times and transfers: of known width, and of any number of ideals."""
    rng = random.Random(1)
    step = branches * length + 1
    names = [f"n{i}" for i in range(count * step + 1)]
    edges: list[dict[str, str]] = []
    for fork in range(0, len(names) - 1, step):
        for first in range(fork + 1, fork + step, length):
            row = [names[fork], *names[first : first + length], names[fork + step]]
            edges += [{"from": u, "to": v} for u, v in itertools.pairwise(row)]
    nodes = [
        {"id": name, "time": {"accelerator": rng.uniform(1, 10)}, "transfer": rng.uniform(0.2, 2)} for name in names
    ]
    return {"format": "placedsl-graph", "version": 1, "nodes": nodes, "edges": edges}


def main() -> int:
    """Write one graph to standard output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--training", action="store_true")
    arguments = parser.parse_args()
    json.dump(graph(arguments.cells, arguments.seed, training=arguments.training), sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
