"""Operators that cost nothing: seconds of dynamic programming with such operators hung off published workloads.

    python benchmarks/leaves.py               10, 20 and 40 operators of each kind, memory loose and tight
    python benchmarks/leaves.py --quick       40 operators with memory, a third of each kind
    python benchmarks/leaves.py --only gnmt --limit 30 --seed 3

Kinds: *after* reads what an operator makes and is never read; *before* is read once; *view* reads and is read once;
*mixed* has a third of each.  Each without memory and with some hundred kilobytes.  Tight memory is 2% more than the
least peak memory of accelerators alone (``minimize peak_memory``), and an even share of what the operators hold; hosts,
which have no limit, are left out then.  Loose memory is what the workload has.
Seconds are those of ``pipelines.solve.solve`` (a problem to a proven placement), the best of two with compiled kernels;
"times" compares with the same graph without the operators under the same memory.  A run that is not proven is told so.
`$PLACEDSL_WORKLOADS` names the folder of the published inputs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np

import placedsl
from placedsl.algorithms.pipelines.placement_result import PlacementResult
from placedsl.algorithms.pipelines.solve import solve
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem.problem import Problem

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("PLACEDSL_WORKLOADS", ROOT.parent / "shared" / "workloads"))
KINDS = ("after", "before", "view", "mixed")
#: Kilobytes of an operator, drawn anew for each.
_KILOBYTES = (100, 900)


def published() -> dict[str, dict[str, Any]]:
    """Every published workload for throughput, as the authors' JSON or made like it; PipeDream's with both passes."""
    out = {}
    for path in sorted((FOLDER / "dnn-partitioning" / "throughput-inputs").glob("*/*.json")):
        out[f"{path.parent.name.removesuffix('Graphs')}/{path.stem}"] = json.loads(path.read_text())
    for path in sorted((FOLDER / "pipedream").glob("*.txt")):
        if path.stem != "LICENSE":
            for training in (False, True):
                name = f"PipeDream/{path.stem}_{'training' if training else 'inference'}"
                out[name] = _pipedream(path, training=training)
    return out


def _pipedream(path: Path, *, training: bool) -> dict[str, Any]:
    """A profile of PipeDream as the authors' JSON: transfers at 10 GB/s, six accelerators and a host."""
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    size: dict[int, float] = {}
    own = 2 if training else 1
    for line in path.read_text().splitlines():
        parts = [part.strip() for part in line.split(" -- ")]
        if line.startswith("\t"):
            u, v = (int(part.removeprefix("node")) for part in parts)
            for source, target in ((u, v), (v + 10_000, u + 10_000))[:own]:
                edges.append({"sourceId": source, "destId": target, "cost": size[u] / 1e10 * 1e3})
            continue
        number = int(parts[0].removeprefix("node"))
        said = dict(pair.split("=", 1) for pair in parts[-1].split(", "))
        size[number] = sum(float(text) for text in said["activation_size"].strip("[]").split(";"))
        memory = size[number] + float(said["parameter_size"])
        idle = "Input" in parts[1]
        for k, word in enumerate(("forward", "backward")[:own]):
            taken = 0.0 if idle else float(said[f"{word}_compute_time"])
            nodes.append({
                "id": number + 10_000 * k, "supportedOnFpga": 1, "cpuLatency": 10 * taken, "fpgaLatency": taken,
                "isBackwardNode": k, "colorClass": number, "size": 0 if k else memory, "name": parts[1],
            })  # fmt: skip
    return {"maxSizePerFPGA": 16 * 2**30, "maxFPGAs": 6, "maxCPUs": 1, "nodes": nodes, "edges": edges}


def hung(given: dict[str, Any], count: int, kind: str, *, memory: bool, seed: int = 0) -> dict[str, Any]:
    """The workload with so many operators without time."""
    rng = random.Random(seed)
    forward = [one["id"] for one in given["nodes"] if not one["isBackwardNode"]]
    known = set(forward)
    ahead = [edge for edge in given["edges"] if edge["sourceId"] in known and edge["destId"] in known]
    cost = {edge["sourceId"]: edge["cost"] for edge in given["edges"]}
    nodes, edges = list(given["nodes"]), list(given["edges"])
    first = max(one["id"] for one in nodes) + 1
    color = max((one.get("colorClass") or 0 for one in nodes), default=0) + 1
    for i in range(count):
        own = first + i
        size = rng.randint(*_KILOBYTES) * 1000 if memory else 0
        nodes.append({"id": own, "supportedOnFpga": 1, "cpuLatency": 0.0, "fpgaLatency": 0.0, "isBackwardNode": 0,
                      "colorClass": color + i, "size": size, "name": f"free{i}"})  # fmt: skip
        edge = rng.choice(ahead)
        source, target = edge["sourceId"], edge["destId"]
        which = kind if kind != "mixed" else KINDS[i % 3]
        if which in ("after", "view"):
            edges.append({"sourceId": source, "destId": own, "cost": cost[source]})
        if which in ("before", "view"):
            paid = cost[source] if which == "view" else rng.choice((0.0, 0.1)) * edge["cost"]
            edges.append({"sourceId": own, "destId": target, "cost": paid})
    return {**given, "nodes": nodes, "edges": edges}


def problem_of(given: dict[str, Any], memory: float, folder: Path, goal: str = "time_per_sample") -> Problem:
    """A workload as a problem."""
    path = folder / f"workload{os.getpid()}.json"
    path.write_text(json.dumps(given))
    hosts = f"device cpu[{given['maxCPUs']}]: host\n" if given["maxCPUs"] else ""
    text = (
        f'graph from "{path}"\ndevice acc[{given["maxFPGAs"]}]: accelerator {{ memory = {memory:.0f} B }}\n'
        f"{hosts}minimize {goal}\n"
        "subject to\n    memory\n    contiguous\n    colocated by colorClass\n"
    )
    problem = placedsl.loads(text).problem
    path.unlink()
    return problem


def tight_memory(given: dict[str, Any], folder: Path) -> float:
    """2% more than the least peak memory of accelerators that hold everything; inf where that is not found."""
    found = solve(problem_of(alone(given), 1e15, folder, "peak_memory"), deadline=time.monotonic() + 20)
    return 1.02 * found.value


def alone(given: dict[str, Any]) -> dict[str, Any]:
    """The same on accelerators alone: hosts have no limit, and would take whatever does not fit."""
    return {**given, "maxCPUs": 0}


def timed(problem: Problem, limit: float, runs: int = 2) -> tuple[PlacementResult, float]:
    """The search and its seconds, the best of some runs."""
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        found = solve(problem, deadline=time.monotonic() + limit)
        best = min(best, time.perf_counter() - start)
        if not found.complete:
            break
    if found.placement is not None:
        checked = evaluate(problem, found.placement.tolist())
        assert not checked.violations, checked.violations[0].message
        assert abs(checked.objectives[0] - found.value) <= 1e-9 * found.value
    return found, best


def rows(
    name: str, given: dict[str, Any], arguments: argparse.Namespace, folder: Path
) -> list[tuple[str, bool, bool, float]]:
    """One workload: a line per memory, kind and number; the memory, whether the graph with such operators is proven,
    and without, and how many times longer it took."""
    out: list[tuple[str, bool, bool, float]] = []
    counts = (40,) if arguments.quick else (10, 20, 40)
    peak = tight_memory(given, folder)
    for tight in (False, True) if peak < float("inf") else (False,):
        for with_memory in (True,) if arguments.quick or tight else (False, True):
            for kind in ("mixed",) if arguments.quick else KINDS:
                for count in counts:
                    base = alone(given) if tight else given
                    more = hung(base, count, kind, memory=with_memory, seed=arguments.seed)
                    own = sum(one["size"] for one in more["nodes"]) - sum(one["size"] for one in base["nodes"])
                    room = peak + own / base["maxFPGAs"] if tight else base["maxSizePerFPGA"]
                    bare, before = timed(problem_of(base, room, folder), arguments.limit)
                    found, after = timed(problem_of(more, room, folder), arguments.limit)
                    out.append(("tight" if tight else "loose", found.complete, bare.complete, after / before))
                    proven = "yes" if found.complete else "no" if bare.complete else "no, nor bare"
                    cells = [
                        name, "tight" if tight else "loose", kind, "yes" if with_memory else "no", str(count),
                        f"{bare.value:.4f}", f"{found.value:.4f}", proven, f"{before:.4f}", f"{after:.4f}",
                        f"{after / before:.1f}",
                    ]  # fmt: skip
                    print("| " + " | ".join(cells) + " |", flush=True)
    return out


def main() -> None:
    """The table, and the largest ratios."""
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=0, help="another draw of the operators")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a run")
    arguments = parser.parse_args()
    print("| workload | memory | kind | own memory | operators | bare | value | proven | bare s | s | times |")
    print("| --- | --- | --- | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |")
    every: list[tuple[str, bool, bool, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, given in published().items():
            if arguments.only in name:
                every += rows(name, given, arguments, Path(folder))
    print("\n| memory | rows | proven | those not proven without | median of times | 95% | largest |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for memory in ("loose", "tight"):
        times = [times for which, proven, _, times in every if which == memory and proven]
        if times:
            own = [row for row in every if row[0] == memory]
            without = sum(not bare for _, _, bare, _ in own)
            median, most = np.quantile(times, (0.5, 0.95))
            print(
                f"| {memory} | {len(own)} | {len(times)} | {without} | {median:.1f} | {most:.1f} | {max(times):.1f} |"
            )


if __name__ == "__main__":
    main()
