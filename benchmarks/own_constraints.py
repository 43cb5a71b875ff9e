"""Twenty specs with rules of their own, on chains, residual and branching graphs and 8 to 64 devices.

    python benchmarks/own_constraints.py                          # all of them, this checkout
    python benchmarks/own_constraints.py --before PATH            # beside them, the checkout in that folder
    python benchmarks/own_constraints.py --only power --seconds 30

Each solve is a process of its own (``placedsl solve``, method auto) with a time limit; seconds are those of the whole
process.  ``--before`` takes a worktree of another commit, and both are run one after the other on each spec.  Kernels
have to be compiled on both sides (``python -m placedsl.planner.compile_kernels --wait``).  Graphs are made here: 34 to
642 operators with the times, weights, keys and values of transformers.  Prints a Markdown table, a row as soon as it
is known.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MIB, GIB = 2**20, 2**30


class Graph:
    """Nodes and edges of a graph, as they are added."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[dict[str, str]] = []

    def add(self, name: str, ms: float, mib: float, after: list[str], output: float = 16.0, **more: float | str) -> str:
        """A node that takes ``ms`` on a fast device and 1.9 times that on a slow one."""
        self.nodes.append({
            "id": name, "time": {"fast": ms, "slow": round(1.9 * ms, 4), "old": round(3.1 * ms, 4)},
            "memory": int(mib * MIB), "output": int(output * MIB),
            "attributes": {"parameters": int(mib * MIB), **more},
        })  # fmt: skip
        self.edges += [{"from": one, "to": name} for one in after]
        return name

    def text(self) -> str:
        """As the project's own JSON."""
        return json.dumps(
            {"format": "placedsl-graph", "version": 1, "time_unit": "ms", "nodes": self.nodes, "edges": self.edges}
        )


def chain(layers: int, layer_ms: float = 4.0, layer_mib: float = 400.0) -> Graph:
    """Embedding, like layers, head."""
    graph = Graph()
    at = graph.add("embed", 1.3, 900, [], part="ends", cache=0)
    for i in range(layers):
        at = graph.add(f"layer{i}", layer_ms, layer_mib, [at], part="layer", layer=i, cache=8)
    graph.add("head", 3.1, 900, [at], output=1.0, part="ends", cache=0)
    return graph


def residual(layers: int) -> Graph:
    """Like layers of ten operators with two residual edges each."""
    graph = Graph()
    at = graph.add("embed", 1.3, 900, [], part="ends", cache=0)
    for i in range(layers):
        tag: dict[str, float | str] = {"layer": i, "cache": 0}
        one = graph.add(f"norm{i}", 0.08, 1, [at], part="norm", **tag)
        qkv = graph.add(f"qkv{i}", 0.9, 96, [one], 24, part="matmul", **tag)
        mixed = graph.add(f"attention{i}", 0.7, 0, [qkv], part="attention", **{**tag, "cache": 8})
        out = graph.add(f"out{i}", 0.3, 32, [mixed], part="matmul", **tag)
        at = graph.add(f"add{i}", 0.05, 0, [at, out], part="norm", **tag)
        two = graph.add(f"norm{i}b", 0.08, 1, [at], part="norm", **tag)
        up = graph.add(f"up{i}", 1.0, 128, [two], 48, part="matmul", **tag)
        act = graph.add(f"act{i}", 0.1, 0, [up], 48, part="norm", **tag)
        down = graph.add(f"down{i}", 0.9, 128, [act], part="matmul", **tag)
        at = graph.add(f"add{i}b", 0.05, 0, [at, down], part="norm", **tag)
    graph.add("head", 3.1, 900, [at], output=1.0, part="ends", cache=0)
    return graph


def branching(layers: int, experts: int = 0) -> Graph:
    """Layers with queries, keys and values side by side, and gated feed-forward parts or experts."""
    graph = Graph()
    at = graph.add("embed", 1.3, 900, [], part="ends", cache=0)
    for i in range(layers):
        tag: dict[str, float | str] = {"layer": i, "cache": 0}
        heads = [graph.add(f"{one}{i}", ms, mib, [at], 8, part="matmul", **tag)
                 for one, ms, mib in (("q", 0.5, 32), ("k", 0.2, 8), ("v", 0.2, 8))]  # fmt: skip
        mixed = graph.add(f"attention{i}", 0.8, 0, heads, part="attention", **{**tag, "cache": 8})
        at = graph.add(f"out{i}", 0.3, 32, [mixed, at], part="matmul", **tag)
        if experts:
            gate = graph.add(f"gate{i}", 0.1, 1, [at], part="matmul", **tag)
            parts = [graph.add(f"expert{i}_{j}", 0.7 + 0.1 * j, 160, [gate], 8, part="expert", **tag)
                     for j in range(experts)]  # fmt: skip
            at = graph.add(f"sum{i}", 0.1, 0, [*parts, at], part="matmul", **tag)
        else:
            parts = [graph.add(f"{one}{i}", 0.7, 64, [at], 24, part="matmul", **tag) for one in ("gate", "up")]
            at = graph.add(f"down{i}", 0.8, 64, [*parts, at], part="matmul", **tag)
    graph.add("head", 3.1, 900, [at], output=1.0, part="ends", cache=0)
    return graph


def machine(fast: int, slow: int, servers: int = 2, old: int = 0, memory: tuple[int, int] = (16, 24)) -> str:
    """Servers that each hold so many devices of two kinds; ``old`` ones beside them."""
    lines = []
    for s in range(1, servers + 1):
        lines += [
            f"device fast{s}[{fast}]: accelerator {{ memory = {memory[0]} GiB, price = 4 USD/h, idle = 90 W,"
            f" peak = 700 W, rack = {s} }}",
            f"device slow{s}[{slow}]: accelerator {{ memory = {memory[1]} GiB, price = 1.5 USD/h, idle = 60 W,"
            f" peak = 300 W, rack = {s} }}",
        ]
    if old:
        lines.append(f"device old[{old}]: accelerator {{ memory = 12 GiB, price = 0.5 USD/h, idle = 50 W,"
                     " peak = 250 W, rack = 0 }")  # fmt: skip
    kinds = {"fast": [f"fast{s}" for s in range(1, servers + 1)], "slow": [f"slow{s}" for s in range(1, servers + 1)]}
    lines += [f"set {kind} = {' union '.join(names)}" for kind, names in kinds.items()]
    lines.append("interconnect { bandwidth = 25 GB/s }")
    return "\n".join(lines)


KV = ("param batch: int = {batch}\nset attentions = nodes where cache > 0\n"
      "param kept[v in nodes]: data = if v.cache > 0 then v.cache * 1 MiB * batch else 0 B\n")  # fmt: skip
KV_RULE = "    room: forall d in accelerators: memory(d) + sum(v in attentions: kept[v] * (v on d)) <= 0.9 * d.memory\n"
SERVERS = ("    share: forall s in 1..{n}: sum(v in nodes, d in accelerators where d.rack == s:"
           " v.parameters * (v on d)) <= {share} * sum(v in nodes: v.parameters)\n")  # fmt: skip
POWER = ("    power: forall s in 1..{n}: sum(d in accelerators where d.rack == s: d.idle * used(d)"
         " + (d.peak - d.idle) * load(d) / {period} ms) <= {watts} W\n")  # fmt: skip
TIED = ("    tied: forall s in 1..{n}: sum(d in accelerators where d.rack == s: embed on d)"
        " == sum(d in accelerators where d.rack == s: head on d)\n")  # fmt: skip


def several(*rules: str, **values: object) -> str:
    """Rules with their numbers."""
    known = {"n": 2, "share": 0.6, "period": 30, "watts": 1500, **values}
    text = "".join(rules)
    for name, value in known.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


@dataclass(frozen=True)
class Case:
    """A spec: its graph, its machine (and definitions), its rules beside ``contiguous`` and ``memory``."""

    name: str
    graph: Callable[[], Graph]
    machine: str
    rules: str


EVEN = "    even_{s}: forall d in {s}, e in {s} where d != e: used(d) and used(e) => load(d) <= 1.15 * load(e)\n"
CASES = (
    Case("servers, power, tied; chain", lambda: chain(32), machine(2, 2),
         several(SERVERS, POWER, TIED, period=30, watts=1500)),
    Case("servers, power, tied; residual", lambda: residual(32), machine(2, 2),
         several(SERVERS, POWER, TIED, period=30, watts=1500)),
    Case("servers, power, tied; branching", lambda: branching(24), machine(2, 2),
         several(SERVERS, POWER, TIED, share=0.55, period=25, watts=1500)),
    Case("KV cache; chain", lambda: chain(48), machine(4, 4) + "\n" + KV.format(batch=420), KV_RULE),
    Case("KV cache; residual", lambda: residual(24), machine(2, 2) + "\n" + KV.format(batch=420), KV_RULE),
    Case("KV cache; branching", lambda: branching(32), machine(4, 4) + "\n" + KV.format(batch=640), KV_RULE),
    Case("price; chain", lambda: chain(60), machine(4, 3, old=4),
         "    paid: sum(d in devices: d.price * used(d)) <= 27 USD/h\n"),
    Case("price; residual", lambda: residual(32), machine(4, 4, old=4),
         "    paid: sum(d in devices: d.price * used(d)) <= 26 USD/h\n"),
    Case("at most k of a kind; residual", lambda: residual(20), machine(4, 4),
         "    few: count(d in fast: used(d)) <= 3\n    all: devices_used <= 9\n"),
    Case("at most k of a kind, servers; 64 devices", lambda: residual(64), machine(8, 8, servers=4),
         several(SERVERS, n=4, share=0.3) + "    few: count(d in fast: used(d)) <= 20\n"),
    Case("pins; chain, 32 devices", lambda: chain(64), machine(8, 8),
         "    ends: (embed on slow1 or embed on slow2) and (head on slow1 or head on slow2)\n"
         "    heavy: forall v in nodes where v.layer < 20: v on fast1 or v on fast2\n"
         "    apart: not (layer40 on fast1 or layer40 on fast2)\n    one: count(d in fast1: used(d)) <= 5\n"),
    Case("pins, power; branching", lambda: branching(20, 4), machine(2, 2),
         "    ends: embed on slow1 or embed on slow2\n    last: head on fast1 or head on fast2\n"
         + several(POWER, period=30, watts=1600)),
    Case("balance; residual", lambda: residual(16), machine(4, 4),
         EVEN.format(s="fast") + EVEN.format(s="slow") + "    few: devices_used <= 12\n"),
    Case("balance of memory; chain", lambda: chain(40), machine(2, 2),
         "    even: forall d in accelerators: abs(memory(d) - mean(e in accelerators: memory(e)))"
         " <= 30% * mean(e in accelerators: memory(e))\n"),
    Case("energy, counts; residual", lambda: residual(16), machine(4, 4),
         "    joules: sum(v in nodes, d in fast: 700 * v.time[d] * (v on d)) + sum(v in nodes, d in slow:"
         " 300 * v.time[d] * (v on d)) <= 42 s\n    most: forall d in devices: count(v in nodes: v on d) <= 24\n"),
    Case("experts apart; branching", lambda: branching(16, 6), machine(4, 4),
         "    spread: forall d in devices: count(v in nodes where v.part == \"expert\": v on d) <= 10\n"
         "    paid: sum(d in devices: d.price * used(d)) <= 30 USD/h\n"),
    Case("servers' totals; branching, 32 devices", lambda: branching(48), machine(4, 4, servers=4),
         several(SERVERS, POWER, n=4, share=0.3, period=14, watts=3100)),
    Case("price, power, KV cache; 64 devices", lambda: chain(200), machine(16, 16) + "\n" + KV.format(batch=100),
         KV_RULE + several(POWER, n=2, period=50, watts=9000)
         + "    paid: sum(d in devices: d.price * used(d)) <= 120 USD/h\n"),
    Case("work or idle, pins; residual", lambda: residual(24), machine(3, 3),
         "    worth: forall d in accelerators: used(d) => load(d) >= 6 ms\n"
         "    first: forall v in nodes where v.layer < 6: v on fast1 or v on fast2\n"
         "    paid: sum(d in devices: d.price * used(d)) <= 20 USD/h\n"),
    Case("all of it; residual, 16 devices", lambda: residual(40), machine(4, 4) + "\n" + KV.format(batch=120),
         KV_RULE + several(SERVERS, POWER, TIED, period=24, watts=3000, share=0.58)
         + "    few: count(d in fast: used(d)) <= 6\n    paid: sum(d in devices: d.price * used(d)) <= 34 USD/h\n"),
)  # fmt: skip


def spec_of(case: Case, folder: Path) -> Path:
    """The files of a case."""
    graph = case.graph()
    servers = case.machine.count("device fast")
    for node in graph.nodes:  # times by family
        time_of = node["time"]
        node["time"] = {f"{kind}{s}": time_of[kind] for kind in ("fast", "slow") for s in range(1, servers + 1)}
        if "device old" in case.machine:
            node["time"]["old"] = time_of["old"]
    (folder / "graph.json").write_text(graph.text(), encoding="utf-8")
    spec = folder / "spec.place"
    spec.write_text(
        f'graph from "graph.json"\n{case.machine}\n\nminimize time_per_sample\nsubject to\n    memory\n    contiguous\n'
        + case.rules,
        encoding="utf-8",
    )
    return spec


def solved(checkout: Path, spec: Path, seconds: float) -> tuple[float, float, float, float, str]:
    """Value, bound, gap, seconds of the process, and how it came about."""
    begun = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-m", "placedsl", "solve", str(spec), "--json", "-", "--quiet", "--time-limit", f"{seconds}s"],
        cwd=spec.parent, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(checkout)},
    )  # fmt: skip
    took = time.monotonic() - begun
    try:
        told = json.loads(ran.stdout)
    except json.JSONDecodeError:
        return float("nan"), float("nan"), float("inf"), took, (ran.stderr or ran.stdout).strip().splitlines()[-1][:60]
    goal = (told.get("objectives") or [told.get("objective")])[0] or {}
    value, bound = goal.get("value"), goal.get("bound")
    known = value is not None and bound is not None
    gap = (value - bound) / value if known and value else float("inf")
    number = float("nan")
    return (
        number if value is None else 1e3 * value, number if bound is None else 1e3 * bound, gap, took,
        str(goal.get("bound_by") or told.get("termination")),
    )  # fmt: skip


def main() -> None:
    """Run the cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="the folder of another checkout")
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--seconds", type=float, default=10.0, help="the time limit of a solve")
    parser.add_argument("--write", type=Path, help="only write the specs into this folder")
    given = parser.parse_args()
    sides = [("before", given.before), ("now", ROOT)] if given.before else [("now", ROOT)]
    head = " | ".join(f"{name}: value ms | bound ms | gap | s" for name, _ in sides)
    print(f"| spec | nodes | devices | {head} | by |\n| --- | ---: | ---: |" + " ---: |" * (4 * len(sides)) + " --- |")
    for number, case in enumerate(CASES):
        if given.only not in case.name:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = given.write / f"{number:02}" if given.write else Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            spec = spec_of(case, folder)
            if given.write:
                continue
            devices = sum(int(part.partition("[")[2].partition("]")[0]) for part in case.machine.split("device ")[1:]
                          if "[" in part.partition(":")[0])  # fmt: skip
            cells, by = [], ""
            for _, checkout in sides:
                value, bound, gap, seconds, by = solved(checkout, spec, given.seconds)
                cells.append(f"{value:.4g} | {bound:.4g} | {100 * gap:.2f}% | {seconds:.1f}")
            print(f"| {case.name} | {len(case.graph().nodes)} | {devices} | {' | '.join(cells)} | {by} |", flush=True)


if __name__ == "__main__":
    main()
