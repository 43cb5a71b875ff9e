"""Graphs of large transformers, operator by operator, in the sizes of Moirai's Table IV, and specs for them.

A layer is a graph of 12 operators a head and 11 more, which gives the paper's numbers of operators to the last one
(Zhang et al. 2023, Table IV; the 9,480 operators of GPT-3 1.3B are 24 layers).  GPT-3 is a chain of such layers;
Swin a chain of four stages, each with a quarter of the tokens and twice the channels of the one before; AlphaFold2 two
tracks whose layers alternate, each biased by what the other one made last.  Times are a roofline of operations and
bytes in half precision on the devices of Table III, each off by up to a tenth, drawn from the seed; links are the
bandwidths of that table.

    python benchmarks/generated.py write FOLDER --model gpt-3 --size 330M --scenario inter-server
    python benchmarks/generated.py table        # reading, fusing and elaborating all of them: seconds and memory
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Bytes of a number.
_HALF = 2
#: Tokens of GPT-3's input, Swin's at 1100 x 1100 in patches of 4, AlphaFold2's 128 sequences of 256 residues.
_TOKENS = {"gpt-3": 2048, "swin-transformer": 280 * 280, "alphafold2": 128 * 256}
#: How many tokens each token attends to.
_SPAN = {"gpt-3": 2048, "swin-transformer": 49, "alphafold2": 256}
#: Channels within the feed-forward part, by channels outside.
_WIDER = {"gpt-3": 4, "swin-transformer": 4, "alphafold2": 10}


@dataclass(frozen=True)
class Architecture:
    """A row of Table IV: ``operators`` and ``coarsened`` are the numbers printed there."""

    layers: int
    hidden: int
    heads: int
    operators: int
    coarsened: int


ARCHITECTURES = {
    ("swin-transformer", "1.8B"): Architecture(32, 512, 16, 6496, 5204),
    ("swin-transformer", "6.6B"): Architecture(48, 768, 24, 14352, 11512),
    ("swin-transformer", "13B"): Architecture(56, 1024, 32, 22120, 17947),
    ("gpt-3", "330M"): Architecture(24, 1024, 16, 4872, 3682),
    ("gpt-3", "1.3B"): Architecture(24, 2048, 32, 9480, 7308),
    ("gpt-3", "2.7B"): Architecture(32, 2560, 32, 12640, 9825),
    ("gpt-3", "13B"): Architecture(40, 5120, 40, 19640, 15283),
    ("alphafold2", "87M"): Architecture(48, 256, 8, 5136, 3618),
    ("alphafold2", "930M"): Architecture(64, 512, 16, 12992, 9252),
    ("alphafold2", "2.4B"): Architecture(96, 1024, 32, 37920, 26824),
    ("alphafold2", "3.2B"): Architecture(128, 1024, 32, 50560, 35096),
}
#: What is fused, so that about as many operators are left as in the paper.
RULES = {
    "gpt-3": ("matmul + add", "matmul + add + gelu"),
    "swin-transformer": (
        "scale + mask + softmax",
        "matmul + add + gelu",
        "matmul + add + residual",
        "matmul + residual",
    ),
    "alphafold2": ("matmul + add", "scale + mask"),
}


@dataclass(frozen=True)
class Kind:
    """A device: its name, GB of memory, operations a second, bytes of memory a second."""

    name: str
    memory: int
    operations: float
    bandwidth: float


#: Table III, with the vendors' single-precision rates and memory bandwidths.
SCENARIOS = {
    "inter-server": (
        Kind("rtx2080ti", 11, 13.4e12, 616e9), Kind("t4", 16, 8.1e12, 320e9), Kind("p4", 8, 5.5e12, 192e9),
        Kind("rtx3060ti", 8, 16.2e12, 448e9),
    ),
    "intra-server": (
        Kind("v100a", 32, 15.7e12, 900e9), Kind("v100b", 32, 15.7e12, 900e9), Kind("p100a", 16, 10.6e12, 732e9),
        Kind("p100b", 16, 10.6e12, 732e9),
    ),
}  # fmt: skip
#: Table III: Gbit/s from the device of a row to that of a column.
BANDWIDTHS = {
    "inter-server": (
        (0.0, 44.26, 32.92, 44.28), (42.39, 0.0, 35.32, 44.51), (33.2, 35.31, 0.0, 32.95), (42.08, 43.22, 33.28, 0.0),
    ),
    "intra-server": (
        (0.0, 1170.04, 626.10, 610.56), (1148.16, 0.0, 618.98, 581.09), (630.43, 609.82, 0.0, 571.96),
        (622.67, 575.08, 581.35, 0.0),
    ),
}  # fmt: skip


class _Writer:
    """Collects operators and edges."""

    def __init__(self, kinds: tuple[Kind, ...], seed: int) -> None:
        self.kinds, self.rng = kinds, random.Random(seed)
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[dict[str, str]] = []
        self.output: dict[str, int] = {}
        self.layer = 0

    def add(self, name: str, kind: str, operations: float, output: int, sources: list[str], weights: int = 0) -> str:
        """An operator; ``output`` and ``weights`` are counts of numbers."""
        read = sum(self.output[source] for source in sources)
        moved = _HALF * (read + output + weights)
        time = {
            k.name: float(
                f"{1e6 * max(operations / k.operations, moved / k.bandwidth) * self.rng.uniform(0.9, 1.1):.4g}"
            )
            for k in self.kinds
        }
        self.nodes.append(
            {
                "id": name, "time": time, "memory": _HALF * weights, "output": _HALF * output,
                "attributes": {"type": kind, "layer": self.layer},
            }
        )  # fmt: skip
        self.edges.extend({"from": source, "to": name} for source in sources)
        self.output[name] = output
        return name


def graph(model: str, size: str, scenario: str = "inter-server", seed: int = 0) -> dict[str, Any]:
    """The graph as the project's own JSON has it; the same for the same arguments."""
    shape = ARCHITECTURES[model, size]
    writer = _Writer(SCENARIOS[scenario], seed)
    tracks = [""] * (2 if model == "alphafold2" else 1)
    for layer in range(shape.layers):
        writer.layer = layer
        track = layer % len(tracks)
        stage = _stage(layer, shape.layers) if model == "swin-transformer" else 0
        bias = tracks[1 - track] if len(tracks) > 1 else ""
        tokens, channels = _TOKENS[model] // 4**stage, shape.hidden * 2**stage
        tracks[track] = _layer(writer, layer, (tokens, channels, _SPAN[model], _WIDER[model]), shape.heads,
                               tracks[track], bias)  # fmt: skip
    return {
        "format": "placedsl-graph", "version": 1, "time_unit": "us", "nodes": writer.nodes, "edges": writer.edges,
    }  # fmt: skip


def _stage(layer: int, layers: int) -> int:
    """Swin's stages: two layers, two, all but eight, four."""
    return 0 if layer < 2 else 1 if layer < 4 else 2 if layer < layers - 4 else 3


def _layer(writer: _Writer, number: int, sizes: tuple[int, int, int, int], heads: int, before: str, bias: str) -> str:
    """One layer; its last operator is given back.  ``bias``: what the attention of this layer is biased by."""
    tokens, channels, span, wider = sizes
    name, own, add = f"l{number}", channels // heads, writer.add
    whole, part, scores = tokens * channels, tokens * (channels // heads), tokens * span
    into = [before] if before else []
    start = add(f"{name}.norm1", "layernorm", 8.0 * whole, whole, into, 2 * channels)
    outputs = []
    for head in range(heads):
        h = f"{name}.h{head}"
        ends = {}
        for which in "qkv":
            product = add(f"{h}.{which}", "matmul", 2.0 * part * channels, part, [start], channels * own)
            ends[which] = add(f"{h}.{which}_bias", "add", float(part), part, [product], own)
        turned = add(f"{h}.turn", "transpose", 0.0, part, [ends["k"]])
        product = add(f"{h}.scores", "matmul", 2.0 * scores * own, scores, [ends["q"], turned])
        scaled = add(f"{h}.scale", "scale", float(scores), scores, [product])
        masked = add(f"{h}.mask", "mask", float(scores), scores, [scaled, *([bias] if bias else [])])
        soft = add(f"{h}.softmax", "softmax", 5.0 * scores, scores, [masked])
        outputs.append(add(f"{h}.context", "matmul", 2.0 * scores * own, part, [soft, ends["v"]]))
    joined = add(f"{name}.concat", "concat", 0.0, whole, outputs)
    product = add(f"{name}.out", "matmul", 2.0 * whole * channels, whole, [joined], channels * channels)
    biased = add(f"{name}.out_bias", "add", float(whole), whole, [product], channels)
    middle = add(f"{name}.residual1", "residual", float(whole), whole, [biased, *into])
    normed = add(f"{name}.norm2", "layernorm", 8.0 * whole, whole, [middle], 2 * channels)
    inner = whole * wider
    product = add(f"{name}.up", "matmul", 2.0 * inner * channels, inner, [normed], channels * channels * wider)
    biased = add(f"{name}.up_bias", "add", float(inner), inner, [product], channels * wider)
    active = add(f"{name}.gelu", "gelu", 8.0 * inner, inner, [biased])
    product = add(f"{name}.down", "matmul", 2.0 * inner * channels, whole, [active], channels * channels * wider)
    return add(f"{name}.residual2", "residual", float(whole), whole, [product, middle])


def spec(file: str, model: str, scenario: str, *, fused: bool = True, memory: float = 1.0) -> str:
    """The text of a spec for a graph file that stands beside it; ``memory``: the share of all that there is."""
    kinds = SCENARIOS[scenario]
    lines = [f'graph from "{file}"', ""]
    lines += [f"fuse {rule}" for rule in RULES[model]] + [""] if fused else []
    lines += [f"device {k.name}: accelerator {{ memory = {k.memory * memory:g} GB }}" for k in kinds]
    for a, row in zip(kinds, BANDWIDTHS[scenario], strict=True):
        lines += [
            f"link {a.name} -> {b.name} {{ bandwidth = {r:g} Gbit/s }}" for b, r in zip(kinds, row, strict=True) if r
        ]
    lines += [
        "",
        "schedule dataflow",
        "minimize latency",
        "subject to",
        "    memory",
        "    sequential",
        "    congestion",
    ]
    return "\n".join(lines) + "\n"


def write(
    folder: Path, model: str, size: str, scenario: str, seed: int = 0, *, fused: bool = True, memory: float = 1.0
) -> Path:  # fmt: skip
    """Write graph and spec into a folder; the spec's path."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{model}-{size}-{scenario}"
    (folder / f"{name}.json").write_text(json.dumps(graph(model, size, scenario, seed)), encoding="utf-8")
    path = folder / f"{name}{'' if fused else '-plain'}.place"
    path.write_text(spec(f"{name}.json", model, scenario, fused=fused, memory=memory), encoding="utf-8")
    return path


_MEASURE = """
import resource, sys, time
from placedsl.api.spec import load
from placedsl.graph.fusion import fused_graph, matches
began = time.perf_counter()
spec = load(sys.argv[1])
loaded = time.perf_counter() - began
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
graph = spec.problem.graph
began = time.perf_counter()
unit = matches(graph.written, [said.split(" + ") for said, _ in graph.fusion.made]).unit
fused_graph(graph.written, unit, {}, [], one_kernel=True)
fusing = time.perf_counter() - began
began = time.perf_counter()
spec.check()
checked = time.perf_counter() - began
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(graph.written.nodes, graph.nodes, len(graph.edge_source), loaded, memory, fusing, checked, most)
"""
_HEAD = (
    "graph",
    "operators",
    "fused",
    "of the paper",
    "edges",
    "read, s",
    "MiB",
    "of which fusing, s",
    "program, s",
    "MiB",
)


def table(seed: int) -> None:
    """Seconds and MiB of reading, fusing and checking each graph, in a process of its own; and of its program."""
    print("| " + " | ".join(_HEAD) + " |")
    print("| --- " + "| ---: " * (len(_HEAD) - 1) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for (model, size), shape in ARCHITECTURES.items():
            path = write(Path(folder), model, size, "inter-server", seed)
            command = [sys.executable, "-c", _MEASURE, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            written, left, edges, *measured = done.stdout.split()
            read, memory, fusing, program, most = map(float, measured)
            print(
                f"| {model} {size} | {written} | {left} | {shape.coarsened} | {edges} | {read:.2f} | {memory:.0f} "
                f"| {fusing:.2f} | {program:.2f} | {most:.0f} |",
                flush=True,
            )


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("what", choices=("write", "table"))
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--model", choices=sorted({model for model, _ in ARCHITECTURES}))
    parser.add_argument("--size", choices=sorted({size for _, size in ARCHITECTURES}))
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="inter-server")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="without fusion")
    given = parser.parse_args()
    if given.what == "table":
        table(given.seed)
        return 0
    for model, size in ARCHITECTURES:
        if given.model in (None, model) and given.size in (None, size):
            print(write(given.folder, model, size, given.scenario, given.seed, fused=not given.plain))
    return 0


if __name__ == "__main__":
    sys.exit(main())
