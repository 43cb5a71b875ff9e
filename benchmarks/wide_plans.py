"""Plans of wide graphs: recurrent networks of several layers unrolled over steps, of about 20,000 ideals each.

    python benchmarks/wide_plans.py [--devices 32] [--seed NUMBER] [--shared]

Each cell reads the layer below it and its own layer a step before; each pays for what it reads by itself, as in the
published workloads of Piper, or, if ``--shared``, a stage pays once for all its cells.  Cells have options for one and
two devices, with and without recomputation.  The memory of devices is what lets the best plan without limits just not
fit, and half of that.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from piper_workloads import answer

#: Layers and steps.
GRIDS = ((2, 197), (3, 47), (4, 24), (5, 16), (7, 10))
MIB, GIB, BATCH = 2**20, 2**30, 1920
#: Shares of the memory that the best plan takes where there is room for all.
SHARES = (1.0, 0.6, 0.3)


def network(layers: int, steps: int, seed: int) -> dict[str, Any]:
    """A graph in the project's own format."""
    rng = random.Random(seed)
    nodes, edges = [], []
    for layer in range(layers):
        time, weights = rng.uniform(0.5e-3, 5e-3), rng.randint(8, 64) * MIB
        for step in range(steps):
            own = time * rng.uniform(0.9, 1.1)
            stash, output = rng.randint(16, 64) * MIB, rng.randint(1, 8) * MIB
            name = f"c{layer}_{step}"
            options = [{"name": "recomputed", "time": {"accelerator": own * 4 / 3}, "stash": output}]
            for kind, factor, kept in (("half", 1.0, stash // 2), ("half recomputed", 4 / 3, output)):
                options.append({
                    "name": kind, "tensor": 2, "time": {"accelerator": own * factor * 0.55}, "stash": kept,
                    "memory": 2 * weights, "parameters": weights // 2,
                })  # fmt: skip
            nodes.append({
                "id": name, "time": {"accelerator": own}, "memory": 4 * weights, "stash": stash,
                "output": output, "options": options, "attributes": {"parameters": weights},
            })  # fmt: skip
            edges += [{"from": f"c{layer - 1}_{step}", "to": name}] * (layer > 0)
            edges += [{"from": f"c{layer}_{step - 1}", "to": name}] * (step > 0)
    return {"format": "placedsl-graph", "version": 1, "nodes": nodes, "edges": edges}


def by_itself(shared: dict[str, Any]) -> dict[str, Any]:
    """The same in Piper's format, where each edge is paid for by itself."""
    number = {node["id"]: at for at, node in enumerate(shared["nodes"])}
    output = {node["id"]: node["output"] for node in shared["nodes"]}
    edges = [(number[e["from"]], number[e["to"]], output[e["from"]]) for e in shared["edges"]]
    nodes = []
    for at, node in enumerate(shared["nodes"]):
        none = {
            "syncTimeFw": {str(u): 0.0 for u, v, _ in edges if v == at},
            "syncTimeBw": {str(v): 0.0 for u, v, _ in edges if u == at},
        }
        plain = {name: node[name] for name in ("time", "memory", "stash")} | {
            "parameters": node["attributes"]["parameters"]
        }
        degrees: dict[str, list[dict[str, Any]]] = {}
        for option in ({"name": "vanilla"}, *node["options"]):
            own = plain | option
            degrees.setdefault(str(own.get("tensor", 1)), []).append({
                "id": own["name"], "timePerSample": own["time"]["accelerator"], "parameterSize": own["parameters"],
                "memoryUsageA": own["stash"], "memoryUsageB": own["memory"], **none,
            })  # fmt: skip
        nodes.append({"id": at, "name": node["id"], "TMPCs": degrees})
    return {
        "maxDevices": 10, "maxMemoryPerDevice": 80e9, "bandwidth": 25e9, "mbsInBatch": BATCH, "nodes": nodes,
        "edges": [{"sourceId": u, "destId": v, "communicationCost": size} for u, v, size in edges],
    }  # fmt: skip


def main(arguments: list[str]) -> int:
    """A row per network and memory."""
    parser = argparse.ArgumentParser(description="Plans of wide graphs.")
    parser.add_argument("--devices", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layers", type=int, nargs="*", help="only networks of so many layers")
    parser.add_argument("--shared", action="store_true", help="a stage pays once for what several of its cells read")
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp())
    columns = ("layers x steps", "operators", "ideals", "memory (GiB)", "time per sample (ms)", "proven", "stages", "s")
    print(f"| {' | '.join(columns)} | peak (MB) |")
    print("| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |")
    for layers, steps in [grid for grid in GRIDS if not given.layers or grid[0] in given.layers]:
        file = folder / f"{layers}-{steps}.json"
        graph = network(layers, steps, given.seed)
        file.write_text(json.dumps(graph if given.shared else by_itself(graph)), encoding="utf-8")
        most = 2.0**50
        for share in SHARES:
            memory = most if share == 1.0 else share * most
            found = answer(file, given.devices, memory, BATCH, "batch", "data = divisors(microbatches)")
            if share == 1.0:
                most = max(stage.memory for stage in found.plan.stages)
            if found.placement is None:
                print(f"| {layers} x {steps} | infeasible with {memory / GIB:.2f} GiB |")
                continue
            print(
                f"| {layers} x {steps} | {layers * steps} | {math.comb(layers + steps, layers)} "
                f"| {'-' if share == 1.0 else format(memory / GIB, '.2f')} | {1000 * found.value:.6g} "
                f"| {'yes' if found.proven() else 'no'} | {len(found.plan.stages)} | {found.seconds['solve']:.2f} "
                f"| {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
